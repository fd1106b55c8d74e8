#include "http/server/whole_body.h"

#include <algorithm>

#include "http/server/exchange.h"

namespace clawdforge {
namespace {

// How much memory a body whose size is not known is given at a time.
constexpr std::size_t kBodyGrowthBytes = 64 * 1024;
// Beyond this in the buffer and no chunk among it, a chunk's head never ends.
constexpr std::size_t kChunkHeadBytesMax = 64 * 1024;

constexpr Fault kOverShare{429, "too_many_bytes", kOverShareMessage};
constexpr Fault kOverBudget{503, "memory_budget", kOverBudgetMessage};

}  // namespace

std::optional<Fault> fault_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      break;
    case Fit::over_share:
      return kOverShare;
    case Fit::over_budget:
      return kOverBudget;
  }
  return std::nullopt;
}

void BodyPace::note(Duration waited, std::size_t bytes) {
  const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                             static_cast<double>(bytes_per_second_min_));
  left_ = left_ - waited + std::chrono::duration_cast<Duration>(earned);
  left_ = std::min(left_, allowance_);
}

WholeBody::WholeBody(RequestParser& parser, std::string& body, Admission& admission,
                     const ServerOptions& options, Time now)
    : parser_(parser),
      body_(body),
      admission_(admission),
      head_bytes_max_(options.request.head_bytes_max + kChunkHeadBytesMax),
      pace_(options.body_read_max, options.body_bytes_per_second_min),
      last_(now) {}

std::optional<Fault> WholeBody::begin() {
  const std::uint64_t length = parser_.content_length().value_or(0);
  if (length > admission_.body_bytes_max) return kTooLarge;
  if (length <= kUncountedBodyBytesMax) return std::nullopt;
  return fault_of(admission_.memory.resize(length));
}

std::optional<Fault> WholeBody::take(std::string& in, Time now) {
  const std::size_t before = body_.size();
  // Only a body of unknown size can need more than begin() has asked for.
  const std::size_t may_be = before + in.size();
  if (!parser_.content_length() && may_be > kUncountedBodyBytesMax &&
      may_be > admission_.memory.bytes()) {
    if (auto fault = fault_of(admission_.memory.resize(may_be + kBodyGrowthBytes))) return fault;
  }
  const auto step = parser_.parse_body(in, body_, admission_.body_bytes_max);
  in.erase(0, step.consumed);
  in_a_row_ += step.consumed;
  admission_.meter.add(step.consumed, now);
  pace_.note(now - last_, body_.size() - before);
  last_ = now;
  if (step.fault) return step.fault;
  if (!parser_.is_done() && in.size() > head_bytes_max_) {
    return Fault{400, "bad_request", "The body's chunks are not valid."};
  }
  return std::nullopt;
}

bool WholeBody::has_had_its_turn() {
  if (in_a_row_ < kBodyBytesInARowMax) return false;
  in_a_row_ = 0;
  return true;
}

}  // namespace clawdforge
