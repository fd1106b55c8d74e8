// What the gateway itself writes into a session's journal, beside the agent's own messages: the
// data of the events `done`, `failed`, `permission` and `permission_resolved`. It is a format of
// the ledger and stays readable for ever. The native dialect shows it as it is; others read it
// back with TurnEventReader. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong_id.h"
#include "transcript/permission_request.h"
#include "transcript/turn_outcome.h"

namespace clawdforge {

// How a turn ended.
std::string closing_json(const SessionId& session_id, const TurnOutcome& outcome);

// A question. `expires_at` none: it was decided at once. `message` is the agent's own, JSON of
// an object; empty: leave it out.
std::string question_json(std::string_view id, std::int64_t turn_index, std::int64_t asked_at,
                          std::optional<std::int64_t> expires_at, const PermissionRequest& question,
                          std::string_view message);

// Its answer. `decision` is allow, deny or cancelled; `by` is app, rule, expiry or cancel.
std::string resolution_json(std::string_view id, std::string_view decision,
                            const std::optional<std::string>& option_id, std::string_view by);

}  // namespace clawdforge
