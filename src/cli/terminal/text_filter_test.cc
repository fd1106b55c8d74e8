#include "cli/terminal/text_filter.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

TEST(TextFilter, KeepsWhatCanBeRead) {
  EXPECT_EQ(filter_text("Grüße, 世界 👍\n\tcode"), "Grüße, 世界 👍\n\tcode");
}

TEST(TextFilter, DropsControlCharacters) {
  EXPECT_EQ(filter_text(std::string_view("a\0b\x07"
                                         "c\x08"
                                         "d\x7f"
                                         "e\x0b",
                                         11)),
            "abcde");
  EXPECT_EQ(filter_text("a\u0080b\u0099c"), "abc");
}

TEST(TextFilter, DropsEscapeCodesWithWhatBelongsToThem) {
  EXPECT_EQ(filter_text("a\x1b[31mred\x1b[0m b"), "ared b");
  EXPECT_EQ(filter_text("a\x1b[?1049hb\x1b[2J\x1b[Hc"), "abc");
  EXPECT_EQ(filter_text("a\x1b]0;title\x07"
                        "b"),
            "ab");
  EXPECT_EQ(filter_text("a\x1b]52;c;aGVsbG8=\x1b\\b"), "ab");
  EXPECT_EQ(filter_text("a\x1bPq#0;2\x1b\\b"), "ab");
  EXPECT_EQ(filter_text("a\x1b_G\x1b\\b\x1b^x\x1b\\c\x1bXy\x1b\\d"), "abcd");
  EXPECT_EQ(filter_text("a\x1b(0b\x1b"
                        "cc\x1b#8d"),
            "abcd");
  EXPECT_EQ(filter_text("a\u009b31mb\u009d0;x\u009cc"), "abc");
  EXPECT_EQ(filter_text("a\x1b[3\x1b[1mb"), "ab");
  EXPECT_EQ(filter_text("a\x1b]0;x\x1b[1mb"), "ab");
  EXPECT_EQ(filter_text("a\x1b世"), "a世");
}

TEST(TextFilter, ACodeWithoutAnEndHidesNoMoreThanItsLineAndSoManyCharacters) {
  EXPECT_EQ(filter_text("a\x1b]0;hidden\nshown"), "a\nshown");
  const std::string shown = filter_text("\x1b]" + std::string(1000, 'x'));
  EXPECT_EQ(shown.size(), 1000 - kEscapeCharactersMax);
}

TEST(TextFilter, DropsWhatShowsTextInAnotherOrder) {
  EXPECT_EQ(filter_text("a\u202eb\u202c\u2066c\u2069\u200f\u061cd"), "abcd");
  EXPECT_EQ(filter_text("x\U000E0041\ufeffy\ufff9z\u00ad"), "xyz");
}

TEST(TextFilter, MakesLineEndsTheSame) {
  EXPECT_EQ(filter_text("a\r\nb\rc\u2028d\u0085e\n\nf"), "a\nb\nc\nd\ne\n\nf");
  EXPECT_EQ(filter_line("a\nb\tc"), "a b c");
}

TEST(TextFilter, PutsASignForBytesThatAreNotText) {
  EXPECT_EQ(filter_text("a\xff"
                        "b\xc3("),
            "a\ufffdb\ufffd(");
  EXPECT_EQ(filter_text("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
}

// However a stream is cut, what comes out is the same.
TEST(TextFilter, GivesTheSameForPiecesAsForTheWhole) {
  const std::string text =
      "Grüße\r\n世界\x1b[31;1mrot\x1b]0;t\x1b\\👍\u202e\u009b1m\xff"
      "x\x1b(Bend\r\n\x1b";
  const std::string whole = filter_text(text);
  for (std::size_t size = 1; size <= 7; ++size) {
    TextFilter filter;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size)
      out += filter.feed(text.substr(at, size));
    EXPECT_EQ(out + filter.finish(), whole) << size;
  }
}

TEST(TextFilter, TellsACharacterThatNeverCameWhole) {
  TextFilter filter;
  EXPECT_EQ(filter.feed("a\xe4\xb8"), "a");
  EXPECT_EQ(filter.finish(), "\ufffd");
}

}  // namespace
}  // namespace clawdforge
