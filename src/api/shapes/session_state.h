// What is said about a session, to its app and to the admin alike. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/response.h"
#include "model/session.h"

namespace clawdforge {

void append_session_state(std::string& out, const SessionView& view);
// Of a session with a workspace; nothing of one without.
void append_workspace(std::string& out, const SessionWorkspace& workspace);

// A page of the ledger; `view_of` adds what memory knows of each.
Response session_list(std::vector<Session> sessions, const std::optional<std::string>& next_cursor,
                      const std::function<SessionView(Session)>& view_of);

// The title that an app gave a session in its `meta`. None: it gave none that is text.
std::optional<std::string> title_in(std::string_view meta);

// A row's JSON, which another program may have written: {} if it is not an object.
std::string_view object_or_empty(std::string_view json);

}  // namespace clawdforge
