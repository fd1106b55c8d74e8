#include "cli/terminal/styled_text.h"

#include <gtest/gtest.h>

#include "cli/terminal/char_width.h"

namespace clawdforge {
namespace {

std::vector<std::string> wrapped(std::string_view text, std::size_t columns,
                                 const StyledText& first = {}, const StyledText& next = {}) {
  std::vector<std::string> out;
  for (const StyledText& line : wrap({{std::string(text), {}}}, columns, first, next)) {
    out.push_back(plain_of(line));
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(CharWidth, KnowsWideAndCombiningCharacters) {
  EXPECT_EQ(char_width('a'), 1);
  EXPECT_EQ(char_width(U'ß'), 1);
  EXPECT_EQ(char_width(U'世'), 2);
  EXPECT_EQ(char_width(U'ハ'), 2);
  EXPECT_EQ(char_width(U'각'), 2);
  EXPECT_EQ(char_width(U'👍'), 2);
  EXPECT_EQ(char_width(U'\u0301'), 0);
  EXPECT_EQ(char_width(U'\u200d'), 0);
  EXPECT_EQ(char_width(U'─'), 1);
  EXPECT_EQ(text_width("e\u0301世"), 3U);
  EXPECT_EQ(fit_width("世界", 3), "世");
  EXPECT_EQ(fit_width("e\u0301e", 1), "e\u0301");
}

TEST(Wrap, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one   two", 4), (Lines{"one", "two"}));
  EXPECT_EQ(wrapped("", 10), (Lines{""}));
}

TEST(Wrap, BreaksLongWordsAndBetweenWideCharacters) {
  EXPECT_EQ(wrapped("abcdefghij", 4), (Lines{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped("a abcdefghij", 4), (Lines{"a", "abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped("世界你好吗", 5), (Lines{"世界", "你好", "吗"}));
  EXPECT_EQ(wrapped("ab世界cd", 5), (Lines{"ab世", "界cd"}));
}

TEST(Wrap, KeepsMarksWithTheirCharacterAndLeavesOutWhatChangesWidths) {
  EXPECT_EQ(wrapped("e\u0301e\u0301e\u0301e\u0301e\u0301", 4),
            (Lines{"e\u0301e\u0301e\u0301e\u0301", "e\u0301"}));
  EXPECT_EQ(wrapped("👨\u200d👩\u200d👧 ❤\ufe0f 👍\U0001F3FD", 80), (Lines{"👨👩👧 ❤ 👍"}));
}

TEST(Wrap, HasPrefixesAndLineFeeds) {
  EXPECT_EQ(wrapped("one two\nthree", 9, {{"- ", {}}}, {{"  ", {}}}),
            (Lines{"- one two", "  three"}));
  EXPECT_EQ(wrapped("a\tb", 80), (Lines{"a    b"}));
}

TEST(Encode, WritesCodesOnlyWhereTheyAreWanted) {
  const StyledText text = {{"a", {}}, {"b", {.colour = Colour::red, .is_bold = true}}, {"c", {}}};
  EXPECT_EQ(encode(text, false), "abc");
  EXPECT_EQ(encode(text, true), "a\x1b[0;1;31mb\x1b[0mc");
  EXPECT_EQ(encode({{"b", {.is_dim = true}}}, true), "\x1b[0;2mb\x1b[0m");
}

TEST(CutToWidth, PutsAnEllipsis) {
  EXPECT_EQ(plain_of(cut_to_width({{"abcdef", {}}}, 4)), "abc…");
  EXPECT_EQ(plain_of(cut_to_width({{"世界你好", {}}}, 4)), "世…");
  EXPECT_EQ(plain_of(cut_to_width({{"abc", {}}}, 3)), "abc");
}

}  // namespace
}  // namespace clawdforge
