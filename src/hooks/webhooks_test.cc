#include "hooks/webhooks.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/async/run_to_end.h"
#include "base/ids.h"
#include "ledger/open_ledger.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

using std::chrono::seconds;

// The receivers: each call waits until the test answers it, unless all are answered at once.
struct Receivers {
  Async<int> call(DeliveryRequest request) {
    const std::string host = request.to.host;
    ++calls[host];
    ++at_once[host];
    most_at_once[host] = std::max(most_at_once[host], at_once[host]);
    ++all_at_once;
    most_of_all = std::max(most_of_all, all_at_once);
    ids.push_back(request.id);
    while (hanging.contains(host)) co_await changed.wait();
    --at_once[host];
    --all_at_once;
    if (down.contains(host)) co_return fail(Errc::unavailable, "webhook_failed", "it is down");
    co_return statuses.contains(host) ? statuses[host] : 204;
  }

  std::map<std::string, int> calls;
  std::map<std::string, int> at_once;
  std::map<std::string, int> most_at_once;
  std::map<std::string, int> statuses;
  std::set<std::string> hanging;
  std::set<std::string> down;
  std::vector<std::string> ids;
  int all_at_once = 0;
  int most_of_all = 0;
  Signal changed;
};

class WebhooksTest : public ::testing::Test {
 protected:
  WebhooksTest() {
    ledger_ = std::move(
        *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
    begin();
  }
  ~WebhooksTest() override { end(); }

  // Another life of the sender on the same ledger.
  void begin() {
    sender_ = std::make_unique<Webhooks>(
        Webhooks::Dependencies{
            .executor = io_.get_executor(),
            .rows = ledger_->deliveries,
            .clock = clock_,
            .log = log_,
            .metrics = metrics_,
            .load_trust = load_nothing,
            .call =
                [this](DeliveryRequest request) { return receivers_.call(std::move(request)); }},
        Webhooks::Options{
            .retries = {.pauses = {seconds(5), seconds(30)}, .give_up_after = seconds(100)},
            .time_max = seconds(10),
            .kept_for = seconds(1'000)});
    ASSERT_TRUE(run_to_end(io_, sender_->begin()));
    tasks_.spawn(sender_->run());
  }
  void end() {
    if (!sender_) return;
    const auto stopping = [](Webhooks* sender, TaskGroup* tasks) -> Async<void> {
      co_await sender->stop();
      co_await tasks->join();
      co_return Result<void>{};
    };
    receivers_.hanging.clear();
    receivers_.changed.notify_all();
    ASSERT_TRUE(run_to_end(io_, stopping(sender_.get(), &tasks_)));
    sender_.reset();
  }
  static Async<TlsTrust> load_nothing() { co_return TlsTrust(); }

  void mint(const std::string& app) {
    App fresh;
    fresh.name = AppName(app);
    fresh.token_digest = sha256(app);
    fresh.policy = *policy_from(R"({"webhook_urls":["http://)" + app + R"(.example/"]})");
    ASSERT_TRUE(run_to_end(
        io_, ledger_->apps.add(fresh, std::nullopt, Secret(std::string("whsec_AAECAwQFBgc=")))));
  }
  std::string tell(const std::string& app) {
    NewDelivery fresh{.id = DeliveryId(ids_.uuid()),
                      .app = AppName(app),
                      .url = "http://" + app + ".example/hook",
                      .type = "job.succeeded",
                      .body = std::make_shared<const std::string>("{}"),
                      .at = clock_.now()};
    std::string id = fresh.id.str();
    EXPECT_TRUE(run_to_end(io_, ledger_->deliveries.add(std::move(fresh))));
    sender_->wake(AppName(app));
    return id;
  }
  // Runs the loop until it holds.
  template <class Condition>
  testing::AssertionResult comes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return testing::AssertionFailure();
      io_.run_one_for(std::chrono::milliseconds(20));
      if (io_.stopped()) io_.restart();
    }
    return testing::AssertionSuccess();
  }
  std::vector<Delivery> list(std::optional<DeliveryState> state = std::nullopt) {
    return run_to_end(io_, ledger_->deliveries.page({.audit = {}, .state = state}))->deliveries;
  }
  std::size_t count(DeliveryState state) { return list(state).size(); }
  void pass(seconds time, const std::string& app) {
    clock_.advance(time);
    sender_->wake(AppName(app));  // as its timer would; time only passes here
  }

  IoContext io_{1};
  TaskGroup tasks_{io_.get_executor()};
  Log log_{LogLevel::error, LogFormat::text};
  Metrics metrics_;
  ManualClock clock_{TimePoint(std::chrono::hours(500'000))};
  CountingIds ids_;
  Receivers receivers_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Webhooks> sender_;
};

TEST_F(WebhooksTest, WhatIsToldIsDeliveredOnce) {
  mint("a");
  const std::string id = tell("a");
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 1; }));
  EXPECT_EQ(receivers_.ids, std::vector{id});
  const Delivery delivered = list().front();
  EXPECT_EQ(delivered.attempts, 1);
  EXPECT_EQ(delivered.last_status, 204);
  EXPECT_TRUE(delivered.ended_at);
}

TEST_F(WebhooksTest, AFailureIsTriedAgainAfterItsPauseUntilItIsGivenUp) {
  mint("a");
  receivers_.statuses["a.example"] = 500;
  const std::string id = tell("a");
  ASSERT_TRUE(comes([&] { return !list().empty() && list().front().attempts == 1; }));
  EXPECT_EQ(list().front().next_at, clock_.now() + seconds(5));
  EXPECT_EQ(list().front().last_status, 500);
  pass(seconds(4), "a");
  EXPECT_EQ(receivers_.calls["a.example"], 1);
  for (int attempts = 2; attempts <= 4; ++attempts) {  // after 5, 35 and 65 seconds
    pass(seconds(31), "a");
    ASSERT_TRUE(comes([&] { return list().front().attempts == attempts; })) << attempts;
  }
  ASSERT_TRUE(comes([&] { return list().front().state == DeliveryState::dead; }));
  EXPECT_EQ(receivers_.ids, std::vector<std::string>(4, id)) << "one id for one event";

  receivers_.statuses.clear();
  ASSERT_TRUE(run_to_end(io_, sender_->retry(DeliveryId(id))));
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 1; }));
  EXPECT_FALSE(run_to_end(io_, sender_->retry(DeliveryId(id)))) << "it is not dead any more";
}

TEST_F(WebhooksTest, WhatAnEarlierLifeLeftIsSent) {
  mint("a");
  receivers_.down.insert("a.example");
  tell("a");
  ASSERT_TRUE(comes([&] { return list().front().attempts == 1; }));
  end();
  receivers_.down.clear();
  clock_.advance(seconds(5));
  begin();
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 1; }));
}

TEST_F(WebhooksTest, AnAppHasFourAtOnceAndAllHaveSixteen) {
  for (const char* app : {"a", "b", "c", "d", "e", "f"}) {
    mint(app);
    receivers_.hanging.insert(std::string(app) + ".example");
    for (int i = 0; i < 6; ++i) tell(app);
  }
  ASSERT_TRUE(comes([&] { return receivers_.all_at_once == 16; }));
  receivers_.hanging.clear();
  receivers_.changed.notify_all();
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 36; }));
  EXPECT_EQ(receivers_.most_of_all, 16);
  for (const auto& [host, most] : receivers_.most_at_once) EXPECT_LE(most, 4) << host;
}

TEST_F(WebhooksTest, ReceiversThatFailedLeavePlacesToOthers) {
  for (int i = 0; i < 20; ++i) {
    const std::string app = "dead" + std::to_string(i);
    mint(app);
    receivers_.down.insert(app + ".example");
    tell(app);
    tell(app);
    ASSERT_TRUE(comes([&] { return receivers_.calls[app + ".example"] == 2; }));
  }
  ASSERT_TRUE(comes([&] { return sender_->under_way() == 0; }));
  // From now on they take the request and never answer.
  for (const std::string& host : receivers_.down) receivers_.hanging.insert(host);
  clock_.advance(seconds(6));
  sender_->wake(AppName("dead0"));
  ASSERT_TRUE(comes([&] { return receivers_.all_at_once == static_cast<int>(kFailingAtOnceMax); }));
  mint("alive");
  tell("alive");
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 1; }));
  EXPECT_EQ(receivers_.all_at_once, static_cast<int>(kFailingAtOnceMax));
}

TEST_F(WebhooksTest, WhatItsOwnerNoLongerAllowsIsDead) {
  mint("a");
  receivers_.down.insert("a.example");
  tell("a");
  ASSERT_TRUE(comes([&] { return list().front().attempts == 1; }));
  const auto take_back = [](App& app) { app.policy.webhook_urls.reset(); };
  ASSERT_TRUE(run_to_end(io_, ledger_->apps.change(AppName("a"), take_back)));
  pass(seconds(6), "a");
  ASSERT_TRUE(comes([&] { return count(DeliveryState::dead) == 1; }));
  EXPECT_EQ(receivers_.calls["a.example"], 1) << "it is not called again";
}

TEST_F(WebhooksTest, OfTooManyTheLastAreDeadAtOnce) {
  mint("a");
  receivers_.hanging.insert("a.example");
  for (int i = 0; i < 1'001; ++i) tell("a");
  EXPECT_EQ(count(DeliveryState::dead), 1u);
  const auto retried = run_to_end(io_, sender_->retry(list(DeliveryState::dead).front().id));
  ASSERT_FALSE(retried);
  EXPECT_EQ(retried.error().code, "delivery_without_body");
}

TEST_F(WebhooksTest, ARemovedAppHasNoDeliveries) {
  mint("a");
  receivers_.down.insert("a.example");
  tell("a");
  ASSERT_TRUE(comes([&] { return list().front().attempts == 1; }));
  ASSERT_TRUE(run_to_end(io_, ledger_->apps.remove(AppName("a"), clock_.now())));
  EXPECT_TRUE(list().empty());
  pass(seconds(6), "a");
  ASSERT_TRUE(comes([&] { return sender_->under_way() == 0; }));
  EXPECT_EQ(receivers_.calls["a.example"], 1);
}

TEST_F(WebhooksTest, WhatEndedLongAgoIsSwept) {
  mint("a");
  tell("a");
  ASSERT_TRUE(comes([&] { return count(DeliveryState::delivered) == 1; }));
  ASSERT_TRUE(run_to_end(io_, sender_->sweep()));
  EXPECT_EQ(list().size(), 1u);
  clock_.advance(seconds(1'001));
  ASSERT_TRUE(run_to_end(io_, sender_->sweep()));
  EXPECT_TRUE(list().empty());
}

}  // namespace
}  // namespace clawdforge
