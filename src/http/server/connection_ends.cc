// How a connection is ended from outside: by the ticker, by a drain, by a stop.
#include <algorithm>

#include "http/server/connection.h"

namespace clawdforge {
using boost::system::error_code;

void Connection::expire(SteadyTime now) {
  if (now < until_) return;
  if (phase_ == Phase::reading && !timed_out_) {
    timed_out_ = true;
    error_code ignored;
    socket().cancel(ignored);
    return;
  }
  // Else the kernel would keep for a minute what the caller does not read.
  error_code ignored;
  if (phase_ == Phase::writing) socket().set_option(TcpSocket::linger(true, 0), ignored);
  close();
}

void Connection::hasten() {
  if (phase_ != Phase::writing) return;
  until_ = std::min(until_, std::chrono::steady_clock::now() + kDrainStallMax);
}

void Connection::close_if_idle() {
  if (phase_ == Phase::idle) close();
}

void Connection::close() {
  error_code ignored;
  socket().close(ignored);
}

}  // namespace clawdforge
