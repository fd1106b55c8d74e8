#include "base/async/signal.h"

#include <boost/asio/this_coro.hpp>

#include "base/async/async_tokens.h"

namespace clawdforge {

Task<bool> Signal::wait_until(Deadline deadline) {
  Waiter waiter(co_await boost::asio::this_coro::executor, deadline);
  waiters_.push_back(waiter);
  co_await waiter.timer.async_wait(kAwait);
  co_return waiter.is_notified;  // the Signal may be gone by now
}

void Signal::notify_all() {
  while (!waiters_.empty()) {
    Waiter& waiter = waiters_.front();
    waiters_.pop_front();
    waiter.is_notified = true;
    waiter.timer.cancel();  // posts: the coroutine goes on later
  }
}

}  // namespace clawdforge
