// Reads one line of an agent that speaks the Agent Client Protocol, version 1. Pure. What
// we do not know passes: a field of an unexpected type counts as absent, an unknown kind of
// update is a notification like any other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/session_agent.h"

namespace clawdforge {

// An id that we have to give back: the agent's name for the conversation, or for a question. An
// agent with a longer one is ended: 502 agent_nonsense.
inline constexpr std::size_t kAgentIdBytesMax = 1024;
// Settings of a conversation, and values of one; the others are not known.
inline constexpr std::size_t kAgentOptionsMax = 64;
inline constexpr std::size_t kAgentOptionValuesMax = 1024;

// A setting of the conversation, from a list of values.
struct AcpOption {
  std::string id;
  std::string category;  // mode, model, thought_level, or something new
  std::string current;
  std::vector<std::string> values;
};

// Of a response, what any of our requests asks for.
struct AcpResult {
  // initialize
  std::int64_t protocol_version = 0;
  bool can_load = false;
  bool can_resume = false;
  std::string agent_name;
  std::string agent_version;
  // session/new, session/load, session/resume, session/set_config_option
  std::string session_id;
  std::vector<AcpOption> options;
  std::string mode;  // of an agent that has modes, but not as an option
  // session/prompt
  std::string stop_reason;
  std::optional<Usage> usage;
};

inline constexpr std::int64_t kAcpNotLoggedIn = -32000;
inline constexpr std::int64_t kAcpUnknownMethod = -32601;
inline constexpr std::int64_t kAcpCancelled = -32800;
inline constexpr std::int64_t kAcpNotFound = -32002;

struct AcpError {
  std::int64_t code = 0;
  std::string message;
  std::string kind;  // data.errorKind, as Claude's adapter tells failures of its model's API
};

enum class AcpKind { response, request, notification };

struct AcpMessage {
  std::string json;  // the line as it came, or repaired: valid JSON without line breaks
  AcpKind kind = AcpKind::notification;
  std::string id;  // JSON text, to be sent back as it is; empty for a notification
  std::string method;

  std::optional<AcpResult> result;  // a response has this
  std::optional<AcpError> error;    // or this

  // Of an update, in either nesting, or of the tool call of a permission question.
  std::string text;          // what an agent_message_chunk adds
  std::string tool_call_id;  // empty: it is about no tool call
  std::string tool_kind;
  std::optional<double> cost_usd;             // of the conversation so far
  std::optional<ContextUse> context;          // likewise
  std::optional<PermissionRequest> question;  // of session/request_permission
};

// None: the line is not a JSON object. Bytes that are not UTF-8 and half characters become
// U+FFFD, carriage returns blanks.
std::optional<AcpMessage> acp_message(std::string line);

}  // namespace clawdforge
