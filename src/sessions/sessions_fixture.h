// For tests: Sessions with all it needs, a ledger in memory, and agents without processes.
// Everything runs on the test's own thread, as far as the test lets it: begin() starts a call,
// await() runs the loop until a condition holds.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/async/run_to_end.h"
#include "ledger/ledger_fixture.h"
#include "quota/quota.h"
#include "sessions/live/session_dependencies.h"
#include "sessions/live_sessions.h"
#include "sessions/scripted_agent_fixture.h"
#include "sessions/session_closer.h"
#include "sessions/sessions.h"
#include "storage/work/upload_files.h"

namespace clawdforge {

// The changes of seats that all tests of this program have caused.
inline std::set<SeatTransition>& transitions_taken() {
  static std::set<SeatTransition> taken;
  return taken;
}

class SessionsTest : public ::testing::Test {
 protected:
  template <class T>
  using Call = std::shared_ptr<std::optional<Result<T>>>;  // empty while it is under way

  explicit SessionsTest(std::size_t agents_max = 4) {
    limits_.sessions = {100, {}};
    limits_.agents_max = agents_max;
    options_.permission_mode = PermissionMode::approve_all;
    options_.cancel_grace = std::chrono::milliseconds(50);
    options_.start_max = std::chrono::seconds(30);
    options_.first_sign_max = std::chrono::seconds(30);
    options_.permission_timeout = std::chrono::seconds(30);
    options_.reader_bytes_max = 1024 * 1024;
    app_->name = AppName("news");
    other_->name = AppName("other");
    make_sessions();
  }
  ~SessionsTest() override { stop(); }

  // With options that the test has changed.
  void make_sessions() {
    stop();
    quota_ = std::make_unique<Quota>(limits_, house_.metrics);
    sessions_ = std::make_unique<Sessions>(
        SessionDependencies{house_.io.get_executor(), house_.ledger->sessions,
                            house_.ledger->journal, *quota_, policies_, catalog_, starter_,
                            uploads_, dirs_, acpx_records_, clock_, ids_, house_.log,
                            house_.metrics},
        options_);
    sessions_->live().on_seat_change(
        [](SeatTransition transition) { transitions_taken().insert(transition); });
  }
  void stop() {
    if (sessions_) run_to_end(house_.io, stopped(sessions_.get()));
    sessions_.reset();
  }

  template <class T>
  Call<T> begin(Async<T> task) {
    auto call = std::make_shared<std::optional<Result<T>>>();
    boost::asio::co_spawn(house_.io, std::move(task),
                          [call](std::exception_ptr thrown, Result<T> result) {
                            if (thrown) std::rethrow_exception(thrown);
                            call->emplace(std::move(result));
                          });
    return call;
  }
  template <class Condition>
  void await(Condition holds, const char* what = "the condition") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << what << " did not come true";
      house_.io.restart();
      house_.io.run_one_for(std::chrono::milliseconds(20));
    }
  }
  template <class T>
  Result<T> result_of(const Call<T>& call) {
    await([&] { return call->has_value(); }, "the call's end");
    return std::move(**call);
  }
  template <class T>
  Result<T> run(Async<T> task) {
    return result_of(begin(std::move(task)));
  }

  Call<Session> begin_create(HangUp* hang_up = nullptr) {
    SessionRequest request;
    request.agent = "fake";
    return begin(sessions_->create(app_, std::move(request), hang_up));
  }
  SessionId create() {
    auto made = result_of(begin_create());
    EXPECT_TRUE(made) << made.error().code;
    return made ? made->id : SessionId();
  }
  Call<TurnOutcome> begin_turn(const SessionId& id, std::string prompt,
                               std::chrono::seconds timeout = std::chrono::seconds(60),
                               HangUp* hang_up = nullptr) {
    return begin(sessions_->turn(app_, id, turn_request(std::move(prompt), timeout), hang_up));
  }
  static TurnRequest turn_request(std::string prompt, std::chrono::seconds timeout) {
    TurnRequest request;
    request.prompt = std::move(prompt);
    request.timeout = timeout;
    request.received = std::chrono::steady_clock::now();
    return request;
  }
  // "stop_reason text", or the code of what went wrong.
  std::string told(const Call<TurnOutcome>& call) {
    const auto outcome = result_of(call);
    if (!outcome) return std::string(outcome.error().code);
    if (outcome->failure) return std::string(outcome->failure->code);
    return outcome->stop_reason.value_or("") + " " + outcome->text;
  }
  std::string ask(const SessionId& id, std::string prompt) {
    return told(begin_turn(id, std::move(prompt)));
  }

  SeatState seat_of(const SessionId& id) {
    const auto live = sessions_->live().find(id);
    return live ? live->seat().state() : SeatState::empty;
  }
  void await_seat(const SessionId& id, SeatState state) {
    await([&] { return seat_of(id) == state; }, "the seat's state");
  }
  SessionId newest_id() {
    const auto ids = run(house_.ledger->sessions.all_ids());
    return ids && !ids->empty() ? ids->back() : SessionId();
  }
  AgentControl& agent(std::size_t number = 0) { return *starter_.started.at(number); }

  static AgentSpec fake_agent() {
    AgentSpec spec;
    spec.name = "fake";
    for (const PermissionMode mode : {PermissionMode::deny_all, PermissionMode::approve_reads,
                                      PermissionMode::ask, PermissionMode::approve_all}) {
      spec.modes[mode] = {};
    }
    return spec;
  }
  static Task<bool> stopped(Sessions* sessions) {
    co_await sessions->stop();
    co_return true;
  }

  TempDir dir_;
  ManualClock clock_{TimePoint(std::chrono::hours(500'000))};
  CountingIds ids_;
  LedgerHouse house_;
  bool is_open_ = house_.open(dir_.file("ledger.db")).has_value();
  Disk disk_{house_.io.get_executor()};
  UploadFiles upload_files_{dir_.path(), disk_};
  Uploads uploads_{house_.ledger->uploads, upload_files_, clock_, ids_, InstanceId("i"), 1'000'000};
  AgentCatalog catalog_{{fake_agent()}};
  ScriptedStarter starter_;
  SessionDirs dirs_{dir_.path(), disk_, house_.log};
  AcpxRecords acpx_records_{dir_.path(), disk_};
  Quota::Options limits_;
  SessionOptions options_;
  std::unique_ptr<Quota> quota_;
  const Policies policies_{{}, {}, {}};
  std::shared_ptr<App> app_ = std::make_shared<App>();
  std::shared_ptr<App> other_ = std::make_shared<App>();
  HangUp hang_up_;
  std::unique_ptr<Sessions> sessions_;
};

}  // namespace clawdforge
