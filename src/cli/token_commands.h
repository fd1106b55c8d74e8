// `clawdforge token ...`: each command is one call to the gateway; the result is the
// exit code (see cli.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/gateway_call.h"

namespace clawdforge {

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
