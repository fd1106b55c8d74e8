// What a client needs to talk to the gateway of this machine. The daemon finds it, by the same
// configuration as `serve`; the client knows nothing else of the daemon.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

struct LocalGateway {
  std::string data_dir;
  std::string url;
  std::string certificate;  // PEM; empty: it does not speak TLS
  Secret admin_token;       // of the data directory's file; empty: there is none
  bool is_running = false;  // else another program may have the port by now
  std::string socket_file;  // where a running one takes its owner's commands; empty: nowhere
};

// Asked for only when needed. `data_dir` replaces the configured one unless empty.
using FindLocalGateway = std::function<Result<LocalGateway>(const std::string& data_dir)>;

}  // namespace clawdforge
