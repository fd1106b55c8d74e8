// What the answers about sessions say. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "http/message/response.h"
#include "sessions/sessions.h"

namespace clawdforge {

Response created_session(const Session& session);
Response session_state(const SessionView& view);
// A page of the ledger, with what memory knows of each.
Response session_list(SessionPage page, const Sessions& sessions);

// Takes the events, which may be many MiB, out of the outcome: they are not parsed again.
Response turn_answer(std::string_view session_id, TurnOutcome outcome, std::string_view request_id);

Response file_list(const WorkListing& listing);

// A row's JSON, which another program may have written: {} if it is no object.
std::string_view object_or_empty(std::string_view json);

}  // namespace clawdforge
