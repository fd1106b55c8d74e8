#include "agent/warm/warm_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "base/async/run_to_end.h"

namespace clawdforge {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// What a test sees of an agent, also when that is gone.
struct SpareMark {
  AppName app;  // that it was given to
  bool is_warm = false;
  bool is_dead = false;
  bool is_gone = false;
};

class MarkedAgent final : public SessionAgent {
 public:
  MarkedAgent(std::shared_ptr<SpareMark> mark, bool fails)
      : mark_(std::move(mark)), fails_(fails) {}

  ProcessMark mark() const override { return {}; }
  Task<std::optional<Failure>> warm_up() override {
    if (fails_) co_return fail(Errc::agent_failed, "agent_exited", "It ended.").error();
    mark_->is_warm = true;
    co_return std::nullopt;
  }
  void adopt(AppName app) override { mark_->app = std::move(app); }
  bool is_ending() const override { return mark_->is_dead; }
  Task<Opening> open(Conversation /*conversation*/) override { co_return Opened{}; }
  void begin_turn(std::string /*prompt*/) override {}
  Task<AgentNews> next() override { co_return AgentNews{}; }
  void cancel() override {}
  void answer(std::string /*ask_id*/, std::optional<std::string> /*option_id*/) override {}
  void stop() override { mark_->is_dead = true; }
  Task<void> finish(bool /*is_for_good*/) override {
    mark_->is_gone = true;
    co_return;
  }
  std::string error_tail() const override { return {}; }

 private:
  const std::shared_ptr<SpareMark> mark_;
  const bool fails_;
};

class MarkingStarter final : public AgentStarter {
 public:
  std::vector<std::shared_ptr<SpareMark>> started;
  std::vector<StartOrder> orders;
  bool fails = false;

  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder order) override {
    orders.push_back(std::move(order));
    started.push_back(std::make_shared<SpareMark>());
    return std::make_unique<MarkedAgent>(started.back(), fails);
  }
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder /*order*/,
                                                       OneShotRequest /*request*/) override {
    return fail(Errc::internal, "not_marked", "There are none.");
  }
};

AgentSpec spec_of(std::string name, Warmth warm) {
  AgentSpec spec;
  spec.name = std::move(name);
  spec.protocol = AgentProtocol::claude;
  spec.modes = {{PermissionMode::approve_reads, {}}, {PermissionMode::approve_all, {}}};
  spec.warm = warm;
  return spec;
}

class WarmPoolTest : public testing::Test {
 protected:
  ~WarmPoolTest() override { run_to_end(io_, stopped(pool_.get())); }

  static Task<bool> stopped(WarmPool* pool) {
    co_await pool->stop();
    co_return true;
  }

  WarmPool::Dependencies dependencies() {
    return {
        .executor = io_.get_executor(),
        .starter = starter_,
        .catalog = catalog_,
        .ids = ids_,
        .log = log_,
        .metrics = metrics_,
        .start_text = [this](const StartOrder& order, const SpareKind&) -> Result<std::string> {
          return order.own_dir + order.conversation_id + program_;
        },
        .profile_of = [this](const AppName& app, const std::string&) { return profiles_[app]; },
        .make_dir = [this](bool, std::string id,
                           std::map<std::string, std::string>) { return make_dir(std::move(id)); },
        .remove_dir = [this](bool, std::string id) { dirs_.erase(id); },
        .places_left = [this](bool) { return places_left_; },
        .has_login = [this](const std::string&) { return has_login_; },
        .now = [this] { return now_; }};
  }
  Async<SpareDir> make_dir(std::string id) {
    dirs_.insert(id);
    co_return SpareDir{.own = "/s/" + id,
                       .work = "/s/" + id + "/work",
                       .temp = "/s/" + id + "/t",
                       .home = "/s/" + id + "/home"};
  }

  // One look, and all that follows from it.
  void look() {
    pool_->look();
    settle();
    pool_->look();
    settle();
  }
  void settle() {
    io_.restart();
    io_.poll();
  }
  StartOrder order(const std::string& app = "news", const std::string& agent = "claude") {
    StartOrder order;
    order.spec = *catalog_.find(agent);
    order.app = AppName(app);
    order.permission_mode = PermissionMode::approve_reads;
    return order;
  }
  // As a session is made: with a spare, or without.
  std::shared_ptr<SpareMark> start(const std::string& app = "news") {
    const auto claim = pool_->claim_session(order(app));
    StartOrder wanted = order(app);
    wanted.own_dir = "/s/" + (claim ? claim->id() : "own");
    wanted.working_dir = wanted.own_dir + "/work";
    wanted.home_dir = wanted.own_dir + "/home";
    const std::size_t before = starter_.started.size();
    const auto agent = pool_->start_session(wanted);
    EXPECT_TRUE(agent);
    used_.push_back(claim != nullptr);
    if (starter_.started.size() > before) return starter_.started.back();
    for (const auto& mark : starter_.started) {
      if (mark->app == AppName(app) && !mark->is_gone) return mark;
    }
    return nullptr;
  }
  std::size_t spares() const { return pool_->spares_of("claude"); }

  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::json};
  Metrics metrics_;
  CountingIds ids_;
  MarkingStarter starter_;
  AgentCatalog catalog_{
      {spec_of("claude", {.is_auto = true}), spec_of("fixed", {false, 2}), spec_of("off", {})}};
  std::string program_ = "v1";
  std::map<AppName, std::string> profiles_;
  std::set<std::string> dirs_;
  std::size_t places_left_ = 100;
  bool has_login_ = true;
  Demand::Time now_{minutes(1'000)};
  std::vector<bool> used_;
  std::unique_ptr<WarmPool> pool_ =
      std::make_unique<WarmPool>(dependencies(), WarmPool::Options{.auto_max = 4});
};

TEST_F(WarmPoolTest, ThereIsNoSpareBeforeTheFirstUse) {
  look();
  EXPECT_EQ(spares(), 0U);
  EXPECT_TRUE(starter_.started.empty());
}

TEST_F(WarmPoolTest, AfterTheFirstUseTheNextStartTakesASpare) {
  start();
  look();
  EXPECT_EQ(spares(), 1U);
  const auto spare = starter_.started.back();
  EXPECT_TRUE(spare->is_warm);
  EXPECT_TRUE(spare->app.empty());
  EXPECT_EQ(start("other"), spare);
  EXPECT_EQ(spare->app, AppName("other"));
  EXPECT_EQ(used_, (std::vector{false, true}));
  EXPECT_EQ(spares(), 0U);
}

TEST_F(WarmPoolTest, WithoutALoginThereAreNone) {
  start();
  look();
  has_login_ = false;
  look();
  EXPECT_EQ(spares(), 0U);
  EXPECT_TRUE(starter_.started.back()->is_gone);
  has_login_ = true;
  look();
  EXPECT_EQ(spares(), 1U);
}

TEST_F(WarmPoolTest, ASpareIsUsedOnce) {
  start();
  look();
  const auto one = pool_->claim_session(order());
  ASSERT_TRUE(one);
  EXPECT_FALSE(pool_->claim_session(order()));
}

TEST_F(WarmPoolTest, AsManyAsWereStartedTogetherAreKeptAndNoMoreThanTheLimit) {
  for (int i = 0; i < 3; ++i) start();
  look();
  look();
  EXPECT_EQ(spares(), 3U);
  for (int i = 0; i < 9; ++i) start();
  look();
  look();
  EXPECT_EQ(spares(), 4U);
}

TEST_F(WarmPoolTest, ASpareThatDiesIsReplacedAndNotGivenOut) {
  start();
  look();
  starter_.started.back()->is_dead = true;
  now_ += seconds(2);  // the starts are not simultaneous
  EXPECT_FALSE(pool_->claim_session(order()));
  look();
  EXPECT_TRUE(starter_.started[1]->is_gone);
  EXPECT_EQ(spares(), 1U);
  EXPECT_FALSE(starter_.started.back()->is_dead);
}

TEST_F(WarmPoolTest, ASpareThatDiesAfterItWasClaimedIsAPlainStart) {
  start();
  look();
  const auto claim = pool_->claim_session(order());
  ASSERT_TRUE(claim);
  starter_.started.back()->is_dead = true;
  StartOrder wanted = order();
  wanted.own_dir = "/s/" + claim->id();
  wanted.working_dir = wanted.own_dir + "/work";
  wanted.home_dir = wanted.own_dir + "/home";
  EXPECT_TRUE(pool_->start_session(wanted));
  EXPECT_EQ(starter_.orders.back().own_dir, wanted.own_dir);
  EXPECT_FALSE(starter_.orders.back().is_spare);
  settle();
  EXPECT_TRUE(dirs_.contains(claim->id()));  // it is the session's now
}

TEST_F(WarmPoolTest, AnOldSpareIsReplaced) {
  start();
  look();
  const auto old = starter_.started.back();
  now_ += seconds(590);
  start();
  look();
  const auto kept = starter_.started.back();
  EXPECT_NE(kept, old);
  for (int i = 0; i < 2; ++i) {
    now_ += minutes(7);
    pool_->claim_session(order())->give_back();  // it is in use, and this one stays
  }
  look();
  EXPECT_FALSE(kept->is_gone);
  now_ += minutes(1);
  look();
  EXPECT_TRUE(kept->is_gone);
  EXPECT_EQ(spares(), 1U);
}

TEST_F(WarmPoolTest, WithoutUseForTenMinutesNoneIsKept) {
  start();
  look();
  now_ += kDemandKept;
  look();
  EXPECT_EQ(spares(), 0U);
  EXPECT_TRUE(starter_.started.back()->is_gone);
  EXPECT_TRUE(dirs_.empty());
}

TEST_F(WarmPoolTest, ASpareOfAnotherProgramIsReplaced) {
  start();
  look();
  program_ = "v2";
  now_ += seconds(2);
  EXPECT_FALSE(pool_->claim_session(order()));
  look();
  EXPECT_TRUE(starter_.started[1]->is_gone);
  EXPECT_EQ(spares(), 1U);
  EXPECT_TRUE(pool_->claim_session(order()));
}

TEST_F(WarmPoolTest, AnUnusedSpareOfAnotherProgramIsNoticedToo) {
  start();
  look();
  program_ = "v2";
  now_ += seconds(5);
  look();
  EXPECT_TRUE(starter_.started[1]->is_gone);
  EXPECT_EQ(spares(), 1U);
}

TEST_F(WarmPoolTest, WhatPoliciesSayDifferentlyIsNotShared) {
  profiles_[AppName("jailed")] = "files";
  start("news");
  look();
  EXPECT_FALSE(pool_->claim_session(order("jailed")));
  look();
  EXPECT_EQ(spares(), 2U);
  EXPECT_EQ(starter_.orders.back().app, AppName("jailed"));
}

TEST_F(WarmPoolTest, ModesAreNotShared) {
  start();
  look();
  StartOrder wanted = order();
  wanted.permission_mode = PermissionMode::approve_all;
  EXPECT_FALSE(pool_->claim_session(wanted));
}

TEST_F(WarmPoolTest, ItGivesWayWhenPlacesAreNeeded) {
  for (int i = 0; i < 3; ++i) start();
  look();
  look();
  ASSERT_EQ(spares(), 3U);
  places_left_ = 1;
  look();
  EXPECT_EQ(spares(), 1U);
  places_left_ = 0;
  look();
  EXPECT_EQ(spares(), 0U);
  EXPECT_TRUE(dirs_.empty());
}

TEST_F(WarmPoolTest, AClaimThatIsNotNeededGoesBackOrEnds) {
  start();
  look();
  pool_->claim_session(order())->give_back();
  EXPECT_EQ(spares(), 1U);
  EXPECT_TRUE(pool_->claim_session(order()));  // and is dropped at once
  settle();
  EXPECT_TRUE(starter_.started[1]->is_gone);
  EXPECT_TRUE(dirs_.empty());
}

TEST_F(WarmPoolTest, AfterAFailureThePauseGrows) {
  start();
  starter_.fails = true;
  look();
  EXPECT_EQ(starter_.started.size(), 2U);
  look();
  EXPECT_EQ(starter_.started.size(), 2U);
  now_ += seconds(10);
  look();
  EXPECT_EQ(starter_.started.size(), 3U);
  now_ += seconds(10);
  look();
  EXPECT_EQ(starter_.started.size(), 3U);
  now_ += seconds(10);
  starter_.fails = false;
  look();
  EXPECT_EQ(spares(), 1U);
  EXPECT_EQ(dirs_.size(), 1U);
}

TEST_F(WarmPoolTest, AConfiguredNumberIsThereFromTheStart) {
  bool is_over = false;
  boost::asio::co_spawn(io_, pool_->run(), [&](std::exception_ptr) { is_over = true; });
  for (int i = 0; i < 5; ++i) settle();
  EXPECT_EQ(pool_->spares_of("fixed"), 2U);
  EXPECT_EQ(spares(), 0U);
  pool_->close();
  for (int i = 0; i < 5 && !is_over; ++i) settle();
  EXPECT_TRUE(is_over);
  EXPECT_EQ(pool_->spares_of("fixed"), 0U);
}

TEST_F(WarmPoolTest, AnAgentWithoutSparesHasNone) {
  EXPECT_FALSE(pool_->claim_session(order("news", "off")));
  look();
  EXPECT_TRUE(starter_.started.empty());
}

TEST_F(WarmPoolTest, KindsAreBounded) {
  for (std::size_t i = 0; i < 3 * kSpareKindsMax; ++i) {
    const std::string app = "app-" + std::to_string(i);
    profiles_[AppName(app)] = app;
    now_ += seconds(2);
    start(app);
    look();
  }
  EXPECT_LE(spares(), 4U);
  EXPECT_EQ(dirs_.size(), spares());
}

}  // namespace
}  // namespace clawdforge
