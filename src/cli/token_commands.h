// `clawdforge token ...`: each command is one call to the gateway; the result is the
// exit code (see cli.h).
#pragma once

#include <string>

#include "cli/gateway_call.h"
#include "cli/token_settings.h"

namespace clawdforge {

int mint_token(const GatewayCall& to, const std::string& name, const TokenSettings& settings);
int set_token(const GatewayCall& to, const std::string& name, const TokenSettings& settings);
int show_token(const GatewayCall& to, const std::string& name);
int list_tokens(const GatewayCall& to);
int rotate_token(const GatewayCall& to, const std::string& name);
int revoke_token(const GatewayCall& to, const std::string& name);

}  // namespace clawdforge
