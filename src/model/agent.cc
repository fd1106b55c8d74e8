#include "model/agent.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 4> kModeNames = {"deny_all", "approve_reads", "ask",
                                                        "approve_all"};
constexpr std::array<std::string_view, 3> kProtocolNames = {"acp", "acpx", "claude"};

}  // namespace

std::string_view name_of(PermissionMode mode) { return name_among(kModeNames, mode); }

std::optional<PermissionMode> permission_mode_from(std::string_view name) {
  return value_among<PermissionMode>(kModeNames, name);
}

bool is_model_name(std::string_view text) {
  return !text.empty() && text.size() <= kModelNameBytesMax && !text.starts_with('-') &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool exceeds(PermissionMode mode, PermissionMode limit) { return mode > limit; }

std::string_view name_of(AgentProtocol protocol) { return name_among(kProtocolNames, protocol); }

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

std::optional<Warmth> warmth_from(std::string_view text) {
  if (text != "auto") return std::nullopt;
  return Warmth{.is_auto = true};
}

std::optional<Warmth> warmth_from(std::int64_t spares) {
  if (spares < 0 || std::cmp_greater(spares, kSparesMax)) return std::nullopt;
  return Warmth{.is_auto = false, .spares = static_cast<std::size_t>(spares)};
}

}  // namespace clawdforge
