// The coroutine types. Everything asynchronous runs on the one io thread, so the
// executor is the concrete one of its io_context: no type erasure, no strand.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/result.h"

namespace clawdforge {

using IoContext = boost::asio::io_context;
using IoExecutor = IoContext::executor_type;

// A coroutine of the io thread.
template <class T>
using Task = boost::asio::awaitable<T, IoExecutor>;

// A coroutine that can fail.
template <class T>
using Async = Task<Result<T>>;

}  // namespace clawdforge
