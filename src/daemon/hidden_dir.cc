#include "daemon/hidden_dir.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

// Both without links, so that two names of one place are found to be equal.
bool is_below(const fs::path& path, const fs::path& above) {
  const auto [rest, unused] = std::ranges::mismatch(above, path);
  return rest == above.end();
}

// Not there, or not to be looked at: as it is written.
fs::path without_links(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : found;
}

void warn_of_ledger_elsewhere(const Config& config, const fs::path& data_dir, Log& log) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!config.ledger.starts_with(kScheme)) return;
  const std::string path = config.ledger.substr(kScheme.size());
  if (is_below(without_links(path), data_dir)) return;
  log.warn("agents can read the ledger: it is not in the data directory",
           {{"path", std::string_view(path)}});
}

}  // namespace

HiddenDir hidden_dir(const Config& config, const std::map<std::string, std::string>& environment,
                     Log& log) {
  const fs::path data_dir = without_links(config.data_dir);
  warn_of_ledger_elsewhere(config, data_dir, log);
  HiddenDir hidden{.path = config.data_dir, .kept = {}};
  const auto found = environment.find("HOME");
  const fs::path home = found == environment.end() ? "" : without_links(found->second);
  if (home == data_dir) {
    log.warn(
        "agents can read the data directory: it is their home; set data_dir to a directory below",
        {{"path", std::string_view(config.data_dir)}});
    return {};
  }
  if (is_below(home, data_dir))
    hidden.kept.push_back(config.data_dir + "/" + home.lexically_relative(data_dir).string());
  return hidden;
}

}  // namespace clawdforge
