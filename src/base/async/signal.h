// Signal is the condition variable of the io thread. A coroutine waits until another part of the
// program notifies it:
//
//   while (!is_ready_) co_await changed_.wait();      ...      is_ready_ = true;
//                                                              changed_.notify_all();
//
// It needs no lock: what has no co_await is atomic on the io thread, so nothing can happen between
// the look at the condition and the wait. A notification reaches those who wait at that moment and
// is not kept for later ones. They go on in a later turn of the loop, never inside of notify_all().
//
// A wait can be cancelled. A Signal that dies notifies its waiters; none of them touches it again.
#pragma once

#include <boost/intrusive/list.hpp>
#include <chrono>

#include "base/async/async.h"
#include "base/async/timer.h"

namespace clawdforge {

class Signal {
 public:
  using Deadline = Timer::time_point;

  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() { notify_all(); }

  // True: notified. False: the deadline has passed, or the wait was cancelled. Each waiter has a
  // deadline of its own.
  Task<bool> wait_until(Deadline deadline);
  Task<bool> wait_for(std::chrono::milliseconds most) {
    return wait_until(Timer::clock_type::now() + most);
  }
  Task<bool> wait() { return wait_until(Deadline::max()); }

  void notify_all();

 private:
  // Lives in the coroutine that waits, and leaves the list with it.
  struct Waiter : boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    Waiter(IoExecutor executor, Deadline deadline) : timer(executor, deadline) {}
    Timer timer;
    bool is_notified = false;
  };

  boost::intrusive::list<Waiter, boost::intrusive::constant_time_size<false>> waiters_;
};

}  // namespace clawdforge
