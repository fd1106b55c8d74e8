// Mailbox hands values from the io thread to one worker thread. It is bounded:
// a full one refuses, it never waits. One of the two files with a mutex.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/thread_annotations.h"

namespace clawdforge {

template <class T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity_max) : capacity_max_(capacity_max) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread. Takes `value` unless the box is full or closed; then the value is
  // left untouched with the caller.
  [[nodiscard]] bool put(T&& value) {
    {
      const Lock lock(mutex_);
      if (closed_ || values_.size() >= capacity_max_) return false;
      values_.push_back(std::move(value));
    }
    filled_.notify_one();
    return true;
  }

  // The worker. Waits for at least one value and takes all there are; empty means
  // closed and drained.
  std::vector<T> take_all() {
    Lock lock(mutex_);
    while (values_.empty() && !closed_) filled_.wait(mutex_);
    return std::exchange(values_, {});
  }

  // No more values; the worker gets what is inside, then nothing.
  void close() {
    {
      const Lock lock(mutex_);
      closed_ = true;
    }
    filled_.notify_one();
  }

  std::size_t size() const {
    const Lock lock(mutex_);
    return values_.size();
  }

 private:
  const std::size_t capacity_max_;
  mutable Mutex mutex_;
  Condition filled_;
  std::vector<T> values_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace clawdforge
