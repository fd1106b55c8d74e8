#include "model/app.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(AppName, TakesLowerCaseDigitsUnderscoreAndDash) {
  EXPECT_TRUE(is_app_name("a"));
  EXPECT_TRUE(is_app_name("cron-job_7"));
  EXPECT_TRUE(is_app_name(std::string(64, 'x')));
}

TEST(AppName, RefusesEmptyLongAndForeignCharacters) {
  EXPECT_FALSE(is_app_name(""));
  EXPECT_FALSE(is_app_name(std::string(65, 'x')));
  for (const char* name : {"A", "a b", "a/b", "a.b", "\xc3\xa9", "a\n"}) {
    EXPECT_FALSE(is_app_name(name)) << name;
  }
}

TEST(EventFormat, RoundTripsByName) {
  for (const EventFormat format : {EventFormat::acp, EventFormat::simple}) {
    EXPECT_EQ(event_format_from(name_of(format)), format);
  }
  EXPECT_FALSE(event_format_from("ACP").has_value());
}

}  // namespace
}  // namespace clawdforge
