// TaskGroup owns the coroutines that no other coroutine awaits. Its owner cancels and joins it
// before it dies, so no coroutine outlives what it refers to. Io thread only.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <cstddef>
#include <list>

#include "base/async/async.h"
#include "base/async/signal.h"

namespace clawdforge {

class TaskGroup {
 public:
  explicit TaskGroup(IoExecutor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  // The group must be empty: join() came first, or the io_context ran dry.
  ~TaskGroup();

  // Starts `task` at the next turn of the loop. An exception that leaves it is a
  // defect of ours and leaves io_context::run() too, unless it is the cancellation.
  void spawn(Task<void> task);

  // Asks every member to stop. Must be called from a coroutine or handler of the io
  // thread that is not a member: Asio's cancellation is posted, and must not outlive it.
  void cancel();

  // Waits until the last member has ended. One waiter at a time.
  Task<void> join();

  std::size_t size() const { return members_.size(); }

 private:
  IoExecutor executor_;
  Signal emptied_;
  std::list<boost::asio::cancellation_signal> members_;
  bool cancelled_ = false;
};

}  // namespace clawdforge
