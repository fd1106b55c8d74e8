// Read before a source by `scripts/lint --analyze`, never by the compiler. The Clang static
// analyzer gives up a path at its first co_await, so most of a coroutine would go unseen. Here an
// awaited expression is a call of a function without a body instead: the analyzer goes on after
// it with a value of which it knows nothing.
#pragma once

// All of the library that awaits must be read while the word still means what it says.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/async/async.h"

namespace clawdforge {

template <typename T, typename Executor>
T operator+(boost::asio::awaitable<T, Executor>&& awaitable);

IoExecutor operator+(boost::asio::this_coro::executor_t executor);

void operator+(decltype(boost::asio::this_coro::throw_if_cancelled(true)) cancelling);

}  // namespace clawdforge

// A prefix operator that binds as tightly, and that nothing here has a use of its own for.
#define co_await +
