// Inside http/: watches a connection while its handler runs, so that a caller who hangs up
// is noticed. It keeps one read pending on the stream, which nothing else may read
// meanwhile. end() must have been awaited before the watch or the stream may die.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <span>
#include <string>

#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/async/signal.h"

namespace clawdforge {

// Bytes of a next request that may come early. If there are more, a hang-up is not
// seen before the answer.
inline constexpr std::size_t kEarlyBytesMax = 64 * 1024;

template <class Stream>
class CallerWatch {
 public:
  // What comes early is appended to `early`. `room` is what is read into.
  CallerWatch(Stream& stream, std::span<char> room, std::string& early, HangUp& hang_up)
      : stream_(stream), room_(room), early_(early), hang_up_(hang_up) {
    read();
  }
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  bool has_departed() const { return has_departed_; }

  // From here on nothing happens any more; returns when the read is back.
  Task<void> end() {
    is_ending_ = true;
    boost::system::error_code ignored;
    stream_.lowest_layer().cancel(ignored);
    while (is_pending_) co_await over_.wait();
  }

 private:
  void read() {
    is_pending_ = !is_ending_ && early_.size() < kEarlyBytesMax;
    if (!is_pending_) {
      over_.notify_all();
      return;
    }
    stream_.async_read_some(
        boost::asio::buffer(room_.data(), room_.size()),
        [this](boost::system::error_code error, std::size_t count) { on_read(error, count); });
  }

  void on_read(boost::system::error_code error, std::size_t count) {
    early_.append(room_.data(), count);
    if (!error) return read();
    // Aborted: by end(), or because the whole server closes. The caller has not hung up.
    has_departed_ = error != boost::asio::error::operation_aborted;
    // The listener may go on with anything, so not from inside of the stream.
    boost::asio::post(stream_.get_executor(), [this] { tell(); });
  }

  void tell() {
    is_pending_ = false;
    over_.notify_all();
    if (has_departed_ && !is_ending_) hang_up_.happen();
  }

  Stream& stream_;
  const std::span<char> room_;
  std::string& early_;
  HangUp& hang_up_;
  Signal over_;  // no read is pending any more
  bool is_pending_ = false;
  bool is_ending_ = false;
  bool has_departed_ = false;
};

}  // namespace clawdforge
