#include "agent/core/agent_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace clawdforge {
namespace {

constexpr std::string_view kOurPrefix = "CLAWDFORGE_";

constexpr std::array<std::string_view, 12> kPlainNames = {
    "PATH",          "HOME",          "USER", "LOGNAME",         "SHELL",
    "LANG",          "LANGUAGE",      "TZ",   "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
    "XDG_DATA_HOME", "XDG_STATE_HOME"};

template <class Names>
void pick(Environment& into, const Environment& ours, const Names& names) {
  for (const auto& name : names) {
    const auto found = ours.find(std::string(name));
    if (found != ours.end() && !found->first.starts_with(kOurPrefix)) into.insert(*found);
  }
}

bool has_any(const Environment& environment, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto found = environment.find(name);
    return found != environment.end() && !found->second.empty();
  });
}

}  // namespace

Environment plain_environment(const Environment& ours, const std::vector<std::string>& more) {
  Environment environment;
  pick(environment, ours, kPlainNames);
  pick(environment, ours, more);
  for (const auto& variable : ours) {
    if (variable.first.starts_with("LC_")) environment.insert(variable);
  }
  return environment;
}

Environment agent_environment(const Environment& ours, const AgentSpec& spec,
                              const std::string& temp_dir) {
  Environment environment = plain_environment(ours, spec.env);
  environment.insert(spec.default_env.begin(), spec.default_env.end());
  for (const auto& [name, value] : spec.set_env) {
    if (!name.starts_with(kOurPrefix)) environment.insert_or_assign(name, value);
  }
  for (const auto& [name, value] : spec.forced_env) environment.insert_or_assign(name, value);
  environment["TMPDIR"] = temp_dir;
  for (const std::string& name : spec.temp_dir_env) environment[name] = temp_dir;
  return environment;
}

LoginView login_view(const Environment& ours, const AgentSpec& spec, bool is_too_old) {
  const LoginSpec& login = spec.login;
  if (!login.is_needed) return {.has_own_home = true};
  // A directory of its own choice: another account, of which no more is known.
  if (login.storage_variable.empty() || is_too_old || spec.set_env.contains(login.dir_variable)) {
    return {};
  }
  const Environment environment = agent_environment(ours, spec, {});
  if (has_key(environment, login)) return {.has_own_home = true};
  return {.has_own_home = true, .dir = login_dir_in(environment, login)};
}

bool has_key(const Environment& environment, const LoginSpec& login) {
  return has_any(environment, login.keys);
}

bool is_elsewhere(const Environment& environment, const LoginSpec& login) {
  return has_any(environment, login.elsewhere);
}

void move_home(Environment& environment, const LoginSpec& login, const std::string& home) {
  std::erase_if(environment, [](const auto& entry) { return entry.first.starts_with("XDG_"); });
  environment["HOME"] = home;
  if (!login.dir_variable.empty()) environment[login.dir_variable] = home + "/" + login.dir;
}

std::string login_dir_in(const Environment& environment, const LoginSpec& login) {
  const auto value_of = [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::string dir = value_of(login.dir_variable);
  return dir.empty() ? value_of("HOME") + "/" + login.dir : dir;
}

bool has_only_key(const Environment& environment, const LoginSpec& login) {
  const bool has_key = std::ranges::any_of(login.keys, [&](const std::string& name) {
    const auto found = environment.find(name);
    return found != environment.end() && !found->second.empty();
  });
  if (!has_key || login.file.empty()) return has_key;
  const std::string file = login_dir_in(environment, login) + "/" + login.file;
  return ::access(file.c_str(), F_OK) != 0;
}

std::vector<std::string> refresh_locks(const std::vector<AgentSpec>& specs,
                                       const Environment& ours) {
  std::vector<std::string> locks;
  for (const AgentSpec& spec : specs) {
    if (spec.login.refresh_lock.empty()) continue;
    const Environment environment = agent_environment(ours, spec, {});
    locks.push_back(login_dir_in(environment, spec.login) + "/" + spec.login.refresh_lock);
  }
  return locks;
}

std::vector<std::string> secrets_in(const Environment& environment) {
  constexpr std::array<std::string_view, 5> kMarks = {"KEY", "TOKEN", "SECRET", "PASSWORD",
                                                      "CREDENTIAL"};
  constexpr std::size_t kShort = 8;  // a shorter value would mask ordinary words
  std::vector<std::string> secrets;
  for (const auto& [name, value] : environment) {
    const bool is_secret = std::ranges::any_of(
        kMarks, [&](std::string_view mark) { return name.find(mark) != std::string::npos; });
    if (is_secret && value.size() >= kShort) secrets.push_back(value);
  }
  return secrets;
}

}  // namespace clawdforge
