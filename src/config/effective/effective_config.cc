#include "config/effective/effective_config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <thread>

namespace clawdforge {

std::map<std::string, std::string> environment_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

bool wants_help(const std::vector<std::string>& flags) {
  return std::ranges::any_of(flags, [](const std::string& flag) { return flag == "--help"; });
}

bool take_flag(std::vector<std::string>& arguments, std::string_view flag) {
  return std::erase(arguments, flag) > 0;
}

int print_serve_help() {
  std::puts(
      "clawdforge serve [--config FILE] [--KEY VALUE]...\n\n"
      "Each key can be a flag, an environment variable CLAWDFORGE_KEY, or a line of the TOML\n"
      "file; the first of these wins. `clawdforge config` shows the effective values.\n");
  for (const ConfigKey& key : config_keys()) {
    if (key.name == "admin_token") continue;  // a secret is never a flag
    std::string flag(key.name);
    std::ranges::replace(flag, '_', '-');
    std::printf("  --%-36s %s (default: %s)\n", flag.c_str(), std::string(key.help).c_str(),
                std::string(key.default_text).c_str());
  }
  return 0;
}

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
