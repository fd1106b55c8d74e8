#include "agent/jail/program_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace clawdforge {
namespace {

bool is_program(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, std::string_view path) {
  if (name.empty()) return std::nullopt;
  if (name.contains('/')) return is_program(name) ? std::optional(name) : std::nullopt;
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    const std::string file = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && is_program(file)) return file;
  }
  return std::nullopt;
}

}  // namespace clawdforge
