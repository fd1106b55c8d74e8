#include "transcript/permission_rule.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace clawdforge {
namespace {

// The narrowest option that says yes or no: "always" is not ours to say.
std::optional<std::string> option_for(const PermissionRequest& question, bool allows) {
  const std::array<std::string_view, 2> kinds =
      allows ? std::array<std::string_view, 2>{"allow_once", "allow_always"}
             : std::array<std::string_view, 2>{"reject_once", "reject_always"};
  for (const std::string_view kind : kinds) {
    for (const PermissionOption& option : question.options) {
      if (option.kind == kind) return option.option_id;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(const Decision& decision) {
  if (!decision.option_id) return "cancelled";
  return decision.is_allowed ? "allow" : "deny";
}

Decision choice_of(bool allows, const PermissionRequest& question) {
  return {.is_allowed = allows, .option_id = option_for(question, allows)};
}

std::optional<Decision> rule_for(PermissionMode mode, const PermissionRequest& question) {
  switch (mode) {
    case PermissionMode::approve_all:
      return choice_of(true, question);
    case PermissionMode::approve_reads:
      return choice_of(question.kind == "read" || question.kind == "search", question);
    case PermissionMode::deny_all:
      return choice_of(false, question);
    case PermissionMode::ask:
      break;
  }
  return std::nullopt;
}

Decision decided(const PermissionRequest& question) {
  const auto chosen =
      std::ranges::find(question.options, question.answer, &PermissionOption::option_id);
  const bool allows = chosen != question.options.end() && chosen->kind.starts_with("allow");
  return {.is_allowed = allows, .option_id = question.answer};
}

}  // namespace clawdforge
