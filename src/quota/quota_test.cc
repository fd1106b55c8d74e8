#include "quota/quota.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <vector>

#include "base/async/run_to_end.h"
#include "custody/login_gate.h"

namespace clawdforge {
namespace {

App app_of(std::string name, std::optional<std::int64_t> runs_max = {}) {
  App app;
  app.name = AppName(std::move(name));
  app.runs_max = runs_max;
  return app;
}

Failure failure_of(Cause cause) {
  return {.kind = Errc::unavailable, .code = "a_code", .message = "no", .cause = cause};
}

class QuotaTest : public ::testing::Test {
 protected:
  Result<Ticket> admit(const App& app, std::string agent = "claude") {
    return quota_.admit(app, {WorkKind::run, std::move(agent), "sonnet"});
  }
  Ticket ticket(const App& app, std::string agent = "claude") {
    return std::move(*admit(app, std::move(agent)));
  }
  Result<void> ready(Ticket& ticket) { return run_to_end(io_, ticket.ready()); }
  void end_run(std::optional<Failure> failure) {
    Ticket run = ticket(app_);
    ASSERT_TRUE(ready(run));
    run.settle(failure);
  }
  std::int64_t running() { return metrics_.gauge("clawdforge_runs_running", "").value(); }
  std::int64_t waiting() { return metrics_.gauge("clawdforge_runs_waiting", "").value(); }

  IoContext io_{1};
  Metrics metrics_;
  Quota quota_{{.runs_max = 1,
                .queued_runs_max = 4,
                .runs_max_per_app = 3,
                .agents_max = 1,
                .sessions = {10, 5},
                .connections_max_per_app = 2,
                .event_streams_max_per_app = 1},
               metrics_};
  const App app_ = app_of("app");
  const App other_ = app_of("other");
};

TEST_F(QuotaTest, ARunThatIsReadyHasItsPlaceAndTheNextWaitsForIt) {
  auto first = std::optional(ticket(app_));
  ASSERT_TRUE(ready(*first));
  EXPECT_TRUE(first->has_place());
  Ticket second = ticket(app_);
  EXPECT_FALSE(second.has_place());
  EXPECT_EQ(running(), 1);
  EXPECT_EQ(waiting(), 1);
  first.reset();
  EXPECT_TRUE(ready(second));
}

TEST_F(QuotaTest, AnAppsLimitCountsWhatRunsAndWhatWaits) {
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(ticket(app_));
  const auto refused = admit(app_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::over_quota);
  EXPECT_EQ(refused.error().code, "too_many_runs");
  EXPECT_GT(refused.error().retry_after.count(), 0);
  EXPECT_TRUE(admit(other_)) << "each app has its own limit";
  tickets.pop_back();
  EXPECT_TRUE(admit(app_));
}

TEST_F(QuotaTest, ARunThatIsAnsweredCountsNoMoreForItsAppButKeepsItsPlace) {
  const App narrow = app_of("narrow", 1);
  auto first = std::optional(ticket(narrow));
  ASSERT_TRUE(ready(*first));
  EXPECT_FALSE(admit(narrow));
  first->answered();
  Ticket second = ticket(narrow);
  EXPECT_FALSE(second.has_place()) << "the first is still being cleaned up";
  EXPECT_EQ(running(), 1);
  first.reset();
  EXPECT_TRUE(ready(second));
}

TEST_F(QuotaTest, TheTokensLimitBeatsTheConfiguredOne) {
  const App narrow = app_of("narrow", 1);
  const Ticket only = ticket(narrow);
  EXPECT_FALSE(admit(narrow));
  const App wide = app_of("wide", 5);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(ticket(wide));
  EXPECT_EQ(waiting(), 4);
}

TEST_F(QuotaTest, AnAppWithManyWaitingDelaysAnotherByNoMoreThanOneRun) {
  auto running_one = std::optional(ticket(app_));
  const Ticket queued = ticket(app_);
  const Ticket queued_too = ticket(app_);
  Ticket modest = ticket(other_);
  running_one.reset();
  EXPECT_TRUE(ready(modest));
  EXPECT_FALSE(queued.has_place() || queued_too.has_place());
}

TEST_F(QuotaTest, ARunThatIsDisplacedFromTheQueueMustNotStart) {
  const App greedy = app_of("greedy", 9);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(ticket(greedy));
  const auto refused = admit(greedy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "queue_full");
  const Ticket modest = ticket(other_);
  const auto displaced = ready(tickets.back());
  ASSERT_FALSE(displaced);
  EXPECT_EQ(displaced.error().code, "queue_full");
  tickets.pop_back();
  EXPECT_EQ(waiting(), 4);
}

TEST_F(QuotaTest, ARunThatIsWithdrawnMustNotStartAndOneThatHasItsPlaceKeepsIt) {
  Ticket first = ticket(app_);
  Ticket second = ticket(app_);
  second.withdraw();
  EXPECT_EQ(waiting(), 0);
  const auto withdrawn = ready(second);
  ASSERT_FALSE(withdrawn);
  EXPECT_EQ(withdrawn.error().kind, Errc::gone);
  first.withdraw();
  EXPECT_TRUE(ready(first));
}

TEST_F(QuotaTest, WithoutALoginTheNextRunIsRefusedBeforeItTakesAnything) {
  end_run(failure_of(Cause::login));
  const auto refused = admit(app_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, Cause::login);
  EXPECT_GT(refused.error().retry_after.count(), 0);
  EXPECT_EQ(running() + waiting(), 0);
  EXPECT_TRUE(admit(app_, "demo")) << "each agent has its own breaker";
}

TEST_F(QuotaTest, ARunThatWaitsWhileTheBreakerShutsMustNotStart) {
  auto first = std::optional(ticket(app_));
  ASSERT_TRUE(ready(*first));
  Ticket second = ticket(app_);
  std::optional<Failure> failure = failure_of(Cause::account_limit);
  first->settle(failure);
  EXPECT_GT(failure->retry_after.count(), 0) << "its caller is told how long";
  first.reset();
  const auto refused = ready(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, Cause::account_limit);
}

TEST_F(QuotaTest, AFailureThatSaysNothingOfTheAgentLeavesTheBreakerOpen) {
  end_run(failure_of(Cause::other));
  end_run(failure_of(Cause::agent_exited));
  EXPECT_TRUE(admit(app_));
}

TEST_F(QuotaTest, WhateverBecomesOfATicketAllIsGivenBack) {
  {
    const Ticket unused = ticket(app_);
  }
  {
    Ticket withdrawn = ticket(app_);
    withdrawn.withdraw();
  }
  {
    Ticket started = ticket(app_);
    ASSERT_TRUE(ready(started));
  }
  {
    Ticket moved_from = ticket(app_);
    const Ticket moved = std::move(moved_from);
    EXPECT_EQ(running(), 1);
  }
  end_run(std::nullopt);
  EXPECT_EQ(running() + waiting(), 0);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(ticket(app_));
  EXPECT_EQ(waiting(), 2) << "the app's whole limit is there again";
}

TEST_F(QuotaTest, TurnsAndNewSessionsAreReadyAtOnceAndTakeNoPlace) {
  for (const WorkKind kind : {WorkKind::turn, WorkKind::session_start}) {
    auto admitted = quota_.admit(app_, {kind, "claude", ""});
    ASSERT_TRUE(admitted && ready(*admitted));
    EXPECT_FALSE(admitted->has_place());
    std::optional<Failure> failure = failure_of(Cause::login);
    admitted->settle(failure);
  }
  EXPECT_TRUE(admit(app_)) << "only runs shut the breaker";
}

TEST_F(QuotaTest, RunsAndTurnsShareTheLimitsOfTheAccountAndNothingElse) {
  const auto turn = [&] { return quota_.admit(app_, {WorkKind::turn, "claude", ""}); };
  end_run(failure_of(Cause::login));
  EXPECT_FALSE(admit(app_));
  auto works = turn();
  ASSERT_TRUE(works && ready(*works)) << "a session's agent may have a login of its own";
  std::optional<Failure> none;
  works->settle(none);
  EXPECT_TRUE(admit(app_));
  auto hurried = turn();
  ASSERT_TRUE(hurried && ready(*hurried));
  std::optional<Failure> slower = failure_of(Cause::rate_limit);
  hurried->settle(slower);
  EXPECT_TRUE(turn()) << "a plain 429 does not stop conversations";
  auto first = turn();
  auto second = turn();
  ASSERT_TRUE(first && second && ready(*first) && ready(*second));
  std::optional<Failure> failure = failure_of(Cause::account_limit);
  first->settle(failure);
  EXPECT_FALSE(admit(app_));
  EXPECT_EQ(turn().error().cause, Cause::account_limit);
  EXPECT_EQ(second->refused_since().value_or(Failure{}).cause, Cause::account_limit);
  second->settle(none);
  EXPECT_FALSE(turn()) << "one that was not asked says nothing";
}

class OneLogin final : public LoginGate {
 public:
  bool keeps(std::string_view agent) const override { return agent == "claude"; }
  std::optional<LoginRefusal> refusal(std::string_view agent) const override {
    return keeps(agent) ? refusal_ : std::nullopt;
  }
  Signal& changed() override { return changed_; }
  void note_waiting(int change) override { waiting_ += change; }
  void note_refused(std::string_view /*agent*/,
                    std::chrono::steady_clock::time_point /*begun*/) override {
    ++refused_;
  }

  std::optional<LoginRefusal> refusal_;
  Signal changed_;
  int waiting_ = 0;
  int refused_ = 0;
};

TEST_F(QuotaTest, WorkWaitsForALoginThatMayBeGoodSoon) {
  OneLogin login;
  Quota quota(
      {.runs_max = 2, .queued_runs_max = 2, .agents_max = 2, .sessions = {}, .logins = &login},
      metrics_);
  const Failure renewing{.kind = Errc::unavailable, .code = "login_renewing"};
  login.refusal_ = LoginRefusal{renewing, true};
  auto held = quota.admit(app_, {WorkKind::run, "claude", ""});
  ASSERT_TRUE(held);
  Ticket ticket = std::move(*held);
  std::optional<Result<void>> answer;
  boost::asio::co_spawn(io_, ticket.ready(), [&](std::exception_ptr, Result<void> result) {
    answer.emplace(std::move(result));
  });
  io_.restart();
  io_.run_for(std::chrono::milliseconds(10));
  EXPECT_EQ(login.waiting_, 1);
  EXPECT_FALSE(answer);
  login.refusal_.reset();
  login.changed_.notify_all();
  io_.restart();
  io_.run_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(login.waiting_, 0);

  std::optional<Failure> failure = failure_of(Cause::login);
  ticket.settle(failure);
  EXPECT_EQ(login.refused_, 1);
  EXPECT_TRUE(quota.admit(app_, {WorkKind::run, "claude", ""})) << "no breaker has shut";

  login.refusal_ = LoginRefusal{renewing, false};
  EXPECT_EQ(quota.admit(app_, {WorkKind::run, "claude", ""}).error().code, "login_renewing");
  EXPECT_TRUE(quota.admit(app_, {WorkKind::run, "demo", ""}));
}

TEST_F(QuotaTest, AgentsOfSessionsHavePlacesOfTheirOwn) {
  const Ticket run = ticket(app_);
  auto first = quota_.admit_agent(AppName("app"));
  ASSERT_TRUE(first && ready(*first));
  auto second = quota_.admit_agent(AppName("other"));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_place());
  EXPECT_EQ(quota_.agents_waiting(), 1u);
  first = std::unexpected(Failure{});
  EXPECT_TRUE(ready(*second));
}

TEST_F(QuotaTest, AnAppsOwnLimitOfSessionsBeatsTheConfiguredOne) {
  App app = app_of("app");
  EXPECT_EQ(quota_.session_limits(app).open_max_per_app, 5);
  app.sessions_max = 7;
  EXPECT_EQ(quota_.session_limits(app).open_max_per_app, 7);
}

TEST_F(QuotaTest, TheShareOfSessionsHoldsForAppsWithoutALimitOfTheirOwn) {
  Quota quota({.sessions = {.open_max = 16, .open_share_max = 12}}, metrics_);
  App app = app_of("app");
  EXPECT_EQ(quota.session_limits(app).open_share_max, 12);
  app.sessions_max = 16;
  EXPECT_EQ(quota.session_limits(app).open_share_max, std::nullopt);
}

TEST_F(QuotaTest, OneAppLeavesConnectionsAndStreamsToTheOthers) {
  const auto first = quota_.admit_connection(app_);
  auto second = quota_.admit_connection(app_);
  const auto third = quota_.admit_connection(app_);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, "too_many_app_connections");
  EXPECT_TRUE(quota_.admit_connection(other_));
  second = std::unexpected(Failure{});
  EXPECT_TRUE(quota_.admit_connection(app_));
  const auto stream = quota_.admit_event_stream(app_);
  const auto refused = quota_.admit_event_stream(app_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "too_many_streams");
}

}  // namespace
}  // namespace clawdforge
