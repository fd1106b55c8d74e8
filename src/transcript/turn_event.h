// What happens in a turn, typed: what every dialect renders, whatever protocol the agent speaks.
// Plain records. Texts and JSON values are views into the message that an event was read from,
// and valid as long as that is.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "model/run.h"
#include "model/session.h"
#include "transcript/permission_request.h"

namespace clawdforge {

// A message that says nothing, or of a kind that we do not know.
struct UnknownMessage {};

// Adds to the agent's answer.
struct TextPiece {
  std::string_view text;
};

// Adds to what the agent thinks aloud.
struct ThoughtPiece {
  std::string_view text;
};

// A tool call, or more about one that was made before. Null or none: this message does not say.
struct ToolReport {
  bool is_call = false;
  std::optional<std::string_view> call_id;
  std::optional<std::string_view> name;
  std::optional<std::string_view> title;
  std::string_view kind;    // read, edit, execute, ...; empty: not said
  std::string_view status;  // pending, in_progress, completed, failed; empty: not said
  const boost::json::object* input = nullptr;
  const boost::json::value* output = nullptr;   // never a JSON null
  const boost::json::array* content = nullptr;  // what is shown of the output: see shown_text()
  std::optional<std::string_view> printed;      // more of what a command prints
};

struct PlanStep {
  std::string_view text;
  std::string_view priority;
  std::string_view status;
};

// Replaces the plan that the agent told before.
struct Plan {
  std::vector<PlanStep> steps;
};

struct Question {
  std::string_view id;       // of the gateway; empty in the agent's own message
  std::string_view call_id;  // of the tool call; empty: none
  PermissionRequest asked;
};

struct QuestionAnswer {
  std::string_view id;
  std::string_view decision;  // allow, deny or cancelled
  std::string_view by;        // app, rule, expiry or cancel
};

struct UsageReport {
  std::optional<double> cost_usd;     // of the conversation so far
  std::optional<ContextUse> context;  // of what the agent can keep in mind
};

// The agent's own word that it has finished. What became of the turn is in TurnClosed.
struct AgentStop {
  std::string_view stop_reason;  // empty: none
  std::optional<Usage> usage;
};

// What the turn was asked, by the gateway: the first event of every turn.
struct TurnOpened {
  std::optional<std::string_view> prompt;  // none: it was not kept
};

// How the turn ended, by the gateway: the last event of every turn.
struct TurnClosed {
  bool is_ok = false;
  std::string_view stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;  // of this turn
  std::string_view code;           // of a failure
  std::string_view message;        // likewise
};

using TurnEvent = std::variant<UnknownMessage, TextPiece, ThoughtPiece, ToolReport, Plan, Question,
                               QuestionAnswer, UsageReport, AgentStop, TurnOpened, TurnClosed>;

}  // namespace clawdforge
