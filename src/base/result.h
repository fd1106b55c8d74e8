// Errors are values. Result<T> is what every fallible function returns; Error says
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
  forbidden,         // valid, but not for this door
  not_found,         // absent, or somebody else's
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

struct Error {
  Errc kind = Errc::internal;
  std::string_view code;                // a literal: stable, listed in docs/openapi.yaml
  std::string message;                  // for the caller: no path, no secret, no foreign output
  std::string detail;                   // for the log
  std::vector<FieldError> fields;       // which fields were wrong, where that is the reason
  std::chrono::seconds retry_after{0};  // zero: waiting does not help
};

template <class T>
using Result = std::expected<T, Error>;

// return fail(Errc::conflict, "name_taken", "There is an app of this name already.");
inline std::unexpected<Error> fail(Errc kind, std::string_view code, std::string message,
                                   std::string detail = {}) {
  return std::unexpected(Error{kind, code, std::move(message), std::move(detail), {}, {}});
}

}  // namespace clawdforge
