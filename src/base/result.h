// Errors are values. Result<T> is what every fallible function returns; Failure says
// what kind of no it is, which stable code callers may match on, one sentence that
// may be shown to them, and a detail that only the log sees.
#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clawdforge {

// The kinds of no. docs/architecture.md has the table from kind to HTTP status.
enum class Errc {
  malformed,         // does not parse
  invalid,           // parses, but breaks a rule
  unauthorized,      // no valid token
  forbidden,         // valid, but not for this path
  misdirected,       // asked for by a host name that is not ours
  not_found,         // absent, or another app's
  conflict,          // the object's state does not allow it
  gone,              // was there, is closed
  too_large,         // over a size limit
  unsupported_type,  // a body of the wrong type
  over_quota,        // the caller's own limit
  internal,          // our fault
  agent_failed,      // the agent died, spoke nonsense or refused
  unavailable,       // full, draining, or without a ledger
  timed_out,         // the agent's deadline passed
};

struct FieldError {
  std::string field;
  std::string message;
};

// What a decision after the failure goes by. The code is for callers and never decides.
enum class Cause {
  other,              // no decision depends on it
  login,              // the agent has no login
  account_limit,      // the login's account has used up its allowance
  model_limit,        // the account has used up its allowance for this model
  rate_limit,         // the API asks to slow down; the allowance is not used up
  agent_missing,      // the agent's program is not there
  agent_exited,       // the agent's process ended too early
  conversation_gone,  // the agent does not have the conversation that it was to load
  agent_said_so,      // the agent itself answered that it failed: it and its login work
  cancelled,          // by the caller
  interrupted,        // by the end of the gateway
  deadline,           // the time that the caller gave is over
  maybe_kept,         // a write that may have been kept
  not_begun,          // refused before anything was done
  ledger_away,        // the ledger cannot be written or read now
  app_busy,           // the app has as much under way as it may have; ends when some of it ends
  app_limit,          // the app's own rate or budget is used up; ends by itself
};

// Why something did not go well: for a request, a run, a turn or an agent alike.
struct Failure {
  Errc kind = Errc::internal;
  std::string_view code{};              // a literal: stable, listed in docs/openapi.yaml
  std::string message{};                // for the caller: no path, no secret; masked
  std::string detail{};                 // for the log
  std::vector<FieldError> fields{};     // which fields were wrong, where that is the reason
  std::chrono::seconds retry_after{0};  // zero: waiting does not help
  Cause cause = Cause::other;
  // The last of an agent's standard error, masked, where the agent did not start; for the caller.
  std::string error_tail{};
  // Of a limit that is reached: JSON text of an object that says which, and how far.
  std::string limit{};
  // Of an ask: what its app has left, as the headers of these names; empty: nothing to tell.
  std::string rate_limit_policy{};
  std::string rate_limit{};
};

template <class T>
using Result = std::expected<T, Failure>;

// return fail(Errc::conflict, "name_taken", "There is an app of this name already.");
inline std::unexpected<Failure> fail(Errc kind, std::string_view code, std::string message,
                                     std::string detail = {}) {
  return std::unexpected(Failure{
      .kind = kind, .code = code, .message = std::move(message), .detail = std::move(detail)});
}

}  // namespace clawdforge
