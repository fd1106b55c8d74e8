// What POST /run asks for, and what comes of it. Plain records, no I/O.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/agent.h"
#include "model/ask_key.h"
#include "model/run.h"
#include "model/workspace.h"
#include "quota/budgets/limit_notice.h"

namespace clawdforge {

class JsonSchema;
class RunFeed;
struct RunOutcome;

struct RunRequest {
  std::string agent;
  std::string prompt;
  std::string model;
  std::string system;
  SystemMode system_mode = SystemMode::append;
  std::string effort;
  std::optional<ToolChoice> tools{};              // none: those that the agent has by itself
  std::optional<int> max_turns{};                 // how often the agent may ask its model
  std::shared_ptr<const JsonSchema> schema{};     // that the result must meet; null: none
  std::optional<PermissionMode> permission_mode;  // none: the default, until execute() has set it
  std::vector<std::string> files;                 // tokens
  std::chrono::seconds timeout{};
  std::string workspace_name = {};  // empty: an empty directory of its own
  SessionWorkspace workspace = {};  // what it is given of that, once execute() has looked
  bool waits_for_workspace = true;  // while others work in the owner's directory
  bool waits = false;               // rather than be refused by a limit that ends in time
  std::chrono::steady_clock::time_point received;  // what the timeout counts from
  std::shared_ptr<RunFeed> feed{};                 // null: only the answer is of interest
  std::shared_ptr<KeyHold> key{};                  // null: it was asked without one
  // With a key: what its caller is told, to be kept.
  std::function<KeptAnswer(const RunOutcome&)> answer_of{};
};

struct RunOutcome {
  RunId run_id;                    // empty: refused at the breaker, no run was made
  std::optional<Failure> failure;  // none: it went well
  std::string result;              // JSON text
  std::optional<std::string> stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;
  std::vector<Denial> denials;
  std::string model{};  // that was asked for, or is the agent's default; empty: not known
  std::string error_tail;
  std::string failed_text{};  // of an answer that does not meet its schema: what the agent wrote
  LimitNotice limits{};       // of the app
  std::chrono::milliseconds duration{};
};

}  // namespace clawdforge
