// Where a command talks to, and with which token. The order: --url, CLAWDFORGE_URL, the profile of
// --profile or CLAWDFORGE_PROFILE, cf.env, the gateway of this machine. --data-dir means the
// gateway of this machine, unless --url is there, too. Blocks on files.
#pragma once

#include <string>

#include "base/secret.h"
#include "cli/core/invocation.h"
#include "client/client.h"

namespace clawdforge {

// Which token a command sends. `any`: the app's, else the admin's.
enum class TokenKind { none, app, admin, any };

struct Destination {
  ServerAddress address{};
  std::string url{};     // for messages
  std::string source{};  // what named it: "--url", "the profile work", …
  Secret token{};
  bool is_local = false;  // the gateway of this machine, found by its data directory
};

// kExitUsage: a bad address or file; kExitNoAnswer: no gateway runs here; kExitNoToken: there is no
// token for it. A token is sent only to the gateway that it was stored for: the admin token of this
// machine's file only to this machine.
Asked<Destination> find_destination(const Invocation& invocation, TokenKind kind);

}  // namespace clawdforge
