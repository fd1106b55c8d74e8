// FairQueue hands jobs from the io thread to one worker thread, fairly between lanes: it gives one
// job of each lane that has any, then the next one of each. Within a lane the order is that of
// arrival. It is bounded for each lane and in all: a full one refuses, it never waits. The
// gateway's own lane counts for itself alone, so apps cannot take its space. One of the two files
// with a mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/async/lane.h"
#include "base/thread_annotations.h"

namespace clawdforge {

// How many jobs may wait.
struct FairQueueLimits {
  std::size_t jobs_max;       // of all lanes together, the gateway's own apart
  std::size_t lane_jobs_max;  // of one lane
  std::size_t batch_max = 1;  // how many take() gives at most
};

// Of so many jobs one lane may have three quarters.
constexpr std::size_t lane_share_of(std::size_t jobs) { return jobs - jobs / 4; }

template <class Job>
class FairQueue {
 public:
  explicit FairQueue(FairQueueLimits limits) : limits_(limits) {}
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // Any thread. Takes `job` unless its lane or the queue is full or closed; then the job is left
  // untouched with the caller.
  [[nodiscard]] bool put(const Lane& lane, Job&& job) {
    return add(lane, std::move(job), Space::limited);
  }
  // The same for what must not be refused, and does not count: false only after close().
  [[nodiscard]] bool put_always(const Lane& lane, Job&& job) {
    return add(lane, std::move(job), Space::any);
  }

  // The worker. Waits for at least one job and takes the next ones; empty means closed and drained.
  std::vector<Job> take() {
    const Lock lock(mutex_);
    while (turns_.empty() && !is_closed_) filled_.wait(mutex_);
    std::vector<Job> batch;
    batch.reserve(std::min(size_, limits_.batch_max));
    while (!turns_.empty() && batch.size() < limits_.batch_max) batch.push_back(next());
    return batch;
  }

  // No more jobs; the worker gets what is inside, then nothing.
  void close() {
    {
      const Lock lock(mutex_);
      is_closed_ = true;
    }
    filled_.notify_one();
  }

  std::size_t size() const {
    const Lock lock(mutex_);
    return size_;
  }

 private:
  enum class Space { limited, any };
  struct Entry {
    Job job;
    Space space;
  };
  struct Waiting {
    std::deque<Entry> entries;
    std::size_t limited = 0;  // of them
  };
  using Lanes = std::map<std::string, Waiting, std::less<>>;

  bool add(const Lane& lane, Job&& job, Space space) {
    {
      const Lock lock(mutex_);
      if (is_closed_) return false;
      auto found = lanes_.find(lane.name);
      const std::size_t in_lane = found == lanes_.end() ? 0 : found->second.limited;
      if (space == Space::limited && is_full(lane, in_lane)) return false;
      if (found == lanes_.end()) {
        found = lanes_.try_emplace(lane.name).first;
        turns_.push_back(found);
      }
      found->second.entries.push_back({std::move(job), space});
      ++size_;
      if (space == Space::limited) {
        ++found->second.limited;
        if (!lane.is_own()) ++apps_limited_;
      }
    }
    filled_.notify_one();
    return true;
  }

  bool is_full(const Lane& lane, std::size_t in_lane) const REQUIRES(mutex_) {
    if (in_lane >= limits_.lane_jobs_max) return true;
    return !lane.is_own() && apps_limited_ >= limits_.jobs_max;
  }

  // Of the lane whose turn it is; a lane with more gets its next turn after all others.
  Job next() REQUIRES(mutex_) {
    const auto lane = turns_.front();
    turns_.pop_front();
    Waiting& waiting = lane->second;
    Entry entry = std::move(waiting.entries.front());
    waiting.entries.pop_front();
    --size_;
    if (entry.space == Space::limited) {
      --waiting.limited;
      if (!lane->first.empty()) --apps_limited_;
    }
    if (waiting.entries.empty()) {
      lanes_.erase(lane);
    } else {
      turns_.push_back(lane);
    }
    return std::move(entry.job);
  }

  const FairQueueLimits limits_;
  mutable Mutex mutex_;
  Condition filled_;
  Lanes lanes_ GUARDED_BY(mutex_);                                // that have jobs
  std::list<typename Lanes::iterator> turns_ GUARDED_BY(mutex_);  // each of them once
  std::size_t size_ GUARDED_BY(mutex_) = 0;
  std::size_t apps_limited_ GUARDED_BY(mutex_) = 0;
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace clawdforge
