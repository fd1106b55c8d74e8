#include "cli/core/arguments.h"

#include <gtest/gtest.h>

#include <array>

namespace clawdforge {
namespace {

Command a_command() {
  return {
      .name = "try",
      .arguments = "NAME [MORE]",
      .options = {{.name = "--size", .value = "N", .is_number = true, .also = "--bytes"},
                  {.name = "--file", .value = "PATH", .repeats = true},
                  {.name = "--level", .value = "L", .offers = Offers::words, .words = "low high"},
                  {.name = "--all"}}};
}

Asked<Arguments> parsed(std::vector<std::string> given) {
  const Command command = a_command();
  return parse_arguments(command, given);
}

std::string complaint(std::vector<std::string> given) {
  const auto arguments = parsed(std::move(given));
  if (arguments) return "(taken)";
  EXPECT_EQ(arguments.error().exit_code, kExitUsage);
  return arguments.error().sentence;
}

TEST(Arguments, OptionsAndWordsComeInAnyOrder) {
  const auto arguments = parsed({"--file=a", "x", "--size", "-3", "--all", "y", "--file", "--all"});
  ASSERT_TRUE(arguments) << arguments.error().sentence;
  EXPECT_EQ(arguments->words(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(arguments->all("--file"), (std::vector<std::string>{"a", "--all"}));
  EXPECT_EQ(arguments->number("--size"), -3);
  EXPECT_TRUE(arguments->has("--all"));
  EXPECT_FALSE(arguments->has("--level"));
  EXPECT_EQ(arguments->text("--level"), "");
  EXPECT_EQ(arguments->number("--level"), std::nullopt);
  EXPECT_EQ(arguments->word(7), "");
}

TEST(Arguments, AfterTwoDashesAllAreWordsAndOneDashIsAWord) {
  EXPECT_EQ(parsed({"-", "--", "--all"})->words(), (std::vector<std::string>{"-", "--all"}));
  EXPECT_EQ(parsed({"--", "--", "x"})->words(), (std::vector<std::string>{"--", "x"}));
}

TEST(Arguments, OlderAndShortNamesAreTheSameOptions) {
  const auto arguments = parsed({"x", "--bytes", "7", "-v"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->number("--size"), 7);
  EXPECT_TRUE(arguments->has("--verbose"));
  EXPECT_TRUE(parsed({"-h"})) << "help needs no NAME";
}

TEST(Arguments, WhatIsWrongIsSaid) {
  EXPECT_EQ(complaint({}), "try needs NAME [MORE]; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "b", "c"}), "try takes only NAME [MORE]; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--sise", "1"}), "there is no option --sise; did you mean --size?");
  EXPECT_EQ(complaint({"a", "--nonsense"}),
            "there is no option --nonsense; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "-x"}), "there is no option -x; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--size"}), "--size needs N; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--size", "1x"}),
            "--size takes a whole number, not '1x'; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--size=99999999999999999999"}),
            "--size takes a whole number, not '99999999999999999999'; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--size", "1", "--bytes", "2"}),
            "--bytes may be given once; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--level", "middle"}),
            "--level takes one of low, high, not 'middle'; see clawdforge try --help.");
  EXPECT_EQ(complaint({"a", "--all=yes"}), "--all takes no value; see clawdforge try --help.");
}

TEST(Arguments, TheTextOfArgumentsSaysHowManyThereAre) {
  const auto counts = [](std::string_view text) {
    const WordCount count = words_of(text);
    return std::pair(count.min, count.max);
  };
  constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(counts(""), std::pair(0UZ, 0UZ));
  EXPECT_EQ(counts("ID [PROMPT]"), std::pair(1UZ, 2UZ));
  EXPECT_EQ(counts("FILE..."), std::pair(1UZ, kAnyNumber));
  EXPECT_EQ(counts("[FILE...]"), std::pair(0UZ, kAnyNumber));
}

TEST(Nearest, ForgivesTwoLettersButGuessesNoShortWord) {
  constexpr std::array<std::string_view, 4> kWords = {"session", "token", "top", "usage"};
  EXPECT_EQ(nearest("sesion", kWords), "session");
  EXPECT_EQ(nearest("tokne", kWords), "token");
  EXPECT_EQ(nearest("usa", kWords), "usage");
  EXPECT_EQ(nearest("sess", kWords), "session") << "the beginning of a longer word";
  EXPECT_EQ(nearest("xy", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(10'000, 's'), kWords), "");
}

}  // namespace
}  // namespace clawdforge
