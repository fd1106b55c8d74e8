#include "quota/budgets/budgets.h"

#include <gtest/gtest.h>

#include "quota/budgets/ask_metrics.h"
#include "quota/budgets/ask_rates.h"
#include "quota/budgets/limit_notice.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

const Estimates::Key kKey{AppName("app"), "claude", "sonnet"};

TEST(Estimates, AreAFloorAtFirstAndThenWhatNineOfTenDidNotExceed) {
  Estimates estimates({.nano_usd = 10, .tokens = 100, .asks = 0, .agent_ms = 5});
  EXPECT_EQ(estimates.of(kKey), (Amounts{10, 100, 1, 5}));
  estimates.note(kKey, {.nano_usd = 1'000, .tokens = 1'000, .asks = 1, .agent_ms = 1'000});
  EXPECT_EQ(estimates.of(kKey).tokens, 100) << "what is not known is read from the ledger first";
  estimates.learn(kKey, {});
  for (std::int64_t used = 1; used <= 10; ++used) {
    estimates.note(kKey,
                   {.nano_usd = used * 10, .tokens = used, .asks = 1, .agent_ms = used * 100});
  }
  EXPECT_EQ(estimates.of(kKey), (Amounts{90, 100, 1, 900}));
  for (std::size_t ask = 0; ask < kEstimatedAsksMax; ++ask) {
    estimates.note(kKey, {.nano_usd = 1, .tokens = 1, .asks = 1, .agent_ms = 1});
  }
  EXPECT_EQ(estimates.of(kKey), (Amounts{10, 100, 1, 5})) << "old asks are forgotten";
}

TEST(AskRates, AreABucketThatIsRefilledEvenly) {
  AskRates rates;
  AskRates::Time now{};
  for (int ask = 0; ask < 6; ++ask) EXPECT_EQ(rates.take("a", 6, now).wait, 0s);
  EXPECT_EQ(rates.take("a", 6, now).wait, 10s);
  EXPECT_EQ(rates.take("b", 6, now).wait, 0s);
  EXPECT_EQ(rates.take("a", 6, now + 4s).wait, 6s);
  EXPECT_EQ(rates.take("a", 6, now + 10s).wait, 0s);
  EXPECT_EQ(rates.take("a", 6, now + 10s).wait, 10s);
  rates.give_back("a");
  EXPECT_EQ(rates.take("a", 6, now + 10s).wait, 0s);
  EXPECT_EQ(rates.take("a", 6, now + 1'000s).left, 5) << "no more than the bucket holds";
  EXPECT_EQ(rates.take("a", 2, now + 1'000s).left, 1) << "a smaller bucket holds at once";
}

TEST(LimitNotice, HasAnEntryForEachLimit) {
  const TimePoint now{std::chrono::seconds(1'794'909'600)};
  const std::vector<BudgetState> states = {
      {.budget = {BudgetWindow::day, BudgetUnit::usd, 5'000'000'000},
       .used = 1'000'000'000,
       .reserved = 500'000'000,
       .resets_at = 1'794'960'000},
      {.is_of_gateway = true,
       .budget = {BudgetWindow::total, BudgetUnit::asks, 10},
       .used = 9,
       .reserved = 0,
       .resets_at = kNeverEnds}};
  const LimitNotice notice = notice_of(states, {.nano_usd = 250'000'000, .tokens = 0, .asks = 1},
                                       RateState{.per_minute = 60, .left = 59, .wait = 0s}, now);
  EXPECT_EQ(notice.policy,
            R"("day-usd";q=5000000;qu="microusd";w=86400, "gateway-total-asks";q=10;qu="asks", )"
            R"("minute-asks";q=60;qu="asks";w=60)");
  EXPECT_EQ(notice.left,
            R"("day-usd";r=3250000;t=50400, "gateway-total-asks";r=0, "minute-asks";r=59;t=0)");
}

TEST(LimitNotice, ARefusalNamesItsLimit) {
  const TimePoint now{std::chrono::seconds(1'794'909'600)};
  const Failure refusal =
      budget_refusal({.budget = {BudgetWindow::day, BudgetUnit::usd, 5'000'000'000},
                      .used = 4'970'000'000,
                      .reserved = 40'000'000,
                      .resets_at = 1'794'960'000},
                     now);
  EXPECT_EQ(refusal.code, "budget_exhausted");
  EXPECT_EQ(refusal.retry_after, 50'400s);
  EXPECT_EQ(refusal.limit,
            R"({"scope":"app","window":"day","unit":"usd","limit":5,"used":4.97E0,"reserved":4E-2,)"
            R"("resets_at":1794960000})");
  const Failure total =
      budget_refusal({.budget = {BudgetWindow::total, BudgetUnit::asks, 1}, .used = 1}, now);
  EXPECT_EQ(total.retry_after, 0s);
}

TEST(AskMetrics, HaveABoundedNumberOfNames) {
  Metrics metrics;
  AskMetrics asks(metrics);
  for (int app = 0; app < 200; ++app) {
    asks.note_used(
        {.app = AppName("app" + std::to_string(app)), .agent = "claude", .model = "claude-opus-4"});
    asks.note_refused(AppName("app" + std::to_string(app)), "claude", "opus", "rate_limited");
  }
  const auto of = [&](const std::string& app) {
    return metrics
        .counter("clawdforge_asks_total", "",
                 {{"app", app}, {"agent", "claude"}, {"model", "opus"}})
        .value();
  };
  EXPECT_EQ(of("app0"), 1);
  EXPECT_EQ(of("other"), 150);
  EXPECT_EQ(model_class("anything"), "other");
}

}  // namespace
}  // namespace clawdforge
