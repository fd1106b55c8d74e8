// The commands of the daemon: `serve` and `config`. Each returns the exit code.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

// 0 drained, 1 it did not start, 2 a bad flag, key or value.
int serve(std::vector<std::string> flags);

// Prints the effective configuration.
int print_config(std::vector<std::string> flags);

// What a client on this machine needs to talk to the gateway that runs here, by the same
// configuration. `data_dir` replaces the configured one unless empty.
struct LocalGateway {
  std::string url;
  std::string tls_cert;
  Secret admin_token;  // empty: none was found
  bool is_token_from_file = false;
  bool is_running = false;  // else another program may have the port by now
  std::string socket_file;  // of a gateway that runs; empty: none
};
Result<LocalGateway> find_local_gateway(const std::string& data_dir);

}  // namespace clawdforge
