// `clawdforge token ...`: each command is one call to the gateway; the result is the
// exit code (see cli.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace clawdforge {

inline constexpr int kExitNoAnswer = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoToken = 3;
inline constexpr int kExitRefused = 4;
inline constexpr int kExitFailed = 5;

// How to reach the gateway, as far as the caller said.
struct GatewayCall {
  FindDoor find_door;
  std::string url;       // empty: the gateway of this machine
  std::string data_dir;  // empty: the configured one
  bool as_json = false;
};

struct NewToken {
  std::string name;
  std::vector<std::string> ip_cidrs;
  std::string event_format;
  std::optional<std::int64_t> max_sessions;
  std::optional<std::int64_t> max_runs;
};

int mint_token(const GatewayCall& to, const NewToken& fresh);
int list_tokens(const GatewayCall& to);
int rotate_token(const GatewayCall& to, const std::string& name);
int revoke_token(const GatewayCall& to, const std::string& name);

}  // namespace clawdforge
