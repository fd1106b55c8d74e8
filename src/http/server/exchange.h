// Inside http/: what is known of a request while it is being answered, and what is made
// of that: the answer's head, the log line and the metrics. One per request, on the
// connection's coroutine.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "base/limits/byte_budget.h"
#include "base/net.h"
#include "base/refusals.h"
#include "base/telemetry/log.h"
#include "http/message/refusal.h"
#include "http/message/request_parser.h"
#include "http/message/response.h"
#include "http/message/router.h"
#include "http/server/request_metrics.h"

namespace clawdforge {

using SteadyTime = std::chrono::steady_clock::time_point;

// Never sent; the log and the metrics tell by it that the caller had gone.
inline constexpr int kCallerGone = 499;
inline constexpr Fault kGone{kCallerGone, "caller_gone", "The caller has gone."};
inline constexpr Fault kTimeout{408, "request_timeout", "The request did not arrive in time."};
inline constexpr Fault kNoMemory{503, "out_of_memory", kOutOfMemoryMessage};
inline constexpr Fault kTooLarge{413, "body_too_large", "The request's body is too large."};

// A body up to this goes out with its head, in one write.
inline constexpr std::size_t kJoinBytesMax = 64 * 1024;

// Who is at the other end of a connection.
struct Peer {
  IpAddress address;             // loopback for the Unix socket
  bool is_local_socket = false;  // it came over the Unix socket
};

struct Exchange {
  SteadyTime begun;
  std::string id;
  std::string who;
  std::optional<IpAddress> origin;  // where it comes from, if a proxy stands between
  std::string method;
  std::string path;
  const Route* route = nullptr;
  std::optional<Fault> fault;  // answered by http itself, whatever a handler says
  int version_minor = 1;
  bool is_head = false;
  bool keep_alive = false;
  bool is_chunked = false;    // the answer
  bool has_departed = false;  // the caller hung up while it was waiting for the answer
};

// The caller's own id if it is sane, else a new one.
std::string request_id(const Request& request, std::string_view prefix, std::uint64_t& next);

Refusal refusal_of(const Fault& fault, std::string_view request_id);

// The head, and the body if it is small, in place of what `out` holds.
void compose_answer(std::string& out, const Exchange& exchange, const Response& response,
                    std::string_view date_line);

// What does not go out with the head; a HEAD wants none of it.
std::string_view body_apart(const Exchange& exchange, const Response& response);

// Counts a large answer against the memory budget, because its caller may take long to read it.
// One that does not fit becomes a fault.
void count_answer(Exchange& exchange, const Response& response, ByteHold& memory);

// A handler threw. Out of memory is not a defect: it costs this request, which may be larger than
// others.
void note_defect(Exchange& exchange, const std::exception& exception, Log& log);

// Counts and logs an exchange that took until `now`.
void account(const Exchange& exchange, const Response& response, const Peer& peer, SteadyTime now,
             RequestMetrics& metrics, Log& log);

}  // namespace clawdforge
