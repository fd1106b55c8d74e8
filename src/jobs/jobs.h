// Jobs keeps what apps have asked for and do not wait for: it writes a job down before it answers,
// and sees to it that each is done, over restarts. A job is queued until the agent is about to be
// asked; that it runs is committed before that, so a crash leaves no doubt whether it was begun.
// What a job does is the plain call's own code, which the API gives as JobWork. Io thread only. Its
// owner calls drain() and then stop(), and waits for it, before it dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/async/ask_gate.h"
#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/limits/byte_budget.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "jobs/job_queue.h"
#include "jobs/job_verdict.h"
#include "ledger/jobs/job_rows.h"
#include "model/app.h"
#include "model/ask_key.h"
#include "quota/byte_tally.h"

namespace clawdforge {

class AnswerFiles;
class Apps;

// Larger answers are kept in files.
inline constexpr std::size_t kAnswerInLedgerMax = 16 * 1024 * 1024;
// What the jobs of one app may keep: bodies and answers, with this much for each.
inline constexpr std::int64_t kJobBytesMaxPerApp = 1024LL * 1024 * 1024;
inline constexpr std::int64_t kJobOverheadBytes = 1024;

// Does one attempt. `hang_up` ends it; `gate` is asked before the agent is.
struct JobCall {
  Job job;
  std::shared_ptr<const App> app;
  std::string body;
  HangUp* hang_up = nullptr;
  std::shared_ptr<AskGate> gate;
};
using JobWork = std::function<Task<JobAnswer>(JobCall call)>;

struct JobRequest {
  JobKind kind = JobKind::run;
  SessionId session_id{};
  std::string body;  // of the plain call; checked
  std::string meta = "{}";
  std::string webhook{};
  std::optional<TimePoint> run_at{};
  std::int64_t attempts_max = 1;
  std::string request_id{};
  std::shared_ptr<KeyHold> key{};  // null: it was asked for without one
  // With a key: what its caller is told, to be kept.
  std::function<KeptAnswer(const Job&)> answer_of{};
};

class Jobs {
 public:
  struct Dependencies {
    IoExecutor executor;
    JobRows& rows;
    const Apps& apps;
    AnswerFiles& files;
    ByteBudget& memory;
    const Clock& clock;
    IdSource& ids;
    Log& log;
    Metrics& metrics;
    // A job of this app has ended: what its webhook is to be told is in the ledger.
    std::function<void(const AppName& app)> on_told = [](const AppName&) {};
  };
  struct Options {
    std::int64_t queued_max_per_app = 0;
    std::chrono::seconds ttl{};
  };

  Jobs(Dependencies deps, Options options);
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // At start, when what earlier lives have left is settled: nothing is begun before.
  Async<void> recover();
  void start(JobWork work);

  // It is in the ledger when this returns. Errc::over_quota "too_many_jobs".
  Async<Job> submit(AppName app, JobRequest request);
  // One of the app's own. Errc::not_found "job_not_found".
  Async<JobRecord> find(AppName app, JobId id) const;
  // The same when it has ended, or after `most`, or when the caller hangs up.
  Async<JobRecord> find_ended(AppName app, JobId id, std::chrono::seconds most, HangUp* hang_up);
  // Returns when something has become of the job, or after `most`.
  Task<void> changed(JobId id, std::chrono::milliseconds most);
  // True: it was under way, and is cancelled. False: it had ended.
  Async<bool> cancel(AppName app, JobId id);
  // The token of this app is gone: its queued jobs have ended with it, and the others end.
  void end_app(const AppName& app);

  // Removes jobs that ended long ago.
  Async<void> sweep();
  // Counts in the ledger what each app's jobs keep; at start and now and then.
  Async<void> count_stored();

  std::size_t in_hand() const { return queue_.in_hand(); }
  bool is_draining() const { return is_draining_; }
  std::size_t running() const;

  // No other job begins from now on. Those that wait for a place stay queued.
  void drain();
  // Waits until what runs has ended: its owner ends runs and sessions before.
  Task<void> stop();

 private:
  struct LiveJob;
  class Gate;
  using Watch = std::shared_ptr<Signal>;

  Task<void> dispatch();
  Task<void> carry(std::shared_ptr<LiveJob> live);
  Task<JobAnswer> attempt(std::shared_ptr<LiveJob> live);
  Async<void> begin(std::shared_ptr<LiveJob> live, AskPlace place);
  Task<void> follow(std::shared_ptr<LiveJob> live, JobAnswer answer);
  Task<void> end(std::shared_ptr<LiveJob> live, JobState state, JobAnswer answer);
  Async<void> try_until_written(std::function<Async<void>()> write);
  void put_back(const LiveJob& live);
  void note_ready(const AppName& app, TimePoint at);
  void tell(const JobId& id);
  void note_end(const AppName& app, JobState state);
  Counter& accepted();
  Gauge& unended(JobState state);
  Counter& ended(JobState state);
  Async<void> remove_files_without_rows();

  const Dependencies deps_;
  const Options options_;
  JobWork work_;
  JobQueue queue_;
  ByteTally kept_;
  std::map<JobId, std::shared_ptr<LiveJob>> live_;
  std::map<AppName, int> looks_;  // of apps whose job waits for a place: how often it has looked
  std::map<JobId, std::weak_ptr<Signal>> watches_;
  Signal wake_;
  bool is_draining_ = false;
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace clawdforge
