// The command line's client side: it speaks HTTP to a running gateway and knows nothing
// else of it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

// Where the gateway is and what opens its admin door; asked for only when needed.
struct GatewayDoor {
  std::string url;
  std::string pinned_cert;
  Secret admin_token;
  bool is_token_from_file = false;  // then it is for the gateway of this machine only
  bool is_running = false;
  std::string socket_file;  // where the gateway takes its owner's commands; empty: nowhere
};
using FindDoor = std::function<Result<GatewayDoor>(const std::string& data_dir)>;

// The exit code: 0 done, 1 no answer, 2 wrong usage, 3 no token, 4 refused (HTTP 4xx),
// 5 failed (HTTP 5xx).
int run_client(int argc, char** argv, const FindDoor& find_door);

}  // namespace clawdforge
