// What the requests to /sessions ask for, read and checked. Pure functions over foreign
// text; a mistake is Errc::malformed or Errc::invalid with all that is wrong. `ignored` as in
// Fields::check().
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"
#include "http/message/request.h"
#include "model/app.h"
#include "sessions/sessions.h"

namespace clawdforge {

struct SessionDefaults {
  std::chrono::seconds timeout{};
  std::chrono::seconds timeout_max{};
  EventFormat event_format = EventFormat::acp;
};

// [A-Za-z0-9_-]{1,64}. Any other text cannot be the id of a session.
bool is_session_id(std::string_view text);

// The body of POST /sessions.
Result<SessionRequest> parse_session(std::string_view body, std::string* ignored = nullptr);

struct ParsedTurn {
  TurnRequest turn;
  EventFormat format = EventFormat::acp;
  bool is_streamed = false;
  bool is_simple_stream = false;  // a stream is so only if the request itself says it
};

// The body of POST /sessions/{id}/turn. `accepts_stream`: by its head, the caller would
// take the turn as a stream; the field `stream` beats that.
Result<ParsedTurn> parse_turn(std::string_view body, bool accepts_stream,
                              const SessionDefaults& defaults, std::string* ignored = nullptr);

// Whether text/event-stream is among what the caller accepts.
bool accepts_event_stream(const Request& request);

// The query of GET /sessions, for this app.
Result<SessionFilter> parse_session_list(std::string_view query, AppName app);

}  // namespace clawdforge
