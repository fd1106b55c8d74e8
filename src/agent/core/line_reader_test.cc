#include "agent/core/line_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace clawdforge {
namespace {

std::vector<std::string> lines_of(LineReader& reader) {
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, GivesWholeLinesOnly) {
  LineReader reader;
  EXPECT_EQ(lines_of(reader), Lines{});
  reader.feed("one\n\ntwo\nthr");
  EXPECT_EQ(lines_of(reader), (Lines{"one", "", "two"}));
  reader.feed("ee");
  EXPECT_EQ(lines_of(reader), Lines{});
  reader.feed("\n");
  EXPECT_EQ(lines_of(reader), Lines{"three"});
}

TEST(LineReader, GivesTheLastLineWithoutItsEndWhenTheOutputHasEnded) {
  LineReader reader;
  reader.feed("one\ntw");
  EXPECT_EQ(lines_of(reader), Lines{"one"});
  reader.feed("o");
  reader.finish();
  EXPECT_EQ(lines_of(reader), Lines{"two"});
  EXPECT_EQ(lines_of(reader), Lines{});
}

TEST(LineReader, TakesALineOfExactlyTheLimit) {
  LineReader reader(4);
  reader.feed("1234\n12");
  EXPECT_EQ(lines_of(reader), Lines{"1234"});
  reader.feed("34");
  EXPECT_EQ(lines_of(reader), Lines{});
  EXPECT_FALSE(reader.is_too_long());
  reader.feed("\n");
  EXPECT_EQ(lines_of(reader), Lines{"1234"});
}

TEST(LineReader, GivesUpAtALineThatIsTooLong) {
  for (const std::string rest : {"12345", "12345\n", "12345\nok\n"}) {
    LineReader reader(4);
    reader.feed("ok\n" + rest);
    EXPECT_EQ(lines_of(reader), Lines{"ok"});
    EXPECT_TRUE(reader.is_too_long());
    reader.feed("ok\n");
    EXPECT_EQ(lines_of(reader), Lines{});
  }
}

TEST(LineReader, ReadsALineOfManyPiecesInTimeThatGrowsWithItsLength) {
  LineReader reader;
  const std::string piece(4096, 'x');
  std::size_t fed = 0;
  for (; fed + piece.size() <= kAgentLineBytesMax; fed += piece.size()) {
    reader.feed(piece);
    ASSERT_FALSE(reader.next());
  }
  reader.feed("\n");
  EXPECT_EQ(reader.next().value().size(), fed);
  EXPECT_EQ(fed, kAgentLineBytesMax);
}

TEST(LineReader, GivesTheSameLinesHoweverTheOutputIsCut) {
  rc::check([](const std::vector<std::string>& lines, const std::vector<std::uint8_t>& sizes) {
    std::string output;
    Lines expected;
    for (std::string line : lines) {
      std::erase(line, '\n');
      output += line + "\n";
      expected.push_back(std::move(line));
    }
    LineReader reader;
    Lines found;
    std::string_view rest = output;
    const auto take = [&](std::size_t size) {
      reader.feed(std::string(rest.substr(0, size)));
      rest.remove_prefix(std::min(size, rest.size()));
      for (std::string& line : lines_of(reader)) found.push_back(std::move(line));
    };
    for (const std::uint8_t size : sizes) take(size % 8);
    take(rest.size());
    reader.finish();
    RC_ASSERT(lines_of(reader).empty());
    RC_ASSERT(found == expected);
  });
}

TEST(LineReader, GivesALineAwayAndGoesOnAfterIt) {
  LineReader reader;
  reader.feed("one\ntwo\nthree\nfo");
  EXPECT_EQ(reader.next(), "one");
  const auto two = reader.next();
  EXPECT_EQ(reader.extract(*two), "two");
  EXPECT_EQ(reader.next(), "three");
  reader.feed("ur");
  EXPECT_EQ(reader.next(), std::nullopt);
  reader.finish();
  const auto last = reader.next();
  EXPECT_EQ(reader.extract(*last), "four");
  EXPECT_EQ(reader.held_bytes(), 0U);
  EXPECT_EQ(reader.next(), std::nullopt);
}

}  // namespace
}  // namespace clawdforge
