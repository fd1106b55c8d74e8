#include "api/shapes/usage_answer.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace clawdforge {
namespace {

constexpr std::int64_t kNow = 1'794'909'600;  // 2026-11-17T10:00:00Z

Result<UsageAsked> asked_for(std::string_view query) {
  return parse_usage(query, TimePoint(std::chrono::seconds(kNow)));
}

UsageRow row_of_app(std::string app, std::int64_t at, std::int64_t asks) {
  UsageRow row;
  row.at = at;
  row.app = AppName(std::move(app));
  row.sums.asks = asks;
  row.sums.nano_usd = 1'500'000'000 * asks;
  row.sums.answers[answer_bucket(100)] = asks;
  return row;
}

TEST(UsageAnswer, ReadsItsQuery) {
  const auto plain = asked_for("");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->query.to, kNow + 1);
  EXPECT_LE(plain->query.from, kNow - 30 * 86'400 + 1);
  const auto by_day = asked_for("by=app,day&from=60&to=86400");
  ASSERT_TRUE(by_day);
  EXPECT_TRUE(by_day->query.by.app);
  EXPECT_EQ(by_day->query.step, 86'400);
  EXPECT_FALSE(by_day->is_series);
  EXPECT_TRUE(asked_for("step=300&from=0&to=450000"));
  for (const char* wrong : {"by=colour", "step=7", "step=60&from=0&to=90001", "from=2&to=1",
                            "step=60&from=0&to=60&by=day", "from=x"}) {
    EXPECT_FALSE(asked_for(wrong)) << wrong;
  }
}

TEST(UsageAnswer, ShowsRowsAndTotals) {
  const auto asked = asked_for("by=app,hour&from=0&to=7200");
  ASSERT_TRUE(asked);
  const std::vector<UsageRow> rows = {row_of_app("a", 0, 1), row_of_app("b, c", 3'600, 2)};
  const auto shown = boost::json::parse(usage_json(*asked, rows));
  EXPECT_EQ(shown.at("rows").as_array().size(), 2U);
  EXPECT_EQ(shown.at("rows").at(1).at("hour").as_string(), "1970-01-01T01:00Z");
  EXPECT_EQ(shown.at("totals").at("asks").as_int64(), 3);
  EXPECT_EQ(shown.at("totals").at("cost_usd").to_number<double>(), 4.5);
  EXPECT_EQ(usage_csv(*asked, rows),
            "app,hour,asks,failed,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,"
            "cost_usd,agent_ms\r\na,1970-01-01T00:00Z,1,0,0,0,0,0,1.5,0\r\n"
            "\"b, c\",1970-01-01T01:00Z,2,0,0,0,0,0,3,0\r\n");
}

TEST(UsageAnswer, GivesTheLargestKeysASeriesEachAndTheRestOne) {
  const auto asked = asked_for("by=app&step=60&from=0&to=180");
  ASSERT_TRUE(asked);
  std::vector<UsageRow> rows;
  for (int app = 0; app < 60; ++app) {
    rows.push_back(row_of_app("a" + std::to_string(app), 60, app + 1));
  }
  const auto shown = boost::json::parse(usage_series(*asked, rows));
  const auto& series = shown.at("series").as_array();
  ASSERT_EQ(series.size(), kUsageSeriesMax + 1);
  EXPECT_EQ(shown.at("times").as_array().size(), 3U);
  EXPECT_EQ(series[0].at("key").at("app").as_string(), "a59");
  EXPECT_EQ(series[0].at("asks").at(1).as_int64(), 60);
  EXPECT_EQ(series[0].at("asks").at(0).as_int64(), 0);
  EXPECT_TRUE(series[0].at("p50_ms").at(0).is_null());
  EXPECT_EQ(answer_bucket(series[0].at("p99_ms").at(1).as_int64()), answer_bucket(100));
  EXPECT_EQ(series[kUsageSeriesMax].at("key").as_string(), "other");
  EXPECT_EQ(series[kUsageSeriesMax].at("asks").at(1).as_int64(), 55);  // 1 + ... + 10
}

}  // namespace
}  // namespace clawdforge
