#include "jobs/job_queue.h"

#include <algorithm>
#include <tuple>

namespace clawdforge {

void JobQueue::note_ready(const AppName& app, TimePoint at) {
  std::optional<TimePoint>& look_at = shares_[app].look_at;
  look_at = look_at ? std::min(*look_at, at) : at;
}

void JobQueue::pause(const AppName& app, TimePoint until) {
  Share& share = shares_[app];
  share.paused_until = std::max(share.paused_until, until);
}

void JobQueue::resume(const AppName& app) {
  const auto found = shares_.find(app);
  if (found != shares_.end()) found->second.paused_until = TimePoint();
}

std::optional<AppName> JobQueue::next_app(TimePoint now) {
  if (in_hand_.size() >= kJobsInHandMax) return std::nullopt;
  auto best = shares_.end();
  for (auto entry = shares_.begin(); entry != shares_.end(); ++entry) {
    const Share& share = entry->second;
    const auto at = look_time(share);
    if (!at || *at > now) continue;
    const auto order = [](const Share& of) { return std::tuple(of.in_hand, of.served); };
    if (best == shares_.end() || order(share) < order(best->second)) best = entry;
  }
  if (best == shares_.end()) return std::nullopt;
  best->second.look_at.reset();
  best->second.served = ++served_;
  return best->first;
}

std::optional<TimePoint> JobQueue::next_time() const {
  if (in_hand_.size() >= kJobsInHandMax) return std::nullopt;
  std::optional<TimePoint> first;
  for (const auto& [app, share] : shares_) {
    const auto at = look_time(share);
    if (at) first = first ? std::min(*first, *at) : *at;
  }
  return first;
}

bool JobQueue::has_run_at_door(const AppName& app) const {
  const auto found = shares_.find(app);
  return found != shares_.end() && found->second.at_door.has_value();
}

void JobQueue::take(const Job& job) {
  if (!in_hand_.insert(job.id).second) return;
  Share& share = shares_[job.app];
  ++share.in_hand;
  if (job.kind == JobKind::run) share.at_door = job.id;
}

void JobQueue::begun(const Job& job) {
  const auto found = shares_.find(job.app);
  if (found != shares_.end() && found->second.at_door == job.id) found->second.at_door.reset();
}

void JobQueue::put_back(const Job& job) {
  if (in_hand_.erase(job.id) == 0) return;
  begun(job);
  --shares_[job.app].in_hand;
  forget_idle(job.app);
}

void JobQueue::forget_idle(const AppName& app) {
  const auto found = shares_.find(app);
  if (found == shares_.end()) return;
  if (found->second.in_hand == 0 && !found->second.look_at) shares_.erase(found);
}

}  // namespace clawdforge
