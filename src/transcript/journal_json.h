// What the gateway itself writes into a session's journal, beside the agent's own messages: the
// data of the events `turn`, `done`, `failed`, `permission` and `permission_resolved`. It is a
// format of the ledger and stays readable for ever. The native dialect shows it as it is; others
// read it back with TurnEventReader. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "transcript/permission_request.h"
#include "transcript/turn_outcome.h"

namespace clawdforge {

// What is kept of a prompt in a turn's first event. One that is longer is cut, and says so.
inline constexpr std::size_t kKeptTurnPromptBytesMax = 256 * 1024;
// The first line of a session's first prompt, as its title.
inline constexpr std::size_t kTitleCharactersMax = 120;

// What a turn was asked.
struct TurnOpening {
  std::int64_t turn_index = 0;
  std::int64_t at = 0;                     // unix seconds
  std::optional<std::string_view> prompt;  // none: prompts are not kept
  std::vector<std::string> files;          // names in the session's directory; told with a prompt
};

// How a turn began.
std::string opening_json(const TurnOpening& opening);

// The first line of a prompt that is not blank, cut to kTitleCharactersMax.
std::string title_of(std::string_view prompt);

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

// What an agent's message, which asks for a permission, says of the tool: JSON text of an object;
// empty: nothing.
std::string tool_in(std::string_view message);

}  // namespace clawdforge
