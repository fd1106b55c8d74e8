// Completion tokens for .cc files: results as values, never as exceptions.
//   auto [error, count] = co_await socket.async_read_some(buffer, kAwait);
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/async/async.h"

namespace clawdforge {

inline constexpr auto kAwait = boost::asio::as_tuple_t<boost::asio::use_awaitable_t<IoExecutor>>{};

}  // namespace clawdforge
