#include "agent/warm/start_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "agent/core/agent_environment.h"
#include "agent/jail/program_path.h"

namespace clawdforge {
namespace {

// Which file it is, and its last change; empty: there is none.
std::string file_mark(const std::string& path) {
  struct stat found = {};
  if (path.empty() || ::stat(path.c_str(), &found) != 0) return {};
  return fmt::format("{}:{}:{}:{}.{}", found.st_dev, found.st_ino, found.st_size,
                     found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

void add(std::string& text, std::string_view part) {
  // With its length in front, so that no two plans give the same text.
  text.append(fmt::format("{}:", part.size())).append(part);
}

void add_plan(std::string& text, const ChildPlan& plan) {
  // A field that is added to the plan does not compile here until it is part of the text.
  const auto& [argv, environment, working_dir, busy, own_dir, also_kept, sees_hidden, jail, limits,
               owner] = plan;
  add(text, fmt::format("{} {}", argv.size(), environment.size()));
  for (const std::string& argument : argv) add(text, argument);
  for (const auto& [name, value] : environment) {
    add(text, name);
    add(text, value);
  }
  add(text, working_dir);
  add(text, busy.path);
  add(text, own_dir);
  add(text, also_kept);
  add(text, sees_hidden ? "sees" : "");
  add(text, fmt::format("{} {} {}", limits.memory_max.value_or(0), limits.pids_max.value_or(0),
                        limits.cpu_max_percent.value_or(0)));
  // What is over a limit, or is refused by the proxy, is told of the one that it was started for.
  const bool names_owner = limits.has_any() || (jail && jail->net == TreeNet::proxy);
  add(text, names_owner ? owner : "");
  if (!jail) return;
  add(text, "jail");
  add(text, fmt::format("{} {} {}", static_cast<int>(jail->net), jail->has_call_filter,
                        jail->file_bytes_max));
  for (const JailPlace& place : jail->places) {
    add(text, fmt::format("{}", static_cast<int>(place.kind)));
    add(text, place.path);
    add(text, place.target);
  }
}

}  // namespace

std::string start_text(const ChildPlan& plan, const AgentSpec& spec) {
  std::string text;
  add_plan(text, plan);
  const auto path = plan.environment.find("PATH");
  const auto program =
      plan.argv.empty()
          ? std::nullopt
          : find_program(plan.argv.front(), path == plan.environment.end() ? "" : path->second);
  add(text, file_mark(program.value_or("")));
  const std::string login_dir = login_dir_in(plan.environment, spec.login);
  // Where it is apart from its home, the process was told so.
  const auto apart = plan.environment.find(spec.login.storage_variable);
  const std::string& kept_dir = apart == plan.environment.end() ? login_dir : apart->second;
  if (!spec.login.file.empty()) add(text, file_mark(kept_dir + "/" + spec.login.file));
  // Where the owner's own settings count, the process has read them.
  if (spec.applies_owner_settings) add(text, file_mark(login_dir + "/settings.json"));
  return text;
}

}  // namespace clawdforge
