#include "http/server/pulled_body.h"

#include <algorithm>
#include <cstring>

#include "http/server/exchange.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kPieceBytesMax = 256 * 1024;
constexpr Fault kBadChunks{400, "bad_request", "The body's chunks are not valid."};

// Only for a handler that looks; the fault itself is what is answered.
Errc kind_of(const Fault& fault) {
  if (fault.status == kTooLarge.status) return Errc::too_large;
  if (fault.status == kTimeout.status) return Errc::timed_out;
  return fault.status == kCallerGone ? Errc::gone : Errc::malformed;
}

}  // namespace

PulledBody::PulledBody(BodySource& source, RequestParser& parser, std::string read,
                       const Limits& limits, const ByteMeter& meter, bool must_say_continue)
    : source_(source),
      parser_(parser),
      limits_(limits),
      must_say_continue_(must_say_continue && read.empty()),
      buffer_(read.begin(), read.end()),
      end_(buffer_.size()),
      meter_(meter),
      pace_(limits.read_max, limits.bytes_per_second_min) {}

std::unexpected<Failure> PulledBody::refuse(const Fault& fault) {
  fault_ = fault;
  return fail(kind_of(fault), fault.code, std::string(fault.message));
}

Async<std::string_view> PulledBody::next() {
  if (fault_) co_return refuse(*fault_);
  for (;;) {
    piece_.clear();
    const std::string_view unparsed(buffer_.data() + begin_, end_ - begin_);
    const auto step = parser_.parse_body(unparsed, piece_, limits_.body_bytes_max);
    begin_ += step.consumed;
    pace_.note({}, piece_.size());
    if (step.fault) co_return refuse(*step.fault);
    if (!piece_.empty() || parser_.is_done()) co_return piece_;
    // A chunk's head that never ends is not a body, but it fills the buffer all the same.
    if (end_ - begin_ > limits_.chunk_head_bytes_max) co_return refuse(kBadChunks);
    const auto fault = co_await read_more();
    if (fault) co_return refuse(*fault);
  }
}

Task<std::optional<Fault>> PulledBody::read_more() {
  if (must_say_continue_) {
    must_say_continue_ = false;
    if (!co_await source_.send_continue()) co_return kGone;
  }
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  buffer_.resize(std::max(buffer_.size(), end_ + kPieceBytesMax));
  const auto begun = steady_clock::now();
  const std::size_t count =
      co_await source_.read_into(std::span(buffer_).subspan(end_), pace_.left());
  if (count == 0) co_return source_.has_timed_out() ? kTimeout : kGone;
  const auto now = steady_clock::now();
  pace_.note(now - begun, 0);
  meter_.add(count, now);
  end_ += count;
  co_return std::nullopt;
}

std::string PulledBody::take_rest() {
  return std::string(buffer_.data() + begin_, std::exchange(end_, begin_) - begin_);
}

}  // namespace clawdforge
