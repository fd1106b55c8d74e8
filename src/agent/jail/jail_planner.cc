#include "agent/jail/jail_planner.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "agent/jail/install_dirs.h"
#include "agent/jail/jail_view.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

// Programs and their libraries, wherever a system has them.
constexpr std::array<std::string_view, 9> kSystem = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"};

// Of /etc only this: the rest may hold keys and passwords.
constexpr std::array<std::string_view, 28> kSettings = {
    "ld.so.cache",     "ld.so.conf", "ld.so.conf.d",   "resolv.conf", "hosts",    "nsswitch.conf",
    "host.conf",       "gai.conf",   "services",       "protocols",   "ssl",      "pki",
    "ca-certificates", "passwd",     "group",          "localtime",   "timezone", "alternatives",
    "gitconfig",       "os-release", "debian_version", "mime.types",  "magic",    "locale.conf",
    "locale.alias",    "inputrc",    "terminfo",       "login.defs"};

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool is_in(std::string_view path, std::string_view dir) {
  while (dir.ends_with('/')) dir.remove_suffix(1);
  return path == dir || (path.starts_with(dir) && path.substr(dir.size()).starts_with('/'));
}

// What comes to lie beside the login later is seen until the next start: the login has to be seen
// by its directory, because it is replaced by a rename, and a lock cannot be made in there.
void show_login(JailView& view, const std::string& dir, const std::string& file) {
  std::vector<std::string> beside;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !file.empty() && !error && entry != end;
       entry.increment(error)) {
    // A link leads to where there is nothing in the jail, or to what is covered itself.
    if (entry->path().filename() == file || entry->is_symlink(error)) continue;
    beside.push_back(entry->path().string());
  }
  if (error || beside.size() > kCoveredBesideLoginMax) return;
  view.read(dir);
  for (const std::string& path : beside) view.cover(path);
}

}  // namespace

JailPlanner::JailPlanner(Options options)
    : options_(std::move(options)), home_(value_of(options_.environment, "HOME")) {}

JailMode JailPlanner::mode_of(const Policy& policy) const {
  const JailMode mode = policy.jail.value_or(JailMode::automatic);
  return mode == JailMode::automatic && options_.is_off ? JailMode::off : mode;
}

std::string JailPlanner::expanded(const std::string& path) const {
  return path.starts_with("~/") ? home_ + path.substr(1) : path;
}

std::optional<JailPlan> JailPlanner::trial_plan(const std::string& program, const Policy& policy,
                                                bool sees_home) const {
  if (mode_of(policy) == JailMode::off) return std::nullopt;
  return plan({.commands = {{program}}, .home_dir = sees_home ? home_ : ""}, policy,
              value_of(options_.environment, "PATH"));
}

JailPlan JailPlanner::plan(const JailNeeds& needs, const Policy& policy,
                           std::string_view search_path) const {
  JailView view;
  for (const std::string_view path : kSystem) view.read(std::string(path));
  for (const std::string_view name : kSettings) view.read("/etc/" + std::string(name));
  if (options_.is_own_root) {
    view.temporary("/tmp");
  } else {
    for (const char* path : {"/tmp", "/proc", "/dev"}) view.write(path);
  }
  view.read(options_.own_program);
  std::vector<std::string> writable;
  for (const std::string& path : policy.jail_write.value_or(std::vector<std::string>{})) {
    writable.push_back(expanded(path));
  }
  const auto add_commands = [&](const std::vector<std::vector<std::string>>& commands) {
    for (const auto& command : commands) {
      for (const std::string& path : install_dirs(command, search_path, home_)) {
        // The owner's word counts more than what was found.
        if (!std::ranges::any_of(writable, [&](const auto& dir) { return is_in(path, dir); })) {
          view.read(path);
        }
      }
    }
  };
  add_commands(options_.commands);
  add_commands(needs.commands);
  for (const std::string& path : needs.files) view.read(path);
  // An installation may lie above them.
  view.cover(options_.data_dir);
  if (!home_.empty()) view.cover(home_);

  if (!needs.home_dir.empty()) view.write(needs.home_dir);
  if (!needs.own_dir.empty()) view.write(needs.own_dir);
  for (const VisiblePath& visible : needs.visible) {
    if (visible.is_writable) view.write(visible.path);
    if (!visible.is_writable && !visible.is_held) view.read(visible.path);
    if (visible.is_held) view.hold(visible.path);
  }
  if (!needs.login_dir.empty()) show_login(view, needs.login_dir, needs.login_file);
  for (const std::string& path : policy.jail_read.value_or(std::vector<std::string>{})) {
    view.read(expanded(path));
  }
  for (const std::string& path : writable) view.write(path);
  return view.plan();
}

}  // namespace clawdforge
