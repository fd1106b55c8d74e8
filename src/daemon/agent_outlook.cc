#include "daemon/agent_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "agent/jail/program_path.h"

namespace clawdforge {
namespace {

bool seems_ready(const AgentReport& agent) {
  return is_installed(agent) && agent.login != LoginState::missing;
}

std::string line_of(const AgentReport& agent) {
  if (agent.login == LoginState::not_needed) return "built in, needs no login";
  if (!is_installed(agent)) return "not installed";
  std::string line;
  for (const ProgramReport& program : agent.programs) {
    line += fmt::format("{} for {}; ", program_words(program), program.use);
  }
  return line + login_words(agent);
}

// What is between the owner and the first answer of a real agent. Claude is the default of a run.
std::string next_steps(const std::vector<AgentReport>& agents, const std::string& command) {
  const auto claude = std::ranges::find(agents, "claude", &AgentReport::name);
  std::string steps;
  if (claude == agents.end()) return steps;
  const auto add = [&](const std::string& line) { steps += "    " + line + "\n"; };
  if (!claude->programs.empty() && claude->programs.front().path.empty()) {
    add("npm install -g @anthropic-ai/claude-code");
  }
  if (claude->login == LoginState::missing) add(command + " agent login claude");
  add(command + " run \"Hello\"");
  return steps;
}

}  // namespace

Task<std::vector<AgentReport>> AgentOutlook::look() {
  auto found =
      co_await disk_.call(Lane(), [sources = sources_]() -> Result<std::vector<AgentReport>> {
        return take_inventory(sources);
      });
  if (!found) co_return std::vector<AgentReport>{};
  for (AgentReport& agent : *found) {
    for (ProgramReport& program : agent.programs) {
      const auto probed = std::ranges::find(probed_, program.name, &Probed::program);
      if (probed != probed_.end() && program.version.empty()) {
        note_version(program, probed->finding.version);
      }
    }
  }
  co_return std::move(*found);
}

std::string start_text(const std::vector<AgentReport>& agents, const std::string& command) {
  std::string text;
  for (const AgentReport& agent : agents) {
    text += fmt::format("  {:<10} {}\n", agent.name, line_of(agent));
  }
  text += fmt::format(
      "\n  In another terminal, the demo agent:\n    {} run --agent demo \"Hello\"\n", command);
  text += fmt::format("  and the first answer of a real one:\n{}", next_steps(agents, command));
  return text + fmt::format("  {} doctor looks for trouble.\n", command);
}

void log_agents(const std::vector<AgentReport>& agents, Log& log) {
  std::string absent;
  for (const AgentReport& agent : agents) {
    if (!is_installed(agent)) absent += (absent.empty() ? "" : ", ") + agent.name;
    if (!is_installed(agent) || agent.login == LoginState::not_needed) continue;
    for (const ProgramReport& program : agent.programs) {
      log.info("agent", {{"agent", std::string_view(agent.name)},
                         {"use", std::string_view(program.use)},
                         {"program", std::string_view(program.path)},
                         {"version", std::string_view(program.version)},
                         {"trial", name_of(program.trial)},
                         {"login", name_of(agent.login)}});
    }
  }
  log.info("agents that are not installed", {{"agents", std::string_view(absent)}});
  if (std::ranges::none_of(agents, [](const AgentReport& agent) {
        return agent.login != LoginState::not_needed && seems_ready(agent);
      })) {
    log.info("no agent is ready but demo: clawdforge doctor says what to do");
  }
}

std::string own_command(const std::string& own_program, std::string_view path) {
  namespace fs = std::filesystem;
  const std::string name = fs::path(own_program).filename();
  const auto found = find_program(name, path);
  std::error_code error;
  const bool is_ours = found && fs::equivalent(*found, own_program, error) && !error;
  return is_ours ? name : own_program;
}

}  // namespace clawdforge
