// A job in hand: it waits for a place, or runs. Shared by Jobs and the gate that its run or turn
// asks. Io thread only.
#pragma once

#include <utility>

#include "base/async/hang_up.h"
#include "base/result.h"
#include "jobs/jobs.h"

namespace clawdforge {

struct Jobs::LiveJob {
  explicit LiveJob(Job of) : job(std::move(of)) {}
  Job job;
  HangUp hang_up;
  bool is_beginning = false;  // its row is being written: from then on it is as if it ran
  bool has_begun = false;
  bool is_unwanted = false;  // its app has cancelled it
};

class Jobs::Gate final : public AskGate {
 public:
  Gate(Jobs& jobs, std::shared_ptr<LiveJob> live) : jobs_(jobs), live_(std::move(live)) {}
  Async<void> begin(AskPlace place) override { return jobs_.begin(live_, place); }

 private:
  Jobs& jobs_;
  const std::shared_ptr<LiveJob> live_;
};

inline std::unexpected<Failure> job_cancelled() {
  return fail(Errc::gone, "cancelled", "The job was cancelled before it started.");
}

inline std::unexpected<Failure> job_interrupted() {
  return fail(Errc::unavailable, "interrupted", "The gateway is shutting down.");
}

}  // namespace clawdforge
