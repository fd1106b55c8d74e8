#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "model/limits/app_limits.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {
namespace {

TimePoint at(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

// 2026-11-17 was a Tuesday.
constexpr std::int64_t kTuesday = 1'794'873'600;
constexpr std::int64_t kDay = 86'400;

TEST(BudgetWindows, AreThoseOfTheCalendarInUtc) {
  const TimePoint now = at(kTuesday + 3'700);
  EXPECT_EQ(window_at(BudgetWindow::hour, now), (WindowSpan{kTuesday + 3'600, kTuesday + 7'200}));
  EXPECT_EQ(window_at(BudgetWindow::day, now), (WindowSpan{kTuesday, kTuesday + kDay}));
  EXPECT_EQ(window_at(BudgetWindow::week, now), (WindowSpan{kTuesday - kDay, kTuesday + 6 * kDay}));
  EXPECT_EQ(window_at(BudgetWindow::month, now),
            (WindowSpan{kTuesday - 16 * kDay, kTuesday + 14 * kDay}));
  EXPECT_EQ(window_at(BudgetWindow::total, now), (WindowSpan{0, kNeverEnds}));
}

TEST(BudgetWindows, AWeekBeginsOnMondayAndAYearInJanuary) {
  const std::int64_t monday = kTuesday - kDay;
  EXPECT_EQ(window_at(BudgetWindow::week, at(monday)).begins, monday);
  EXPECT_EQ(window_at(BudgetWindow::week, at(monday - 1)).ends, monday);
  const std::int64_t new_year = 1'798'761'600;  // 2027-01-01
  EXPECT_EQ(window_at(BudgetWindow::month, at(new_year - 1)).ends, new_year);
  EXPECT_EQ(window_at(BudgetWindow::month, at(new_year)).begins, new_year);
}

TEST(Budgets, AreReadAndShownAsTheyWere) {
  const auto value = boost::json::parse(
      R"([{"window":"day","unit":"usd","limit":0.25},{"window":"total","unit":"asks","limit":10},)"
      R"({"window":"hour","unit":"agent_seconds","limit":1.5}])");
  const auto budgets = budgets_from(value);
  ASSERT_TRUE(budgets);
  EXPECT_EQ((*budgets)[0], (Budget{BudgetWindow::day, BudgetUnit::usd, 250'000'000}));
  EXPECT_EQ((*budgets)[1], (Budget{BudgetWindow::total, BudgetUnit::asks, 10}));
  EXPECT_EQ((*budgets)[2].limit, 1'500);
  EXPECT_EQ(boost::json::serialize(shown(*budgets)),
            R"([{"window":"day","unit":"usd","limit":2.5E-1},{"window":"total","unit":"asks",)"
            R"("limit":10},{"window":"hour","unit":"agent_seconds","limit":1.5E0}])");
  const auto again = budgets_from_text(budgets_text(*budgets));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *budgets);
}

TEST(Budgets, RefuseWhatIsWrong) {
  for (const char* text :
       {R"({})", R"([1])", R"([{"window":"day","unit":"usd"}])",
        R"([{"window":"year","unit":"usd","limit":1}])",
        R"([{"window":"day","unit":"eur","limit":1}])",
        R"([{"window":"day","unit":"usd","limit":-1}])",
        R"([{"window":"day","unit":"asks","limit":1.5}])",
        R"([{"window":"day","unit":"asks","limit":1,"more":1}])",
        R"([{"window":"day","unit":"asks","limit":1},{"window":"day","unit":"asks","limit":2}])"}) {
    EXPECT_FALSE(budgets_from(boost::json::parse(text))) << text;
  }
  for (const char* text : {"day", "day:usd", "day:usd:x", "day:usd:1,day:usd:2", "day::1"}) {
    EXPECT_FALSE(budgets_from_text(text)) << text;
  }
  EXPECT_TRUE(budgets_from_text("")->empty());
}

TEST(AppLimits, AreKeptAsText) {
  AppLimits limits{.expires_at = kTuesday,
                   .asks_per_minute = 60,
                   .budgets = {{BudgetWindow::month, BudgetUnit::tokens, 1'000'000}},
                   .upload_bytes_max = 5,
                   .weight = 8};
  const auto again = limits_from(limits_text(limits));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again, limits);
  EXPECT_EQ(limits_text(AppLimits{}), "{}");
  EXPECT_FALSE(limits_from(R"({"weight":0})"));
  EXPECT_FALSE(limits_from(R"({"surprise":1})"));
  EXPECT_FALSE(limits_from("[]"));
}

TEST(AnswerTimes, FallIntoLogarithmicBuckets) {
  EXPECT_EQ(answer_bucket(0), 0U);
  EXPECT_EQ(answer_bucket(10), 0U);
  EXPECT_EQ(answer_bucket(11), 1U);
  for (std::size_t bucket = 0; bucket + 1 < kAnswerBuckets; ++bucket) {
    EXPECT_EQ(answer_bucket(answer_ms_max(bucket)), bucket);
    EXPECT_EQ(answer_bucket(answer_ms_max(bucket) + 1), bucket + 1);
  }
  EXPECT_EQ(answer_bucket(std::numeric_limits<std::int64_t>::max()), kAnswerBuckets - 1);
}

TEST(AnswerTimes, PercentilesStayWithinTheirBucket) {
  AnswerTimes times{};
  EXPECT_EQ(answer_ms_at(times, 0.5), std::nullopt);
  times[answer_bucket(100)] = 90;
  times[answer_bucket(3'000)] = 10;
  const auto half = answer_ms_at(times, 0.5);
  const auto late = answer_ms_at(times, 0.99);
  ASSERT_TRUE(half && late);
  EXPECT_EQ(answer_bucket(*half), answer_bucket(100));
  EXPECT_EQ(answer_bucket(*late), answer_bucket(3'000));
  EXPECT_LE(*answer_ms_at(times, 0.9), answer_ms_max(answer_bucket(100)));
  times = {};
  times.back() = 1;
  EXPECT_EQ(answer_ms_at(times, 0.5), answer_ms_max(kAnswerBuckets - 2));
}

TEST(Money, IsCountedInWholeParts) {
  EXPECT_EQ(nano_usd_of(0.1), 100'000'000);
  EXPECT_EQ(nano_usd_of(std::nullopt), 0);
  EXPECT_EQ(nano_usd_of(-1.0), 0);
  EXPECT_EQ(nano_usd_of(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(nano_usd_of(1e300), 0);
  EXPECT_DOUBLE_EQ(usd_of(nano_usd_of(0.0123456)), 0.0123456);
}

}  // namespace
}  // namespace clawdforge
