#include "ledger/core/ledger_worker.h"

#include <semaphore>
#include <stdexcept>

#include "ledger/ledger_fixture.h"

namespace clawdforge {
namespace {

// A database that fails where a test says so, and that can be held up in a commit.
class ScriptedDriver final : public SqlDriver {
 public:
  struct Script {
    std::atomic<int> begins = 0;
    std::atomic<int> write_begins = 0;
    std::atomic<int> commits = 0;
    std::atomic<int> rollbacks = 0;
    std::atomic<bool> begin_fails = false;
    std::atomic<int> commits_failing = 0;  // the next so many
    std::atomic<bool> holds_commits = false;
    std::counting_semaphore<> reached{0};  // by a commit that is held
    std::counting_semaphore<> released{0};
  };

  explicit ScriptedDriver(Script& script) : script_(script) {}

  Result<SqlResult> execute(std::string_view, std::span<const SqlValue>) override {
    return SqlResult{};
  }
  Result<void> run_script(std::string_view) override { return {}; }
  std::string_view auto_id_type() const override { return ""; }
  Result<void> begin(Access access) override {
    ++script_.begins;
    if (access == Access::read) return {};
    ++script_.write_begins;
    if (script_.begin_fails) return ledger_unavailable("locked");
    return {};
  }
  Result<void> commit() override {
    if (script_.holds_commits.exchange(false)) {
      script_.reached.release();
      script_.released.acquire();
    }
    if (script_.commits_failing > 0) {
      --script_.commits_failing;
      return ledger_unavailable("full");
    }
    ++script_.commits;
    return {};
  }
  void rollback() override { ++script_.rollbacks; }
  Result<std::int64_t> change_mark() override { return 0; }
  Result<void> tidy(Moment) override { return {}; }

 private:
  Script& script_;
};

class LedgerWorkerTest : public ::testing::Test {
 protected:
  LedgerWorkerTest() { make({}); }

  void make(LedgerWorkerOptions options) {
    worker_.reset();
    metrics_ = std::make_unique<Metrics>();
    worker_ = std::make_unique<LedgerWorker>(std::make_unique<ScriptedDriver>(script_),
                                             io_.get_executor(), options, log_, *metrics_);
  }

  struct Answer {
    bool is_given = false;
    bool is_good = false;
    int value = -1;
    Failure error;
  };

  // Calls `work` and keeps what it comes to.
  void call(Access access, LedgerWork<int> work, OnStall on_stall = OnStall::refuse,
            Lane lane = {}) {
    const std::size_t place = answers_.size();
    answers_.emplace_back();
    boost::asio::co_spawn(io_,
                          worker_->call<int>(std::move(lane), access, std::move(work), on_stall),
                          [this, place](std::exception_ptr, Result<int> result) {
                            Answer& answer = answers_[place];
                            answer.is_given = true;
                            answer.is_good = result.has_value();
                            if (result) answer.value = *result;
                            if (!result) answer.error = std::move(result.error());
                          });
    io_.poll();
    io_.restart();
  }

  // The worker holds a first commit, so that what is called next waits together.
  void hold(OnStall on_stall = OnStall::refuse) {
    script_.holds_commits = true;
    call(Access::write, [](SqlDriver&) { return 0; }, on_stall);
    script_.reached.acquire();
  }
  void release_and_run() {
    script_.released.release();
    io_.run();
  }

  IoContext io_;
  Log log_{LogLevel::error, LogFormat::text};
  std::unique_ptr<Metrics> metrics_;
  ScriptedDriver::Script script_;
  std::vector<Answer> answers_;
  std::unique_ptr<LedgerWorker> worker_;
};

TEST_F(LedgerWorkerTest, AnswersNothingBeforeTheCommit) {
  hold();
  io_.poll();
  EXPECT_FALSE(answers_[0].is_given);
  release_and_run();
  EXPECT_EQ(answers_[0].value, 0);
}

TEST_F(LedgerWorkerTest, CommitsTogetherWhatArrivesDuringACommit) {
  hold();
  for (int i = 1; i <= 100; ++i) call(Access::write, [i](SqlDriver&) { return i; });
  call(Access::read, [](SqlDriver&) { return 101; });
  release_and_run();
  EXPECT_EQ(script_.commits, 2);
  for (int i = 0; i <= 101; ++i) EXPECT_EQ(answers_[i].value, i);
}

TEST_F(LedgerWorkerTest, PutsNoMoreThanItsLimitIntoOneCommit) {
  make({.group_jobs_max = 10});
  hold();
  for (int i = 1; i <= 25; ++i) call(Access::write, [i](SqlDriver&) { return i; });
  release_and_run();
  EXPECT_EQ(script_.commits, 4);
}

TEST_F(LedgerWorkerTest, TakesABadCallOutOfItsGroup) {
  hold();
  std::vector<int> attempts(10);
  for (int i = 0; i < 10; ++i) {
    call(Access::write, [i, &attempts](SqlDriver&) -> Result<int> {
      ++attempts[i];
      if (i == 4) return fail(Errc::conflict, "name_taken", "");
      return i;
    });
  }
  release_and_run();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answers_[i + 1].is_good, i != 4);
  EXPECT_EQ(answers_[5].error.code, "name_taken");
  EXPECT_EQ(script_.commits, 3) << "the held one, those before and those after the bad one";
  EXPECT_EQ(attempts, (std::vector{2, 2, 2, 2, 2, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(worker_->is_healthy());
}

TEST_F(LedgerWorkerTest, TriesEachAloneWhenTheCommitOfAGroupFails) {
  hold();
  for (int i = 0; i < 3; ++i) call(Access::write, [i](SqlDriver&) { return i; });
  script_.holds_commits = true;
  script_.released.release();
  script_.reached.acquire();  // the group of three stands at its commit
  script_.commits_failing = 2;
  release_and_run();
  EXPECT_FALSE(answers_[1].is_good) << "the second failure";
  EXPECT_EQ(answers_[1].error.detail, "full");
  EXPECT_EQ(answers_[2].value, 1);
  EXPECT_EQ(answers_[3].value, 2);
  EXPECT_TRUE(worker_->is_healthy()) << "the last write went well";
}

TEST_F(LedgerWorkerTest, WaitsForALockOnceAndNotOncePerCall) {
  hold();
  for (int i = 0; i < 50; ++i) call(Access::write, [](SqlDriver&) { return 1; });
  call(Access::read, [](SqlDriver&) { return 2; });
  script_.begin_fails = true;
  release_and_run();
  for (int i = 1; i <= 50; ++i) EXPECT_EQ(answers_[i].error.detail, "locked");
  EXPECT_EQ(answers_[51].value, 2) << "a read does not need the lock";
  EXPECT_LE(script_.write_begins, 3);
  EXPECT_FALSE(worker_->is_healthy());

  script_.begin_fails = false;
  io_.restart();
  call(Access::write, [](SqlDriver&) { return 3; });
  io_.run();
  EXPECT_EQ(answers_[52].value, 3);
  EXPECT_TRUE(worker_->is_healthy());
}

TEST_F(LedgerWorkerTest, TurnsAnExceptionIntoAnErrorOfThatCallAlone) {
  hold();
  call(Access::write, [](SqlDriver&) -> Result<int> { throw std::logic_error("ours"); });
  call(Access::write, [](SqlDriver&) { return 1; });
  call(Access::write, [](SqlDriver&) -> Result<int> { throw std::bad_alloc(); });
  call(Access::write, [](SqlDriver&) { return 2; });
  release_and_run();
  ASSERT_FALSE(answers_[1].is_good);
  EXPECT_EQ(answers_[1].error.kind, Errc::internal);
  EXPECT_TRUE(worker_->is_healthy()) << "our own mistake is not the ledger's";
  EXPECT_EQ(answers_[2].value, 1);
  EXPECT_EQ(answers_[3].error.code, "ledger_unavailable") << "out of memory: try again";
  EXPECT_EQ(answers_[4].value, 2);
}

TEST_F(LedgerWorkerTest, AReadThatFailsMakesItUnhealthyUntilOneWorks) {
  call(Access::read, [](SqlDriver&) -> Result<int> { return ledger_unavailable("damaged"); });
  io_.run();
  EXPECT_FALSE(worker_->is_healthy());
  io_.restart();
  call(Access::write, [](SqlDriver&) { return 1; });
  io_.run();
  EXPECT_FALSE(worker_->is_healthy()) << "a write says nothing about reads";
  io_.restart();
  call(Access::read, [](SqlDriver&) { return 1; });
  io_.run();
  EXPECT_TRUE(worker_->is_healthy());
}

TEST_F(LedgerWorkerTest, RefusesAtOnceWhenTheQueueIsFull) {
  make({.ledger_jobs_max = 4, .ledger_jobs_max_per_app = 4});
  hold();
  for (int i = 1; i <= 6; ++i) call(Access::write, [i](SqlDriver&) { return i; });
  io_.poll();
  for (const int refused : {5, 6}) {
    ASSERT_TRUE(answers_[refused].is_given);
    EXPECT_EQ(answers_[refused].error.kind, Errc::unavailable);
    EXPECT_EQ(answers_[refused].error.code, "ledger_unavailable");
    EXPECT_EQ(answers_[refused].error.retry_after, std::chrono::seconds(1));
  }
  io_.restart();
  release_and_run();
  for (int i = 0; i <= 4; ++i) EXPECT_EQ(answers_[i].value, i);
  EXPECT_TRUE(worker_->is_healthy()) << "a full queue does not mean that the ledger fails";
}

TEST_F(LedgerWorkerTest, AnAppWithManyCallsDelaysAnotherByNoMoreThanOneGroup) {
  make({.group_jobs_max = 4});
  std::vector<std::string> done;
  const auto call_of = [&](const char* app) {
    call(
        Access::write,
        [&done, app](SqlDriver&) {
          done.emplace_back(app);
          return 1;
        },
        OnStall::refuse, Lane(AppName(app)));
  };
  hold();
  for (int i = 0; i < 9; ++i) call_of("greedy");
  call_of("modest");
  call_of("");
  release_and_run();
  ASSERT_EQ(done.size(), 11u);
  const std::vector<std::string> first_group(done.begin(), done.begin() + 4);
  EXPECT_EQ(first_group, (std::vector<std::string>{"greedy", "modest", "", "greedy"}));
  EXPECT_EQ(script_.commits, 4) << "the held one, and groups of four, four and three";
}

TEST_F(LedgerWorkerTest, OneAppDoesNotFillTheQueueForTheOthers) {
  make({.ledger_jobs_max = 4});
  hold();
  const auto call_of = [&](const char* app) {
    call(Access::write, [](SqlDriver&) { return 1; }, OnStall::refuse, Lane(AppName(app)));
  };
  for (const char* app : {"greedy", "greedy", "greedy", "greedy", "modest", "other", ""})
    call_of(app);
  release_and_run();
  std::string taken;
  for (const Answer& answer : answers_) taken += answer.is_good ? '1' : '0';
  EXPECT_EQ(taken,
            "1"
            "1110"
            "1"
            "0"
            "1")
      << "three quarters for one app, four for all, and the gateway's own beside them";
}

TEST_F(LedgerWorkerTest, AnswersThoseWhoWaitWhenItIsStuck) {
  make({.ledger_stall_max = std::chrono::milliseconds(0)});
  hold();
  int done = 0;
  for (const Access access : {Access::write, Access::read}) {
    call(access, [&done](SqlDriver&) { return ++done; });
  }
  worker_->answer_stalled_calls();
  EXPECT_FALSE(worker_->is_healthy());
  call(Access::write, [&done](SqlDriver&) { return ++done; });
  EXPECT_EQ(answers_[0].error.code, "ledger_stalled") << "in hand: its outcome is not known";
  for (const int waiting : {1, 2, 3}) {
    ASSERT_TRUE(answers_[waiting].is_given);
    EXPECT_EQ(answers_[waiting].error.code, "ledger_unavailable");
  }
  release_and_run();
  EXPECT_EQ(done, 0) << "what was refused is not done";
  EXPECT_EQ(script_.commits, 1) << "what was in hand is";
  // It answers first and tidies up after; until then it refuses.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do worker_->answer_stalled_calls();
  while (!worker_->is_healthy() && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(worker_->is_healthy());
  call(Access::write, [](SqlDriver&) { return 4; });
  io_.restart();
  io_.run();
  EXPECT_EQ(answers_[4].value, 4);
  EXPECT_NE(metrics_->render().find("clawdforge_ledger_queue_jobs 0\n"), std::string::npos);
}

TEST_F(LedgerWorkerTest, MakesACallThatMayNotBeRefusedWaitForTheTruth) {
  make({.ledger_stall_max = std::chrono::milliseconds(0)});
  hold(OnStall::wait);
  worker_->answer_stalled_calls();
  io_.poll();
  EXPECT_FALSE(answers_[0].is_given);
  io_.restart();
  release_and_run();
  EXPECT_TRUE(answers_[0].is_good);
}

TEST_F(LedgerWorkerTest, CountsWhatWaits) {
  hold();
  for (int i = 0; i < 3; ++i) call(Access::write, [](SqlDriver&) { return 1; });
  EXPECT_NE(metrics_->render().find("clawdforge_ledger_queue_jobs 4\n"), std::string::npos);
  release_and_run();
  EXPECT_NE(metrics_->render().find("clawdforge_ledger_queue_jobs 0\n"), std::string::npos);
  EXPECT_NE(metrics_->render().find("clawdforge_ledger_call_seconds_count 4\n"), std::string::npos);
  EXPECT_NE(metrics_->render().find("clawdforge_ledger_committed_jobs_total 4\n"),
            std::string::npos);
}

TEST_F(LedgerWorkerTest, ACommitIsAnsweredWhileALongReadIsUnderWay) {
  ScriptedDriver::Script script_of_reads;
  LedgerWorker worker(std::make_unique<ScriptedDriver>(script_), io_.get_executor(), {}, log_,
                      *metrics_, std::make_unique<ScriptedDriver>(script_of_reads));
  std::counting_semaphore<> begun{0};
  std::counting_semaphore<> released{0};
  bool is_read = false;
  bool is_written = false;
  const auto long_read = [&](SqlDriver&) -> Result<int> {
    begun.release();
    released.acquire();
    return 1;
  };
  boost::asio::co_spawn(io_, worker.read<int>(Lane(), long_read),
                        [&](std::exception_ptr, Result<int> result) { is_read = result == 1; });
  io_.restart();
  io_.poll();
  begun.acquire();
  boost::asio::co_spawn(io_, worker.call<int>(Lane(), Access::write, [](SqlDriver&) { return 2; }),
                        [&](std::exception_ptr, Result<int> result) { is_written = result == 2; });
  while (!is_written && io_.run_one_for(std::chrono::minutes(1)) > 0) {
  }
  EXPECT_TRUE(is_written);
  EXPECT_FALSE(is_read);
  released.release();
  worker.stop();
  io_.restart();
  io_.run();
  EXPECT_TRUE(is_read);
  EXPECT_EQ(script_of_reads.write_begins, 0);
}

TEST_F(LedgerWorkerTest, AGroupIsLimitedByItsBytes) {
  make({.group_bytes_max = 100});
  script_.holds_commits = true;
  int answered = 0;
  const auto write = [&](std::size_t bytes) {
    boost::asio::co_spawn(
        io_,
        worker_->call<int>(
            Lane(), Access::write, [](SqlDriver&) { return 1; }, OnStall::refuse, bytes),
        [&](std::exception_ptr, Result<int> result) { answered += *result; });
    io_.restart();
    io_.poll();
  };
  write(0);  // its commit is held, so the others are taken together
  script_.reached.acquire();
  for (const std::size_t bytes : {40u, 60u, 1u, 1'000u, 0u, 99u}) write(bytes);
  script_.released.release();
  worker_->stop();
  io_.restart();
  io_.run();
  EXPECT_EQ(answered, 7);
  EXPECT_EQ(script_.commits, 1 + 4) << "40 and 60, 1, 1000 and 0, 99";
}

}  // namespace
}  // namespace clawdforge
