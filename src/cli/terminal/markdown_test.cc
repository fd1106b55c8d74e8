#include "cli/terminal/markdown.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/terminal/highlight.h"
#include "cli/terminal/live_region.h"

namespace clawdforge {
namespace {

std::string plain(const StyledLines& lines) {
  std::string out;
  for (const StyledText& line : lines) out += plain_of(line) + "\n";
  return out;
}

std::string rendered(std::string_view source, std::size_t columns = 40) {
  return plain(render_markdown(source, columns));
}

TEST(Markdown, RendersParagraphsAndHeadings) {
  EXPECT_EQ(rendered("# Title\nSome *text* that is\nlonger than **one** line of forty.\n\nNext."),
            "Title\n\nSome text that is longer than one line\nof forty.\n\nNext.\n");
}

TEST(Markdown, RendersLists) {
  EXPECT_EQ(rendered("- a\n- b\n  - c\n  - d\n- e"), "• a\n• b\n  • c\n  • d\n• e\n");
  EXPECT_EQ(rendered("3. x\n4. y"), "3. x\n4. y\n");
  EXPECT_EQ(rendered("- [ ] open\n- [x] done"), "☐ open\n☑ done\n");
  EXPECT_EQ(rendered("- one two three four\n", 12), "• one two\n  three four\n");
  EXPECT_EQ(rendered("1. a\n\n2. b\n\nend"), "1. a\n\n2. b\n\nend\n");
  EXPECT_EQ(rendered("- a\n\n  more\n- b"), "• a\n\n  more\n\n• b\n");
  EXPECT_EQ(rendered("-\n- b"), "• \n• b\n");
}

TEST(Markdown, RendersCodeWithItsLanguage) {
  EXPECT_EQ(rendered("```cpp\nint x = 1;\n  // two\n```\ntext"),
            "┄ cpp\n  int x = 1;\n    // two\n\ntext\n");
  EXPECT_EQ(rendered("- a\n  ```\n  b\n  ```\n- c"), "• a\n    b\n• c\n");
}

TEST(Markdown, RendersTables) {
  EXPECT_EQ(rendered("| a | bb |\n| --- | ---: |\n| 世界 | 1 |\n"),
            "a    │  bb\n─────┼────\n世界 │   1\n");
  const std::string narrow = rendered(
      "| name | what it does |\n|---|---|\n| x | a very long text in a narrow table |\n", 24);
  EXPECT_EQ(narrow,
            "name │ what it does\n─────┼──────────────────\nx    │ a very long text\n"
            "     │ in a narrow table\n");
}

TEST(Markdown, RendersLinksQuotesAndRules) {
  EXPECT_EQ(rendered("[docs](https://example.org/a)"), "docs (https://example.org/a)\n");
  EXPECT_EQ(rendered("https://example.org/a"), "https://example.org/a\n");
  EXPECT_EQ(rendered("![cat](c.png)"), "image: cat (c.png)\n");
  EXPECT_EQ(rendered("> quoted\n> text\n\nafter"), "│ quoted text\n\nafter\n");
  EXPECT_EQ(rendered("a\n\n---\n\nb"), "a\n\n────────\n\nb\n");
}

TEST(Markdown, ShowsHtmlAsTextAndNoControlCharacterOfAnEntity) {
  EXPECT_EQ(rendered("<b>x</b> &amp; &#65;&#x42;"), "<b>x</b> & AB\n");
  EXPECT_EQ(rendered("&#27;[31mred&#x9b;1m&#0;"), "[31mred1m\n");
  EXPECT_EQ(rendered("[a](&#27;]0;x)"), "a (]0;x)\n");
}

TEST(Markdown, StaysWithinTheWidth) {
  const std::string_view source =
      "# A heading that is long\n\n- item with a longwordwithoutanyblank\n\n> > nested quote "
      "text\n\n"
      "```\na very long line of code\n```\n\n| a | b |\n|-|-|\n| 世界世界世界 | cccccccccccccc |\n";
  for (std::size_t columns = 12; columns < 40; ++columns) {
    for (const StyledText& line : render_markdown(source, columns)) {
      EXPECT_LE(width_of(line), columns) << plain_of(line);
    }
  }
}

// What hostile text costs must not grow with the square of its length.
TEST(Markdown, TakesHostileTextOfTheLargestSize) {
  for (const std::string_view piece : {"[", "*a_", "`", "> ", "![", "|", "- ", "\\", "&#", "<a",
                                       "~~", "**a *b ", "[a](", "\n- "}) {
    std::string source;
    while (source.size() + piece.size() <= kOpenBlockBytesMax) source += piece;
    render_markdown(source, 80);
  }
}

TEST(SettledBytes, AreThoseBeforeTheLastBlock) {
  EXPECT_EQ(settled_bytes("one\ntwo"), 0U);
  EXPECT_EQ(settled_bytes("one\n\n"), 0U);
  EXPECT_EQ(settled_bytes("one\n\nt"), 5U);
  EXPECT_EQ(settled_bytes("- a\n\n  b"), 0U);
  EXPECT_EQ(settled_bytes("```\na\n\nb"), 0U);
  EXPECT_EQ(settled_bytes("```\na\n```\n\nb"), 11U);
  EXPECT_EQ(settled_bytes("````\n```\n\nb"), 0U);
}

// However a text comes, the lines at its end are those of the whole.
TEST(MarkdownStream, GivesTheSameForPiecesAsForTheWhole) {
  const std::string source =
      "# Title\n\nA paragraph\nof two lines.\n\n1. one\n2. two\n   more\n\n```py\nx = 1\n\ny = "
      "2\n```\n\n"
      "| a | b |\n|---|---|\n| 1 | 2 |\n\nThe **end**.";
  for (const std::size_t size : {1U, 3U, 10U, 1000U}) {
    MarkdownStream stream;
    StyledLines lines;
    for (std::size_t at = 0; at < source.size(); at += size) {
      stream.feed(std::string_view(source).substr(at, size));
      std::ranges::move(stream.take_settled(40), std::back_inserter(lines));
    }
    std::ranges::move(stream.finish(40), std::back_inserter(lines));
    EXPECT_EQ(plain(lines), rendered(source)) << size;
  }
}

TEST(MarkdownStream, CutsABlockThatIsTooLong) {
  MarkdownStream stream;
  stream.feed("```\n");
  StyledLines lines;
  for (int i = 0; i < 100; ++i) {
    for (int line = 0; line < 100; ++line) stream.feed("0123456789\n");
    std::ranges::move(stream.take_settled(40), std::back_inserter(lines));
  }
  EXPECT_LT(stream.open_lines(40).size(), kOpenBlockBytesMax / 10);
  EXPECT_GT(lines.size(), 5000U);
  EXPECT_TRUE(std::ranges::all_of(
      lines, [](const StyledText& l) { return l.empty() || plain_of(l) == "  0123456789"; }));
}

TEST(Highlight, ColoursWordsStringsAndComments) {
  const StyledLines lines = highlight("if (x) return \"a\"; // b\n/* c\nd */ 12", "cpp");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].front().text, "if");
  EXPECT_TRUE(lines[0].front().style.is_bold);
  EXPECT_EQ(lines[0].back().text, "// b");
  EXPECT_TRUE(lines[1].front().style.is_dim);
  EXPECT_EQ(lines[2].front().text, "d */");
  EXPECT_EQ(lines[2].back().style.colour, Colour::cyan);
  EXPECT_EQ(highlight("+a\n-b", "diff")[1].front().style.colour, Colour::red);
  EXPECT_EQ(highlight("if x", "unknown")[0].front().style, TextStyle{});
}

StyledLines lines_from(std::initializer_list<const char*> texts) {
  StyledLines lines;
  for (const char* text : texts) lines.push_back({{text, {}}});
  return lines;
}

TEST(LiveRegion, DrawsOnlyWhatChanged) {
  LiveRegion region;
  EXPECT_EQ(region.draw({}, lines_from({"a", "b"}), 24), "a\x1b[K\nb\x1b[K\n");
  EXPECT_EQ(region.draw({}, lines_from({"a", "b"}), 24), "");
  EXPECT_EQ(region.draw({}, lines_from({"a", "c"}), 24), "\x1b[1Ac\x1b[K\n");
  EXPECT_EQ(region.draw(lines_from({"a"}), lines_from({"c", "d"}), 24), "d\x1b[K\n");
  EXPECT_EQ(region.draw({}, lines_from({"c"}), 24), "\x1b[1A\x1b[J");
  EXPECT_EQ(region.erase(), "\x1b[1A\x1b[J");
  EXPECT_EQ(region.draw({}, lines_from({"e"}), 24), "e\x1b[K\n");
}

TEST(LiveRegion, LeavesAloneWhatHasLeftTheScreen) {
  LiveRegion region;
  region.draw({}, lines_from({"1", "2", "3", "4"}), 4);
  EXPECT_EQ(region.draw({}, lines_from({"x", "2", "3", "y"}), 4), "\x1b[1Ay\x1b[K\n");
  EXPECT_EQ(region.draw(lines_from({"x", "2", "3"}), lines_from({"y", "5"}), 4), "5\x1b[K\n");
  EXPECT_EQ(region.draw({}, lines_from({"z", "5"}), 4), "\x1b[2Az\x1b[K\n5\x1b[K\n");
}

}  // namespace
}  // namespace clawdforge
