#include "config/effective_config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "daemon/process_setup.h"

namespace clawdforge {

Result<Config> effective_config(std::vector<std::string> flags) {
  ConfigSources sources;
  sources.flags = std::move(flags);
  sources.admin_token = take_from_environment("CLAWDFORGE_ADMIN_TOKEN");
  sources.environment = environment_variables();
  sources.stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
  sources.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return load_config(std::move(sources));
}

int refuse(int exit_code, const Failure& error) {
  std::fprintf(stderr, "clawdforge: %s\n", error.message.c_str());
  return exit_code;
}

}  // namespace clawdforge
