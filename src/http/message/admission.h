// What to do with a request, decided from its head alone, before any of its body is read: an
// answer right away, or a handler and how much body it takes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "base/async/async.h"
#include "base/limits/byte_budget.h"
#include "base/limits/rate_table.h"
#include "http/message/request.h"
#include "http/message/response.h"
#include "http/message/router.h"

namespace clawdforge {

// Runs while the connection waits; the request lives until the task has ended.
using Handler = std::move_only_function<Task<Response>(Request* request)>;

struct Admission {
  std::optional<Response> refusal;
  std::size_t body_bytes_max = 0;
  // One of the two at most: a handler that pulls the body learns from it that the caller
  // has gone.
  bool pulls_body = false;      // the handler reads it from Request::body_reader
  bool watches_caller = false;  // Request::hang_up happens when the caller hangs up
  Handler handler;
  // Kept until the connection's next request is admitted, or the connection has ended.
  std::shared_ptr<const void> connection_hold;
  ByteHold memory;               // for the body and the answer; by default without a limit
  ByteMeter meter;               // where the bytes of the body are counted
  const Route* route = nullptr;  // for the metrics; none for an unknown path
};
using Admit = std::move_only_function<Admission(Request& request)>;

}  // namespace clawdforge
