#include "quota/apps.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"

namespace clawdforge {
namespace {

class AppsTest : public ::testing::Test {
 protected:
  AppsTest()
      : log_(LogLevel::error, LogFormat::json), clock_(TimePoint(std::chrono::hours(500'000))) {
    ledger_ = std::move(
        *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
    apps_ = std::make_unique<Apps>(ledger_->apps, clock_, ids_, log_);
  }

  Result<MintedToken> mint(const std::string& name) {
    App fresh;
    fresh.name = AppName(name);
    return run_to_end(io_, apps_->mint(std::move(fresh), {}));
  }

  IoContext io_{1};
  Log log_;
  Metrics metrics_;
  ManualClock clock_;
  CountingIds ids_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Apps> apps_;
};

TEST_F(AppsTest, AMintedTokenWorksAtOnceAndAfterARestart) {
  const auto minted = mint("one");
  ASSERT_TRUE(minted);
  ASSERT_NE(apps_->find(minted->token.reveal()), nullptr);
  Apps after(ledger_->apps, clock_, ids_, log_);
  EXPECT_EQ(after.find(minted->token.reveal()), nullptr);
  ASSERT_TRUE(run_to_end(io_, after.reload()));
  ASSERT_NE(after.find(minted->token.reveal()), nullptr);
  EXPECT_EQ(after.find(minted->token.reveal())->name, "one");
}

TEST_F(AppsTest, NothingElseWorks) {
  const auto minted = mint("one");
  const std::string token(minted->token.reveal());
  for (const std::string& other : {std::string(), std::string("cf_"), token + "x",
                                   token.substr(0, token.size() - 1), token.substr(3)}) {
    EXPECT_EQ(apps_->find(other), nullptr) << other;
  }
}

TEST_F(AppsTest, ANameIsTakenOnce) {
  ASSERT_TRUE(mint("one"));
  const auto again = mint("one");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, "name_taken");
}

TEST_F(AppsTest, RotatingExchangesTheTokenAndKeepsTheRest) {
  const auto old = mint("one");
  const auto fresh = run_to_end(io_, apps_->rotate(AppName("one"), {}));
  ASSERT_TRUE(fresh);
  EXPECT_EQ(apps_->find(old->token.reveal()), nullptr);
  ASSERT_NE(apps_->find(fresh->token.reveal()), nullptr);
  EXPECT_EQ(fresh->app.created_at, old->app.created_at);
  EXPECT_EQ(run_to_end(io_, apps_->rotate(AppName("two"), {})).error().code, "token_not_found");
}

TEST_F(AppsTest, RotatingFindsARowThatMemoryHasNotSeen) {
  Apps other(ledger_->apps, clock_, ids_, log_);
  App fresh;
  fresh.name = AppName("elsewhere");
  ASSERT_TRUE(run_to_end(io_, other.mint(std::move(fresh), {})));
  const auto rotated = run_to_end(io_, apps_->rotate(AppName("elsewhere"), {}));
  ASSERT_TRUE(rotated);
  EXPECT_NE(apps_->find(rotated->token.reveal()), nullptr);
}

TEST_F(AppsTest, AChangeHoldsForTheNextUseAndForTheNextLife) {
  const auto minted = mint("one");
  const auto held = apps_->find(minted->token.reveal());
  const auto changed = run_to_end(io_, apps_->change(AppName("one"),
                                                     [](App& app) {
                                                       app.runs_max = 7;
                                                       app.policy.mcp = McpAccess::named;
                                                     },
                                                     {}));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->app.runs_max, 7);
  EXPECT_EQ(held->runs_max, std::nullopt) << "a request under way keeps what it was let in with";
  EXPECT_TRUE(apps_->is_current(*held));
  EXPECT_EQ(apps_->find(minted->token.reveal())->policy.mcp, McpAccess::named);
  Apps after(ledger_->apps, clock_, ids_, log_);
  ASSERT_TRUE(run_to_end(io_, after.reload()));
  EXPECT_EQ(after.find(minted->token.reveal())->policy, changed->app.policy);
  EXPECT_EQ(run_to_end(io_, apps_->change(AppName("two"), [](App&) {}, {})).error().code,
            "token_not_found");
}

TEST_F(AppsTest, AChangeFindsARowThatMemoryHasNotSeen) {
  Apps other(ledger_->apps, clock_, ids_, log_);
  App fresh;
  fresh.name = AppName("elsewhere");
  const auto minted = run_to_end(io_, other.mint(std::move(fresh), {}));
  ASSERT_TRUE(
      run_to_end(io_, apps_->change(AppName("elsewhere"), [](App& app) { app.runs_max = 1; }, {})));
  EXPECT_EQ(apps_->find(minted->token.reveal())->runs_max, 1);
}

TEST_F(AppsTest, ARevokedTokenStopsAndItsNameIsFree) {
  const auto minted = mint("one");
  ASSERT_TRUE(run_to_end(io_, apps_->revoke(AppName("one"), {})));
  EXPECT_EQ(apps_->find(minted->token.reveal()), nullptr);
  EXPECT_EQ(run_to_end(io_, apps_->revoke(AppName("one"), {})).error().code, "token_not_found");
  EXPECT_TRUE(mint("one"));
}

TEST_F(AppsTest, AHeldAppOutlivesItsRevocation) {
  const auto minted = mint("one");
  const auto held = apps_->find(minted->token.reveal());
  ASSERT_TRUE(run_to_end(io_, apps_->revoke(AppName("one"), {})));
  EXPECT_EQ(held->name, "one");
}

TEST_F(AppsTest, UsesReachTheLedgerWhenNotedNotWhenTheyHappen) {
  const auto minted = mint("one");
  apps_->find(minted->token.reveal());
  EXPECT_EQ(apps_->list().front().last_used_at, clock_.now());
  EXPECT_FALSE(run_to_end(io_, ledger_->apps.list())->apps.front().last_used_at);
  ASSERT_TRUE(run_to_end(io_, apps_->note_uses()));
  const auto kept = run_to_end(io_, ledger_->apps.list())->apps.front().last_used_at;
  ASSERT_TRUE(kept);
  EXPECT_EQ(unix_seconds(*kept), unix_seconds(clock_.now()));
}

TEST_F(AppsTest, AReloadKeepsAUseThatIsNotNotedYet) {
  const auto minted = mint("one");
  apps_->find(minted->token.reveal());
  ASSERT_TRUE(run_to_end(io_, apps_->reload()));
  EXPECT_EQ(apps_->list().front().last_used_at, clock_.now());
}

TEST_F(AppsTest, WhatCouldNotBeNotedIsTriedAgain) {
  const auto minted = mint("one");
  apps_->find(minted->token.reveal());
  ledger_->stop();
  EXPECT_FALSE(run_to_end(io_, apps_->note_uses()));
  EXPECT_FALSE(run_to_end(io_, apps_->note_uses())) << "the use was forgotten";
}

TEST_F(AppsTest, ManyUsesThatCouldNotBeNotedCostNoMoreThanThatMany) {
  constexpr int kMany = 20'000;
  std::vector<std::string> tokens;
  for (int i = 0; i < kMany; ++i) {
    tokens.push_back("cf_" + std::to_string(i));
    App app;
    app.name = AppName("app-" + std::to_string(i));
    app.token_digest = sha256(tokens.back());
    boost::asio::co_spawn(io_, ledger_->apps.add(app),
                          [](auto, auto added) { EXPECT_TRUE(added); });
    if (i % 1'000 == 999) {
      io_.restart();
      io_.run();
    }
  }
  ASSERT_TRUE(run_to_end(io_, apps_->reload()));
  for (const std::string& token : tokens) ASSERT_NE(apps_->find(token), nullptr);
  ledger_->stop();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(run_to_end(io_, apps_->note_uses()));
  // One look at each takes some milliseconds; one at each for each takes many seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_FALSE(run_to_end(io_, apps_->note_uses())) << "the uses were forgotten";
}

TEST_F(AppsTest, AFailedRevocationLeavesTheTokenWorking) {
  const auto minted = mint("one");
  ledger_->stop();
  const auto revoked = run_to_end(io_, apps_->revoke(AppName("one"), {}));
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().kind, Errc::unavailable);
  EXPECT_NE(apps_->find(minted->token.reveal()), nullptr);
}

}  // namespace
}  // namespace clawdforge
