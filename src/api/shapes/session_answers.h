// What the answers about sessions say. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/strong_id.h"
#include "http/message/response.h"
#include "sessions/sessions.h"

namespace clawdforge {

Response created_session(const Session& session);
// Its agent did not start: the refusal, and what the agent said last on its standard error.
Response uncreated_session(const Failure& why, std::string_view request_id);

Response session_state(const SessionView& view);
Response turn_list(const TurnPage& page);

// What the turn's closing event says, and the events: JSON of an array, which may have many MiB
// and is not parsed again.
Response turn_answer(const SessionId& session_id, const TurnOutcome& outcome, std::string events,
                     std::string_view request_id);

Response file_list(const WorkListing& listing);

}  // namespace clawdforge
