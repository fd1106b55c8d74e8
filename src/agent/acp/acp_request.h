// Writes what we say to an agent that speaks the Agent Client Protocol, version 1: one
// line of JSON each, without its newline. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/session_agent.h"

namespace clawdforge {

std::string acp_request(std::int64_t id, std::string_view method, std::string_view params);
std::string acp_notification(std::string_view method, std::string_view params);

// The params of each method.

// We offer neither files nor terminals: an agent has its own.
std::string initialize_params();
std::string authenticate_params(std::string_view method_id);

// What an agent makes of `_meta`.
struct AcpDialect {
  bool is_claude = false;     // the adapter for Claude, which passes options on to the CLI
  bool takes_system = false;  // it reads _meta.systemPrompt
  bool owner_settings = false;
};
// Of session/new; with `session_id`, of session/load and session/resume, which must be
// told everything again. None: the MCP servers are not a JSON array.
std::optional<std::string> session_params(const Conversation& conversation,
                                          const AcpDialect& dialect, std::string_view session_id);

// Each of `texts` is a block of its own.
std::string prompt_params(std::string_view session_id, const std::vector<std::string_view>& texts);
std::string cancel_params(std::string_view session_id);
std::string set_option_params(std::string_view session_id, std::string_view option_id,
                              std::string_view value);
std::string set_mode_params(std::string_view session_id, std::string_view mode);
std::string set_title_params(std::string_view session_id);

// The answer to a permission question whose id is the JSON text `id`. None: cancelled.
std::string permission_answer(std::string_view id, const std::optional<std::string>& option_id);
// The answer to a request that we do not know.
std::string unknown_method_answer(std::string_view id);

}  // namespace clawdforge
