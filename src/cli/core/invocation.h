// One call of the program: which command, with which arguments, on which screen. The dispatch
// makes it, and the command's function gets it.
#pragma once

#include "base/secret.h"
#include "cli/core/arguments.h"
#include "cli/core/screen.h"
#include "client/local_gateway.h"

namespace clawdforge {

struct Invocation {
  const Command* command = nullptr;
  Arguments arguments{};
  Screen screen{};
  FindLocalGateway find_local{};
  Secret admin_token{};  // CLAWDFORGE_ADMIN_TOKEN, which is no longer in the environment

  bool as_json() const { return arguments.has("--json"); }
  bool is_verbose() const { return arguments.has("--verbose"); }
};

}  // namespace clawdforge
