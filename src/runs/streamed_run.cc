#include "runs/streamed_run.h"

#include <utility>

#include "runs/live_run.h"
#include "runs/run_feed.h"

namespace clawdforge {

StreamedRun::StreamedRun(std::shared_ptr<LiveRun> run, std::shared_ptr<RunFeed> feed)
    : run_(std::move(run)), feed_(std::move(feed)) {}

StreamedRun::~StreamedRun() {
  feed_->leave();
  run_->stop(RunStop::caller_gone);  // does nothing to one that is over
}

const RunId& StreamedRun::run_id() const { return run_->run_id; }

Task<std::vector<ToldMessage>> StreamedRun::next(std::chrono::milliseconds most) {
  return feed_->next(most);
}

bool StreamedRun::is_over() const { return feed_->is_over(); }

Async<RunOutcome> StreamedRun::outcome() { return run_->answer(); }

}  // namespace clawdforge
