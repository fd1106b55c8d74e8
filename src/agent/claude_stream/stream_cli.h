// How Claude's command line is started for a conversation, and what we write to it: arguments, and
// lines of its stream-json without their newline. Pure. What it does with them is measured by
// tests/real.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/agent_starter.h"

namespace clawdforge {

// The arguments after the agent's command. No prompt and no secret is among them: every user of
// the machine can read arguments.
std::vector<std::string> claude_stream_arguments(const StartOrder& order);

// Whether it can be an id of one of its conversations, as an argument.
bool is_claude_conversation_id(std::string_view id);

// `body` is the members of the request, such as "subtype":"interrupt".
std::string control_request(std::string_view request_id, std::string_view body);
std::string initialize_body(const Conversation& conversation);
std::string set_model_body(std::string_view model);
std::string set_effort_body(std::string_view effort);
std::string set_mode_body(std::string_view mode);
// Of the list of MCP servers that the Agent Client Protocol knows. None: it is not a list.
std::optional<std::string> set_mcp_servers_body(std::string_view servers);

// A prompt, made such that it is nothing but a prompt.
std::string user_message(std::string_view prompt);

// The answers to a question. `input` and `updates` are JSON: what the tool was going to be called
// with, and the rules that make further questions needless (empty: none).
std::string allow_answer(std::string_view request_id, std::string_view input,
                         std::string_view updates);
std::string deny_answer(std::string_view request_id, std::string_view message);
// The answer to a request that we do not know.
std::string unknown_request_answer(std::string_view request_id);

}  // namespace clawdforge
