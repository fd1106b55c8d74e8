// Timer is a steady timer of the io thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "base/async/async.h"

namespace clawdforge {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;

}  // namespace clawdforge
