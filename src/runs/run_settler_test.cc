#include "runs/run_settler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"

namespace clawdforge {
namespace {

class RunSettlerTest : public ::testing::Test {
 protected:
  RunSettlerTest() {
    ledger_ = std::move(
        *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
  }
  Result<void> stop() {
    auto stopping = [](RunSettler* settler) -> Async<void> {
      co_await settler->stop();
      co_return Result<void>{};
    };
    return run_to_end(io_, stopping(&settler()));
  }
  RunSettler& settler() {
    if (!settler_) settler_.emplace(io_.get_executor(), ledger_->runs, metrics_);
    return *settler_;
  }
  static RunEnd end_of(std::string id) {
    RunEnd end;
    end.run_id = RunId(std::move(id));
    end.state = RunState::failed;
    end.outcome = "a_code";
    return end;
  }

  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::text};
  Metrics metrics_;
  std::unique_ptr<Ledger> ledger_;
  std::optional<RunSettler> settler_;
};

TEST_F(RunSettlerTest, AnEndThatIsCommittedIsSettled) {
  clawdforge::Run run;
  run.id = RunId("one");
  ASSERT_TRUE(run_to_end(io_, ledger_->runs.add(run, {})));
  ASSERT_TRUE(run_to_end(io_, settler().settle(end_of("one"))));
  EXPECT_EQ(settler().unsettled(), 0u);
  const auto page = run_to_end(io_, ledger_->runs.page({}));
  ASSERT_TRUE(page && page->runs.size() == 1u);
  EXPECT_EQ(page->runs.front().end->outcome, "a_code");
}

TEST_F(RunSettlerTest, AnEndThatIsNotCommittedIsTriedAgainUntilTheGatewayStops) {
  ledger_->stop();
  const auto settled = run_to_end(io_, settler().settle(end_of("one")));
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, "ledger_unavailable");
  EXPECT_EQ(settler().unsettled(), 1u);
  EXPECT_TRUE(stop());
  EXPECT_EQ(settler().unsettled(), 0u);
}

}  // namespace
}  // namespace clawdforge
