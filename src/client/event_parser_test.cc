#include "client/event_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

std::string parsed(std::string_view text, std::size_t size) {
  EventParser parser;
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) {
    const bool is_good = parser.feed(text.substr(at, size), [&](const ServerEvent& event) {
      out += fmt::format("{}|{}|{};", event.id ? std::to_string(*event.id) : "-", event.name,
                         event.data);
    });
    if (!is_good) return out + "bad";
  }
  return out;
}

TEST(EventParser, ReadsEventsHoweverTheyAreCut) {
  const std::string_view text =
      ":\n\nid: 7\nevent: update\ndata: {\"a\":1}\n\n: comment\n\nevent:gap\r\ndata: x\r\ndata: "
      "y\r\n\r\ndata:z\n\nid: 9\n\ndata: cut";
  for (std::size_t size = 1; size < 60; ++size) {
    EXPECT_EQ(parsed(text, size), "7|update|{\"a\":1};-|gap|x\ny;-|message|z;") << size;
  }
}

TEST(EventParser, RefusesAnIdThatIsNotANumber) {
  EXPECT_EQ(parsed("id: x\ndata: y\n\n", 100), "bad");
}

}  // namespace
}  // namespace clawdforge
