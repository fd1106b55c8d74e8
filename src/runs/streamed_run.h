// StreamedRun is a run whose caller reads what the agent says while it works. Owned by the answer
// that is being sent: when that ends before the run, the run is cancelled. Io thread only.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/limits/byte_budget.h"
#include "base/strong_id.h"
#include "runs/run_request.h"

namespace clawdforge {

class LiveRun;
class RunFeed;

// One message of the agent.
struct ToldMessage {
  std::string json;  // one line, in the words of the Agent Client Protocol
  ByteHold memory;   // what counts a large one, for as long as it is kept
};

class StreamedRun {
 public:
  StreamedRun(std::shared_ptr<LiveRun> run, std::shared_ptr<RunFeed> feed);
  ~StreamedRun();
  StreamedRun(const StreamedRun&) = delete;
  StreamedRun& operator=(const StreamedRun&) = delete;

  const RunId& run_id() const;
  // What the agent has said since. Empty: nothing within that time, or the run is over.
  Task<std::vector<ToldMessage>> next(std::chrono::milliseconds most);
  bool is_over() const;  // and all that was said was given
  // When it is over; as Runs::execute(). Once.
  Async<RunOutcome> outcome();

 private:
  const std::shared_ptr<LiveRun> run_;
  const std::shared_ptr<RunFeed> feed_;
};

}  // namespace clawdforge
