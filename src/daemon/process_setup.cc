#include "daemon/process_setup.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "config/config.h"

namespace clawdforge {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLAWDFORGE_MUST_STAY_TRACEABLE 1  // the leak check traces its own process
#endif
#endif

// More than any limit of ours can use, and not so many that a program which closes all
// possible descriptors one by one takes minutes.
constexpr rlim_t kDescriptorsMax = 65'536;

// The limit that was.
std::optional<std::uint64_t> raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  const rlim_t wanted = std::min(limit.rlim_max, kDescriptorsMax);
  if (before >= wanted) return before;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

}  // namespace

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

std::optional<std::uint64_t> prepare_process() {
#if !defined(CLAWDFORGE_MUST_STAY_TRACEABLE)
  prctl(PR_SET_DUMPABLE, 0);
#endif
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  return raise_descriptor_limit();
}

Result<std::string> own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  return fail(Errc::unavailable, "no_proc",
              fmt::format("The gateway cannot find its own program: {}.", error.message()));
}

std::size_t descriptors_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDescriptorsMax;
  return std::min(limit.rlim_cur, kDescriptorsMax);
}

bool wants_help(const std::vector<std::string>& flags) {
  return std::ranges::any_of(flags, [](const std::string& flag) { return flag == "--help"; });
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

}  // namespace clawdforge
