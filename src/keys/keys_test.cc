#include "keys/keys.h"

#include <gtest/gtest.h>

#include "base/async/task_group.h"
#include "ledger/keys/key_rows.h"
#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kAgeMax{100};

class KeysTest : public ::testing::Test {
 protected:
  KeysTest() { EXPECT_TRUE(house_.await(house_.ledger->apps.add(app_named("a"), std::nullopt))); }

  static AskKey key_of(const std::string& key, const std::string& body = "body") {
    return {.digest = sha256(key),
            .fingerprint = sha256(body),
            .app = AppName("a"),
            .request_id = "r-" + key,
            .begun_at = {},
            .instance_id = {}};
  }
  static Task<void> claim_into(Keys* keys, AskKey key, HangUp* hang_up,
                               std::optional<Result<KeyClaim>>* into) {
    into->emplace(co_await keys->claim(std::move(key), hang_up));
  }
  void begin_claim(AskKey key, HangUp* hang_up, std::optional<Result<KeyClaim>>* into) {
    tasks_.spawn(claim_into(&keys_, std::move(key), hang_up, into));
  }
  // Until what was begun has come as far as it can.
  void settle() {
    for (int turn = 0; turn < 100; ++turn) {
      EXPECT_TRUE(house_.await(house_.ledger->keys.count_by_app()));
    }
  }
  void finish(KeyClaim& claim, const std::string& body, int status = 200) {
    const auto finished =
        house_.await(keys_.finish(&claim, {.status = status, .body = body}, status < 300));
    EXPECT_TRUE(finished);
  }

  TempDir dir_;
  LedgerHouse house_;
  ManualClock clock_{TimePoint(std::chrono::seconds(1'800'000'000))};
  Keys keys_{open_ledger().keys, clock_, InstanceId("i1"), {kAgeMax, 3, 1'000}};
  TaskGroup tasks_{house_.io.get_executor()};

 private:
  Ledger& open_ledger() {
    EXPECT_TRUE(house_.open(dir_.file("l.db")));
    return *house_.ledger;
  }
};

TEST_F(KeysTest, TheSecondGetsWhatTheFirstHasKept) {
  auto first = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(first);
  ASSERT_FALSE(first->answer());
  finish(*first, "done");
  const auto second = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(second && second->answer());
  EXPECT_EQ(second->answer()->body, "done");
  EXPECT_TRUE(second->is_replay());
  EXPECT_EQ(house_.await(keys_.claim(key_of("k", "other"), nullptr)).error().code,
            "idempotency_mismatch");
}

TEST_F(KeysTest, ARefusalIsSharedAndNotKept) {
  auto first = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(first);
  std::optional<Result<KeyClaim>> second;
  begin_claim(key_of("k"), nullptr, &second);
  settle();
  EXPECT_FALSE(second);
  finish(*first, "no", 429);
  settle();
  ASSERT_TRUE(second && *second && (*second)->answer());
  EXPECT_EQ((*second)->answer()->status, 429);
  EXPECT_FALSE((*second)->is_replay());
  const auto third = house_.await(keys_.claim(key_of("k", "other"), nullptr));
  EXPECT_TRUE(third && !third->answer());
}

TEST_F(KeysTest, AClaimThatIsDroppedGoesToTheNext) {
  auto first = std::make_unique<Result<KeyClaim>>(house_.await(keys_.claim(key_of("k"), nullptr)));
  std::optional<Result<KeyClaim>> second;
  begin_claim(key_of("k"), nullptr, &second);
  settle();
  first.reset();
  settle();
  ASSERT_TRUE(second && *second);
  EXPECT_FALSE((*second)->answer());
}

TEST_F(KeysTest, OnlyTheLastHangUpCounts) {
  HangUp of_first;
  HangUp of_second;
  auto first = house_.await(keys_.claim(key_of("k"), &of_first));
  ASSERT_TRUE(first);
  std::optional<Result<KeyClaim>> second;
  begin_claim(key_of("k"), &of_second, &second);
  settle();
  of_first.happen();
  EXPECT_FALSE(first->hang_up()->has_happened());
  of_second.happen();
  EXPECT_TRUE(first->hang_up()->has_happened());
  settle();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->error().code, "cancelled");
}

TEST_F(KeysTest, KeysAndTheirBytesAreBounded) {
  for (const char* key : {"1", "2", "3"}) {
    auto claim = house_.await(keys_.claim(key_of(key), nullptr));
    ASSERT_TRUE(claim) << key;
    finish(*claim, "x");
  }
  EXPECT_EQ(house_.await(keys_.claim(key_of("4"), nullptr)).error().code, "too_many_keys");
  clock_.advance(kAgeMax);
  ASSERT_TRUE(house_.await(keys_.sweep()));
  auto large = house_.await(keys_.claim(key_of("4"), nullptr));
  ASSERT_TRUE(large);
  finish(*large, std::string(1'000, 'x'));
  EXPECT_EQ(house_.await(keys_.claim(key_of("5"), nullptr)).error().code, "too_many_keys");
}

TEST_F(KeysTest, AnOldKeyIsNew) {
  auto first = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(first);
  finish(*first, "old");
  clock_.advance(kAgeMax);
  const auto second = house_.await(keys_.claim(key_of("k", "other"), nullptr));
  EXPECT_TRUE(second && !second->answer());
}

TEST_F(KeysTest, WhatALifeThatEndedHadUnderWayIsInterrupted) {
  auto& runs = house_.ledger->runs;
  AskKey key = key_of("k");
  key.instance_id = InstanceId("i0");
  clawdforge::Run run;
  run.id = RunId("run");
  run.app = AppName("a");
  run.agent = "demo";
  run.key = key;
  ASSERT_TRUE(house_.await(runs.add(run, {})));
  // Of this life, it would be settled soon.
  EXPECT_EQ(house_.await(keys_.claim(key_of("k"), nullptr)).error().code, "ledger_unavailable");
  EXPECT_EQ(house_.await(house_.ledger->keys.interrupt_left(clock_.now())), 1);
  const auto found = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(found && found->answer());
  EXPECT_EQ(found->answer()->kind, KeptKind::interrupted);
  EXPECT_EQ(found->answer()->request_id, "r-k");
}

TEST_F(KeysTest, TheAnswerOfARunComesWithItsEndAndTheKeysGoWithTheApp) {
  auto claim = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(claim);
  KeyHold& hold = *claim->hold();
  clawdforge::Run run;
  run.id = RunId("run");
  run.app = AppName("a");
  run.agent = "demo";
  run.key = hold.begin();
  ASSERT_TRUE(house_.await(house_.ledger->runs.add(run, {})));
  RunEnd end;
  end.run_id = run.id;
  end.app = run.app;
  end.state = RunState::succeeded;
  end.key = hold.keep({.status = 200, .body = "kept"}, clock_.now());
  ASSERT_TRUE(house_.await(house_.ledger->runs.settle(end)));
  hold.is_settled = true;
  finish(*claim, "not this");
  const auto again = house_.await(keys_.claim(key_of("k"), nullptr));
  ASSERT_TRUE(again && again->answer());
  EXPECT_EQ(again->answer()->body, "kept");
  ASSERT_TRUE(house_.await(house_.ledger->apps.remove(AppName("a"), clock_.now(), std::nullopt)));
  const auto gone = house_.await(keys_.claim(key_of("k"), nullptr));
  EXPECT_TRUE(gone && !gone->answer());
}

}  // namespace
}  // namespace clawdforge
