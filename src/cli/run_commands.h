// `clawdforge run` and `clawdforge upload`: one call each, with the app's token from
// CLAWDFORGE_TOKEN. The result is the exit code (see cli.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/gateway_call.h"

namespace clawdforge {

struct RunCommand {
  std::string prompt;  // empty or "-": from standard input
  std::string agent;
  std::string model;
  std::string system;
  std::string effort;
  std::vector<std::string> files;  // tokens
  std::optional<std::int64_t> timeout_secs;
};

// Prints the result: a text as it is, anything else as JSON.
int run_prompt(const GatewayCall& to, const RunCommand& command);

struct UploadCommand {
  std::string path;
  std::optional<std::int64_t> ttl_secs;
};

// Prints the file's token.
int upload_file(const GatewayCall& to, const UploadCommand& command);

}  // namespace clawdforge
