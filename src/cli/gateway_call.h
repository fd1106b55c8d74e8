// One call of a command to the gateway: finds it, finds the token, asks, and says on
// stderr what went wrong.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "base/exit_codes.h"
#include "cli/cli.h"
#include "client/client.h"

namespace clawdforge {

// How to reach the gateway, as far as the caller said.
struct GatewayCall {
  FindDoor find_door;
  std::string url;       // empty: the gateway of this machine
  std::string data_dir;  // empty: the configured one
  bool as_json = false;
};

// The admin token of this machine's gateway, or the app token in CLAWDFORGE_TOKEN: a
// token is never an argument, where every user of the machine could read it.
enum class TokenKind { admin, app };

struct Outcome {
  int exit_code = 0;  // not zero: said why already
  std::string text;
  boost::json::object body;
};

Outcome call_gateway(const GatewayCall& to, TokenKind kind, ClientRequest request,
                     std::chrono::seconds timeout);

// Says the sentence and gives the code.
int complain(int exit_code, std::string_view sentence);

}  // namespace clawdforge
