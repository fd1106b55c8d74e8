#include "doctor/agent_login.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "agent/inventory/inventory.h"
#include "base/exit_codes.h"
#include "config/effective/effective_config.h"
#include "doctor/local_agents.h"
#include "json/json_fields.h"
#include "json/json_parse.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

// Which program to become, as whom.
struct LoginOrder {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string install;
  LoginState state = LoginState::unknown;
  uid_t uid = 0;
};

int complain_of(int exit_code, std::string_view sentence) {
  fmt::print(stderr, "clawdforge: {}\n", sentence);
  return exit_code;
}

LoginOrder order_of(const AgentReport& report, uid_t uid) {
  return {.command = report.login_command,
          .environment = report.login_environment,
          .install = install_command(report),
          .state = report.login,
          .uid = uid};
}

// The gateway's own word, where one runs: its home and its PATH may be others than ours.
void take_gateways_order(const boost::json::object& answer, std::string_view name,
                         LoginOrder& order) {
  order.uid = static_cast<uid_t>(count_in(answer, "uid"));
  const auto* const agents = array_in(answer, "agents");
  for (std::size_t i = 0; agents != nullptr && i < agents->size(); ++i) {
    if (!(*agents)[i].is_object()) continue;
    const auto& row = (*agents)[i].as_object();
    if (text_in(row, "name") != name) continue;
    const auto* const command = array_in(row, "login_command");
    const auto* const environment = object_in(row, "login_environment");
    if (command == nullptr || environment == nullptr) return;
    order.command.clear();
    for (const auto& word : *command) {
      if (word.is_string()) order.command.emplace_back(word.as_string());
    }
    order.environment.clear();
    for (const auto& [variable, value] : *environment) {
      if (value.is_string()) order.environment[variable] = std::string(value.as_string());
    }
  }
}

// Null: there is no user of this id.
const char* name_of_user(uid_t uid) {
  const struct passwd* const found = ::getpwuid(uid);
  return found == nullptr ? nullptr : found->pw_name;
}

// Root becomes the gateway's user; for everybody else that has to be so already.
int become_user(uid_t uid, const std::string& name, const std::string& data_dir) {
  if (uid == ::geteuid()) return 0;
  const char* const user = name_of_user(uid);
  if (::geteuid() != 0) {
    return complain_of(
        kExitRefused, fmt::format("the gateway belongs to another user; run: sudo -u {} clawdforge "
                                  "agent login {} --data-dir {}",
                                  user == nullptr ? std::to_string(uid) : user, name, data_dir));
  }
  const struct passwd* const entry = ::getpwuid(uid);
  if (entry == nullptr || ::initgroups(entry->pw_name, entry->pw_gid) != 0 ||
      ::setgid(entry->pw_gid) != 0 || ::setuid(uid) != 0) {
    return complain_of(kExitFailed, fmt::format("cannot become the gateway's user {}: {}", uid,
                                                std::strerror(errno)));
  }
  return 0;
}

// Ours, for the terminal and the browser, without what is the gateway's; then what makes it the
// login of the gateway's agents.
std::vector<std::string> variables_for(const LoginOrder& order) {
  auto variables = environment_variables();
  std::erase_if(variables,
                [](const auto& variable) { return variable.first.starts_with("CLAWDFORGE_"); });
  for (const auto& [name, value] : order.environment) variables[name] = value;
  if (const char* const user = name_of_user(order.uid)) {
    variables["USER"] = variables["LOGNAME"] = user;
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What the login's program is to find there.
bool make_login_dirs(const LoginOrder& order) {
  for (const auto& [name, value] : order.environment) {
    if (name == "HOME" || name == "PATH" || !value.starts_with('/')) continue;
    const std::filesystem::path above = std::filesystem::path(value).parent_path();
    std::error_code error;
    std::filesystem::create_directories(above.parent_path().parent_path(), error);
    for (const auto& dir : {above.parent_path(), above}) ::mkdir(dir.c_str(), 0700);
    if (::mkdir(value.c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

int become_program(LoginOrder order, const std::string& name) {
  const auto home = order.environment.find("HOME");
  if (home == order.environment.end() || ::chdir(home->second.c_str()) != 0) {
    return complain_of(kExitFailed, "the gateway's user has no home directory to log in from.");
  }
  if (!make_login_dirs(order)) {
    return complain_of(kExitFailed, fmt::format("the directory for the login cannot be made: {}.",
                                                std::strerror(errno)));
  }
  fmt::print(stderr, "{} of {}; afterwards: clawdforge agent check {}\n",
             fmt::join(order.command, " "), home->second, name);
  std::vector<std::string> variables = variables_for(order);
  ::execve(order.command.front().c_str(), pointers_to(order.command).data(),
           pointers_to(variables).data());
  return complain_of(kExitFailed, fmt::format("{} does not start: {}.", order.command.front(),
                                              std::strerror(errno)));
}

// The owner of the data directory is the user of its gateway; without one it will be who asks.
uid_t owner_of(const std::string& data_dir) {
  struct stat found{};
  return ::stat(data_dir.c_str(), &found) == 0 ? found.st_uid : ::geteuid();
}

int log_in(const std::string& name, const Config& config, const DoctorLinks& links) {
  const auto reports = local_agents(config, environment_variables());
  const auto report = std::ranges::find(reports, name, &AgentReport::name);
  if (report == reports.end()) {
    return complain_of(kExitRefused,
                       fmt::format("there is no agent {}; clawdforge agent list names "
                                   "them.",
                                   name));
  }
  LoginOrder order = order_of(*report, owner_of(config.data_dir));
  if (order.state == LoginState::not_needed) {
    fmt::print("The agent {} needs no login.\n", name);
    return 0;
  }
  if (is_data_dir_in_use(config.data_dir)) {
    const auto told = links.get(config.data_dir, "/agents");
    const auto json = told ? parse_json(*told, kJsonDepthMax) : std::nullopt;
    if (json && json->is_object()) take_gateways_order(json->as_object(), name, order);
  }
  if (order.command.empty()) {
    return complain_of(
        kExitRefused,
        fmt::format("it is not known how one logs in to {}; start its program.", name));
  }
  if (!order.command.front().contains('/')) {
    return complain_of(kExitFailed,
                       fmt::format("{} is not installed{}{}", order.command.front(),
                                   order.install.empty() ? "." : "; run: ", order.install));
  }
  if (const int refused = become_user(order.uid, name, config.data_dir)) return refused;
  return become_program(std::move(order), name);
}

}  // namespace

int agent_login(std::vector<std::string> arguments, const DoctorLinks& links) {
  if (arguments.empty() || arguments.front().starts_with('-')) {
    return complain_of(kExitUsage, "name the agent: clawdforge agent login NAME");
  }
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  const auto config = effective_config(std::move(arguments));
  if (!config) return refuse(kExitUsage, config.error());
  return log_in(name, *config, links);
}

}  // namespace clawdforge
