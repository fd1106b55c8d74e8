#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <optional>

#include "agent/core/agent_environment.h"
#include "agent/failure/masking.h"
#include "agent/inventory/inventory.h"
#include "agent/jail/program_path.h"
#include "doctor/checks.h"
#include "doctor/local_agents.h"
#include "json/json_fields.h"
#include "json/json_parse.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

constexpr std::size_t kAnswerShownMax = 60;
constexpr std::size_t kVersionShownMax = 60;

// What the gateway that runs says of itself: its environment may be another than ours.
void take_gateways_word(const std::string& answer, std::vector<AgentReport>& reports) {
  const auto json = parse_json(answer, kJsonDepthMax);
  if (!json || !json->is_object()) return;
  const auto* const agents = array_in(json->as_object(), "agents");
  if (agents == nullptr) return;
  for (const auto& row : *agents) {
    if (!row.is_object()) continue;
    const auto name = text_in(row.as_object(), "name").value_or("");
    const auto report = std::ranges::find(reports, name, &AgentReport::name);
    if (report == reports.end()) continue;
    const auto login = text_in(row.as_object(), "login").value_or("");
    for (const LoginState state : {LoginState::not_needed, LoginState::key, LoginState::file,
                                   LoginState::missing, LoginState::unknown}) {
      if (name_of(state) == login) report->login = state;
    }
    report->login_place = text_in(row.as_object(), "login_place").value_or("");
    report->kept_state = text_in(row.as_object(), "login_state").value_or("");
    const auto* const programs = array_in(row.as_object(), "programs");
    for (std::size_t i = 0; programs != nullptr && i < programs->size(); ++i) {
      if (i >= report->programs.size() || !(*programs)[i].is_object()) break;
      const auto& program = (*programs)[i].as_object();
      report->programs[i].path = text_in(program, "path").value_or("");
      // Of the demo agent there are no facts: it is ours.
      if (report->programs[i].facts.package.empty()) continue;
      note_version(report->programs[i], std::string(text_in(program, "version").value_or("")));
    }
  }
}

// Asks the programs whose packages did not say it. Not those that the owner has configured: what
// they do with --version is not known.
void ask_versions(const AgentSpec& spec, const Environment& environment, ProgramTrials& trials,
                  AgentReport& report) {
  for (ProgramReport& program : report.programs) {
    if (program.path.empty() || !program.version.empty() || program.facts.package.empty()) continue;
    const TrialOutcome outcome =
        trials.run({program.path, "--version"}, agent_environment(environment, spec, "/tmp"));
    if (!outcome.has_exited || outcome.exit_code != 0) continue;
    note_version(program, masked_line(outcome.output.substr(0, outcome.output.find('\n')),
                                      kVersionShownMax));
  }
}

void tell_programs(const AgentReport& agent, bool is_configured, Diagnosis& diagnosis) {
  const std::string check = "agent " + agent.name;
  if (!is_installed(agent)) {
    const std::string install = install_command(agent);
    if (is_configured) {
      diagnosis.bad(check, "configured, and its program is not there",
                    install.empty() ? "clawdforge config   # look at its table" : install);
    } else {
      diagnosis.good(check, "not installed", install);
    }
    return;
  }
  for (const ProgramReport& program : agent.programs) {
    const std::string said = fmt::format("{} for {}", program_words(program), program.use);
    const ProgramFacts& facts = program.facts;
    if (program.path.empty()) {
      diagnosis.warn(check, said, install_command(agent));
    } else if (program.trial == VersionTrial::older) {
      diagnosis.warn(check, fmt::format("{}; tested from {} on", said, facts.tested_oldest),
                     fmt::format("npm install -g {}@{}", facts.package, facts.tested_newest));
    } else if (program.trial == VersionTrial::newer) {
      diagnosis.good(check, fmt::format("{}; newer than the tested {}", said, facts.tested_newest));
    } else {
      diagnosis.good(check, said + (program.trial == VersionTrial::tested
                                        ? "; known to work"
                                        : "; not known whether it works with this version"));
    }
  }
}

// The program's own word, if it has a command for it. None: it did not tell.
std::optional<bool> own_word(const AgentSpec& spec, const AgentReport& report,
                             const Environment& environment, ProgramTrials& trials) {
  if (spec.login.status_command.empty()) return std::nullopt;
  Environment given = agent_environment(environment, spec, "/tmp");
  // Of the login that was found, and of no other.
  const auto kept = report.login_environment.find(spec.login.storage_variable);
  if (kept != report.login_environment.end() &&
      report.login_place.starts_with(kept->second + "/")) {
    for (const auto& [name, value] : report.login_environment) given[name] = value;
  }
  const auto path = given.find("PATH");
  const auto program =
      find_program(spec.login.status_command.front(), path == given.end() ? "" : path->second);
  if (!program) return std::nullopt;
  std::vector<std::string> argv = spec.login.status_command;
  argv.front() = *program;
  const TrialOutcome outcome = trials.run(std::move(argv), given);
  if (!outcome.has_exited) return std::nullopt;
  return outcome.exit_code == 0;
}

// The gateway's own word: its keeper is the one who asks the program.
void tell_kept_login(const AgentReport& agent, const std::string& check, const std::string& remedy,
                     Diagnosis& diagnosis) {
  const std::string said = fmt::format("kept in {}: {}", agent.login_place, agent.kept_state);
  if (agent.kept_state == "logged_out") {
    diagnosis.bad(check, said, remedy);
  } else if (agent.kept_state == "ok" || agent.kept_state == "renewing") {
    diagnosis.good(check, said);
  } else {
    diagnosis.warn(check, said, "clawdforge doctor   # again in a minute; the log says more");
  }
}

void tell_login(const AgentSpec& spec, const AgentReport& agent, const Environment& environment,
                ProgramTrials* trials, Diagnosis& diagnosis) {
  const std::string check = "login " + agent.name;
  const std::string remedy = "clawdforge agent login " + agent.name;
  if (agent.login == LoginState::not_needed) return;
  if (!agent.kept_state.empty() && agent.kept_state != "external") {
    return tell_kept_login(agent, check, remedy, diagnosis);
  }
  if (agent.login == LoginState::missing) {
    diagnosis.warn(check, "not logged in", remedy);
    return;
  }
  // A key in the environment has no state that a program could tell.
  const auto said = agent.login == LoginState::file && trials != nullptr
                        ? own_word(spec, agent, environment, *trials)
                        : std::nullopt;
  if (said && !*said) {
    diagnosis.bad(check,
                  fmt::format("{} is there, but the program says that it is not logged in",
                              agent.login_place),
                  remedy);
  } else if (agent.login == LoginState::unknown) {
    diagnosis.good(check, "not known how one logs in to it");
  } else {
    diagnosis.good(check, login_words(agent) + (said ? "; the program says so, too" : ""));
  }
}

void ask_agent(const Config& config, const DoctorLinks& links, const AgentReport& agent,
               Diagnosis& diagnosis) {
  const std::string check = "ask " + agent.name;
  const auto begun = std::chrono::steady_clock::now();
  const auto answer = links.ask(config.data_dir, agent.name);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (answer) {
    diagnosis.good(check, fmt::format("answered in {:.1f} s: {}", took.count(),
                                      answer->substr(0, kAnswerShownMax)));
  } else {
    diagnosis.bad(check, answer.error().message, "clawdforge agent check " + agent.name + " -v");
  }
}

void tell_first_steps(const std::vector<AgentReport>& agents, Diagnosis& diagnosis) {
  const bool has_one = std::ranges::any_of(agents, [](const AgentReport& agent) {
    return agent.login != LoginState::not_needed && agent.login != LoginState::missing &&
           is_installed(agent);
  });
  if (has_one) return;
  diagnosis.warn("agents", "only the demo agent can answer",
                 "npm install -g @anthropic-ai/claude-code && clawdforge agent login claude");
}

}  // namespace

void check_agents(const Config& config, const Variables& environment, const DoctorLinks& links,
                  ProgramTrials* trials, bool asks, Diagnosis& diagnosis) {
  const std::vector<AgentSpec> specs = local_specs(config, environment);
  std::vector<AgentReport> reports = local_agents(config, environment);
  const bool is_running = is_data_dir_in_use(config.data_dir);
  if (is_running) {
    if (const auto told = links.get(config.data_dir, "/agents")) {
      take_gateways_word(*told, reports);
    }
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (trials != nullptr) ask_versions(specs[i], environment, *trials, reports[i]);
    tell_programs(reports[i], config.agents.contains(specs[i].name), diagnosis);
    if (!is_installed(reports[i])) continue;
    tell_login(specs[i], reports[i], environment, trials, diagnosis);
    if (asks && is_running) ask_agent(config, links, reports[i], diagnosis);
  }
  if (asks && !is_running) {
    diagnosis.bad("ask", "no gateway runs on " + config.data_dir,
                  "clawdforge serve --data-dir " + config.data_dir);
  }
  tell_first_steps(reports, diagnosis);
}

}  // namespace clawdforge
