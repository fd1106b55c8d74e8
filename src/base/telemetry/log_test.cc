#include "base/telemetry/log.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(LogLine, IsOneJsonObjectWithTimeLevelMessageAndFields) {
  const std::string line =
      render_log_line(LogFormat::json, LogLevel::warn, 1'700'000'000'123, "slow \"disk\"",
                      {{"count", std::int64_t{3}},
                       {"share", 0.5},
                       {"late", true},
                       {"name", std::string_view("a\nb")}});
  EXPECT_EQ(line, R"({"time":"2023-11-14T22:13:20.123Z","level":"warn","message":"slow \"disk\"",)"
                  R"("count":3,"share":0.500,"late":true,"name":"a\nb"})");
}

TEST(LogLine, AsTextStaysOnOneLineWhateverIsInIt) {
  const std::string line =
      render_log_line(LogFormat::text, LogLevel::info, 1'700'000'000'000, "hello\nworld",
                      {{"path", std::string_view("a b")}, {"plain", std::string_view("x")}});
  EXPECT_EQ(line, R"(2023-11-14T22:13:20.000Z info  hello?world path="a b" plain=x)");
}

TEST(LogLine, RepairsACharacterThatWasCutOff) {
  const std::string line =
      render_log_line(LogFormat::text, LogLevel::info, 0, "ab\xf0\x90\x80", {});
  EXPECT_TRUE(line.ends_with("ab\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")) << line;
}

TEST(LogLine, LeavesEmptyTextsOut) {
  const std::string_view none;
  EXPECT_EQ(render_log_line(LogFormat::json, LogLevel::info, 0, "m", {{"a", none}, {"b", true}}),
            R"({"time":"1970-01-01T00:00:00.000Z","level":"info","message":"m","b":true})");
  EXPECT_EQ(render_log_line(LogFormat::text, LogLevel::info, 0, "m", {{"a", none}, {"b", true}}),
            "1970-01-01T00:00:00.000Z info  m b=true");
}

TEST(LogLine, RepairsBytesThatAreNotUtf8) {
  const std::string line = render_log_line(LogFormat::json, LogLevel::info, 0, "\xff\xc3\xa9", {});
  EXPECT_NE(line.find("\"message\":\"\xef\xbf\xbd\xc3\xa9\""), std::string::npos) << line;
}

TEST(Log, HiddenCharactersAreWrittenOut) {
  constexpr std::string_view kHidden =
      "a\xc2\x9b"
      "2J\xe2\x80\xae"
      "b\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8\xe2\x80\x8f";
  constexpr std::string_view kShown = R"("a\u009b2J\u202eb\u2066\u061c\u2028\u200f")";
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line =
        render_log_line(format, LogLevel::info, 0, "request", {{"path", kHidden}});
    EXPECT_THAT(line, testing::HasSubstr(kShown));
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("\xc2\x9b")));
  }
  const std::string plain =
      render_log_line(LogFormat::text, LogLevel::info, 0, "m", {{"path", "\xc3\xa4\xe2\x82\xac"}});
  EXPECT_THAT(plain, testing::HasSubstr("path=\xc3\xa4\xe2\x82\xac"));
}

}  // namespace
}  // namespace clawdforge
