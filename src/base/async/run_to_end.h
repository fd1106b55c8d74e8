// For tests: runs one coroutine on an io_context until it has ended, and gives its
// result. Ends the process when it takes longer than a generous bound.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "base/async/async.h"

namespace clawdforge {

template <class T>
T run_to_end(IoContext& io, Task<T> task, std::chrono::seconds limit = std::chrono::seconds(60)) {
  std::optional<T> result;
  std::exception_ptr failure;
  boost::asio::co_spawn(io.get_executor(), std::move(task),
                        [&](std::exception_ptr thrown, T value) {
                          failure = thrown;
                          if (!thrown) result.emplace(std::move(value));
                        });
  io.restart();
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!result && !failure) {
    if (std::chrono::steady_clock::now() >= end) {
      std::fprintf(stderr, "run_to_end: the coroutine did not end in time\n");
      std::abort();
    }
    io.run_one_for(std::chrono::milliseconds(100));
    if (io.stopped()) io.restart();
  }
  if (failure) std::rethrow_exception(failure);
  return std::move(*result);
}

}  // namespace clawdforge
