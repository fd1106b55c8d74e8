#include "cli/core/table.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

constexpr Screen kPipe{};
constexpr Screen kNarrow{.is_terminal = true, .columns = 20};

TEST(Table, InAPipeCellsAreSeparatedByTabsAndWhole) {
  Table table({"NAME", "SAYS"});
  table.add({"a", "a long text that no terminal would hold in one line, of whatever width it is"});
  table.add({"b", "two\nlines\tand \x1b[31mred"});
  EXPECT_EQ(table.text(kPipe),
            "NAME\tSAYS\n"
            "a\ta long text that no terminal would hold in one line, of whatever width it is\n"
            "b\ttwo lines and red\n");
}

TEST(Table, OnATerminalNoLineIsWiderThanIt) {
  Table table({"NAME", "SAYS"});
  table.add({"世界", "short"});
  table.add({"x", "a text that is longer than the screen"});
  std::string text = table.text(kNarrow);
  EXPECT_TRUE(text.contains("世界"));
  EXPECT_TRUE(text.contains("…"));
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    EXPECT_LE(columns_of(text.substr(0, end)), kNarrow.columns);
    text.erase(0, end + 1);
  }
}

TEST(Screen, TextsAreCutAtWholeCharacters) {
  EXPECT_EQ(columns_of("世界"), 4U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);
  EXPECT_EQ(fitted("世界和平", 5), "世界…");
  EXPECT_EQ(fitted("世界和平", 6), "世界…") << "a wide character does not fit in half";
  EXPECT_EQ(fitted("abc", 3), "abc");
  EXPECT_EQ(fitted("abcd", 3), "ab…");
}

TEST(Screen, ForeignTextGivesNoOrders) {
  EXPECT_EQ(plain_text("a\x1b[2Jb\x1b]0;t\x07"
                       "c\n\td\x7f"),
            "abc\n\td");
  EXPECT_EQ(plain_line("a\nb\tc"), "a b c");
}

}  // namespace
}  // namespace clawdforge
