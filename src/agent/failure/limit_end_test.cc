#include "agent/failure/limit_end.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>

#include "agent/failure/time_zone.h"

namespace clawdforge {
namespace {

using namespace std::chrono;

constexpr std::int64_t at(year_month_day day, int hour, int minute = 0) {
  const sys_seconds time = sys_days(day) + hours(hour) + minutes(minute);
  return time.time_since_epoch().count();
}

constexpr std::int64_t kNow = at(2025y / October / 2, 10, 15);

TEST(LimitEnd, ReadsTheEpochBehindABar) {
  EXPECT_EQ(limit_end("Claude AI usage limit reached|1759255200", kNow), 1759255200);
  EXPECT_EQ(limit_end("Claude AI usage limit reached|1759255200000", kNow), 1759255200);
  EXPECT_EQ(limit_end("one|two", kNow), std::nullopt);
  EXPECT_EQ(limit_end("x|12", kNow), std::nullopt);
}

TEST(LimitEnd, ReadsATimeOfDay) {
  EXPECT_EQ(limit_end("5-hour limit reached ∙ resets 3pm (UTC)", kNow),
            at(2025y / October / 2, 15));
  EXPECT_EQ(limit_end("You've hit your limit · resets 3:42am (UTC)", kNow),
            at(2025y / October / 3, 3, 42));
  EXPECT_EQ(limit_end("You've hit your limit · resets 12am (UTC)", kNow),
            at(2025y / October / 3, 0));
  EXPECT_EQ(limit_end("limit reached, resets at 12:30 PM (UTC)", kNow),
            at(2025y / October / 2, 12, 30));
  EXPECT_EQ(limit_end("Your limit will reset at 18:05 (GMT).", kNow),
            at(2025y / October / 2, 18, 5));
}

TEST(LimitEnd, TakesATimeThatHasJustPassedForThisOne) {
  EXPECT_EQ(limit_end("resets 10am (UTC)", kNow), at(2025y / October / 2, 10));
  EXPECT_EQ(limit_end("resets 9am (UTC)", kNow), at(2025y / October / 3, 9));
}

TEST(LimitEnd, ReadsADate) {
  EXPECT_EQ(limit_end("Weekly limit reached ∙ resets Oct 5, 3pm (UTC)", kNow),
            at(2025y / October / 5, 15));
  EXPECT_EQ(limit_end("Opus weekly limit reached ∙ resets Oct 24", kNow),
            at(2025y / October / 24, 0) - utc_offset("", kNow).value());
  EXPECT_EQ(limit_end("resets Jan 1 at 12pm (UTC)", kNow), at(2026y / January / 1, 12));
  EXPECT_EQ(limit_end("resets October 9, 5:10am (UTC) · progress saved", kNow),
            at(2025y / October / 9, 5, 10));
}

TEST(LimitEnd, KnowsTimeZones) {
  ASSERT_EQ(utc_offset("Europe/Berlin", kNow), 7200);
  EXPECT_EQ(limit_end("You've hit your session limit · resets 3pm (Europe/Berlin)", kNow),
            at(2025y / October / 2, 13));
  EXPECT_EQ(limit_end("resets 1:30am (Asia/Dhaka)", kNow), at(2025y / October / 2, 19, 30));
  // Summer time has ended by then.
  EXPECT_EQ(limit_end("resets Oct 27, 3pm (Europe/Berlin)", kNow), at(2025y / October / 27, 14));
  EXPECT_EQ(limit_end("resets 8pm (America/New_York)", kNow), at(2025y / October / 3, 0));
}

TEST(LimitEnd, ReadsASpan) {
  EXPECT_EQ(limit_end("Session limit reached – resets in 2 hours", kNow), kNow + 7200);
  EXPECT_EQ(limit_end("resets in 2h 30m", kNow), kNow + 9000);
  EXPECT_EQ(limit_end("resets in 1 day, 3 hours and 5 minutes", kNow), kNow + 97500);
  EXPECT_EQ(limit_end("resets in a while", kNow), std::nullopt);
}

TEST(LimitEnd, SaysNothingWhenTheSentenceDoesNot) {
  for (const std::string_view text :
       {"", "You've reached your Fable limit.", "resets", "resets soon", "resets 7", "resets 25pm",
        "resets Foo 3", "reset Oct 99", "API Error: Request rejected (429) · slow down"}) {
    EXPECT_EQ(limit_end(text, kNow), std::nullopt) << text;
  }
}

TEST(LimitEnd, TakesAnyText) {
  rc::check([](const std::string& text) {
    (void)limit_end(text, kNow);
    (void)limit_end("resets " + text, kNow);
    (void)limit_end("resets 3pm (" + text + ")", kNow);
  });
}

TEST(UtcOffset, RefusesWhatIsNoZone) {
  for (const std::string_view zone : {"../../../etc/passwd", "/etc/localtime", "No/Where", "Europe",
                                      "posixrules/x", "tzdata.zi", "zone1970.tab", " ", "a b"}) {
    EXPECT_EQ(utc_offset(zone, kNow), std::nullopt) << zone;
  }
}

TEST(UtcOffset, FollowsSummerTime) {
  EXPECT_EQ(utc_offset("Europe/Berlin", at(2025y / January / 15, 12)), 3600);
  EXPECT_EQ(utc_offset("Europe/Berlin", at(2025y / July / 15, 12)), 7200);
  EXPECT_EQ(utc_offset("America/St_Johns", at(2025y / January / 15, 12)), -12600);
  EXPECT_EQ(utc_offset("Asia/Kolkata", kNow), 19800);
}

// As `zic -b slim` writes it: the first block is empty, and the last line is a rule.
TEST(UtcOffset, UnderstandsASlimFile) {
  const std::string head = std::string("TZif2") + std::string(15, '\0');
  const auto counts = [](char types, char characters) {
    std::string text(24, '\0');
    text[19] = types;
    text[23] = characters;
    return text;
  };
  const std::string type = std::string("\0\0\x0e\x10\0\0", 6) + std::string("CET\0", 4);
  const std::string file = head + counts(1, 1) + std::string(7, '\0') + head + counts(1, 4) + type +
                           "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
  EXPECT_EQ(zone_file_offset(file, at(2025y / January / 15, 12)), 3600);
  EXPECT_EQ(zone_file_offset(file, at(2025y / July / 15, 12)), 7200);
  EXPECT_EQ(zone_file_offset(file, at(2025y / October / 26, 0, 59)), 7200);
  EXPECT_EQ(zone_file_offset(file, at(2025y / October / 26, 1)), 3600);
}

}  // namespace
}  // namespace clawdforge
