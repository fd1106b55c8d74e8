// Inside http/: a request's body while it is read into memory. It counts the bytes against the
// memory budget and the caller's rate before they are there, and says how long to wait for more.
// Lives on the connection's coroutine while the body is read.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "http/message/admission.h"
#include "http/message/request_parser.h"
#include "http/server/server.h"

namespace clawdforge {

// Bodies up to this, and answers up to kJoinBytesMax, are not counted: there are many of them, and
// the limit on connections bounds them.
inline constexpr std::size_t kUncountedBodyBytesMax = 4 * 1024;
// Of one body, taken without a pause; then others have a turn.
inline constexpr std::size_t kBodyBytesInARowMax = 256 * 1024;

// The refusal of what does not fit into the memory budget; none: it fits.
std::optional<Fault> fault_of(Fit fit);

// The time that a caller has for a body: an allowance, of which waiting takes and to which bytes
// add, never above what it was at the beginning. So a caller who sends fast for a while cannot be
// silent for long afterwards.
class BodyPace {
 public:
  using Duration = std::chrono::steady_clock::duration;
  BodyPace(Duration allowance, std::size_t bytes_per_second_min)
      : allowance_(allowance), bytes_per_second_min_(bytes_per_second_min), left_(allowance) {}

  void note(Duration waited, std::size_t bytes);
  Duration left() const { return left_; }

 private:
  const Duration allowance_;
  const std::size_t bytes_per_second_min_;
  Duration left_;
};

class WholeBody {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // All that is handed in outlives it. The body goes into `body`.
  WholeBody(RequestParser& parser, std::string& body, Admission& admission,
            const ServerOptions& options, Time now);

  // Whether its announced size may come.
  std::optional<Fault> begin();
  // Takes what `in` holds of the body.
  std::optional<Fault> take(std::string& in, Time now);
  bool is_done() const { return parser_.is_done(); }
  // When the caller has had its time.
  Time give_up_at() const { return last_ + pace_.left(); }
  // True once for each kBodyBytesInARowMax: the caller gives way to others.
  bool has_had_its_turn();

 private:
  RequestParser& parser_;
  std::string& body_;
  Admission& admission_;
  const std::size_t head_bytes_max_;  // of a chunk
  BodyPace pace_;
  Time last_;
  std::size_t in_a_row_ = 0;
};

}  // namespace clawdforge
