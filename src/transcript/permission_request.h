// What an agent asks before it uses a tool, whatever its protocol. Plain records.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace clawdforge {

struct PermissionOption {
  std::string option_id;
  std::string name;
  std::string kind;  // allow_once, allow_always, reject_once, reject_always, or something new
};

struct PermissionRequest {
  std::string ask_id;  // for SessionAgent::answer()
  std::string title;
  std::string kind;  // of the tool: read, edit, execute, ...; empty: not known
  std::vector<PermissionOption> options;
  // A program between us and the agent has answered it, by Conversation::permission_mode:
  // it is told so that it can be written down.
  bool is_answered = false;
  std::optional<std::string> answer;  // then; none: cancelled
};

}  // namespace clawdforge
