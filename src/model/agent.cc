#include "model/agent.h"

#include <array>
#include <utility>

namespace clawdforge {
namespace {

constexpr std::array<std::pair<std::string_view, PermissionMode>, 4> kModes = {{
    {"deny_all", PermissionMode::deny_all},
    {"approve_reads", PermissionMode::approve_reads},
    {"ask", PermissionMode::ask},
    {"approve_all", PermissionMode::approve_all},
}};

}  // namespace

std::string_view name_of(PermissionMode mode) {
  for (const auto& [name, known] : kModes) {
    if (known == mode) return name;
  }
  return {};
}

std::optional<PermissionMode> permission_mode_from(std::string_view name) {
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
  }
  return std::nullopt;
}

bool exceeds(PermissionMode mode, PermissionMode limit) { return mode > limit; }

std::string_view name_of(AgentProtocol protocol) {
  return protocol == AgentProtocol::acp ? "acp" : "acpx";
}

std::string_view name_of(LoginState state) {
  switch (state) {
    case LoginState::not_needed:
      return "not_needed";
    case LoginState::key:
      return "key";
    case LoginState::file:
      return "file";
    case LoginState::missing:
      return "missing";
    case LoginState::unknown:
      break;
  }
  return "unknown";
}

std::string_view name_of(VersionTrial trial) {
  switch (trial) {
    case VersionTrial::tested:
      return "tested";
    case VersionTrial::older:
      return "older";
    case VersionTrial::newer:
      return "newer";
    case VersionTrial::unknown:
      break;
  }
  return "unknown";
}

}  // namespace clawdforge
