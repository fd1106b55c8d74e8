#include "agent/inventory/inventory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include "agent/core/agent_environment.h"
#include "agent/jail/program_path.h"
#include "json/json_fields.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

std::string value_in(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string read_start(const fs::path& file, std::size_t bytes_max) {
  std::ifstream in(file, std::ios::binary);
  std::string text(bytes_max, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

// Of a package file that names both itself and its version; others only set options of a folder.
std::string version_in(const fs::path& package_file) {
  const auto json = parse_json(read_start(package_file, kPackageFileBytesMax), kJsonDepthMax);
  if (!json || !json->is_object() || !text_in(json->as_object(), "name")) return {};
  return std::string(text_in(json->as_object(), "version").value_or(""));
}

// What npm has installed says its version in a file, which costs no start of Node.
std::string packaged_version(const std::string& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (error || !real.string().contains("/node_modules/")) return {};
  fs::path folder = real.parent_path();
  for (int parents = 0; parents < kPackageParentsMax && folder.has_relative_path(); ++parents) {
    if (auto version = version_in(folder / "package.json"); !version.empty()) return version;
    folder = folder.parent_path();
  }
  return {};
}

// The first number with dots in a text: its parts.
std::optional<std::array<int, 3>> numbers_of(std::string_view text) {
  const auto begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return std::nullopt;
  std::array<int, 3> parts{};
  const char* at = text.data() + begin;
  const char* const end = text.data() + text.size();
  for (int& part : parts) {
    const auto read = std::from_chars(at, end, part);
    if (read.ec != std::errc()) return std::nullopt;
    at = read.ptr;
    if (at == end || *at != '.') break;
    ++at;
  }
  return parts;
}

ProgramReport look_at_program(std::string use, const std::string& name, const ProgramFacts& facts,
                              const Environment& environment) {
  ProgramReport report{.use = std::move(use),
                       .name = name,
                       .path = find_program(name, value_in(environment, "PATH")).value_or(""),
                       .version = {},
                       .trial = VersionTrial::unknown,
                       .facts = facts};
  if (!report.path.empty()) note_version(report, packaged_version(report.path));
  return report;
}

bool is_file(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0;
}

// Whether its login is in a directory of the gateway's, or would be after the next one.
bool is_kept(const AgentSpec& spec, const AgentReport& report, const InventorySources& sources) {
  const LoginSpec& login = spec.login;
  return !sources.login_dir.empty() && !login.storage_variable.empty() &&
         !spec.set_env.contains(login.dir_variable) &&
         !(!report.programs.empty() &&
           is_older(report.programs.front().version, login.storage_version_min));
}

void look_at_login(AgentReport& report, const LoginSpec& login, const Environment& environment,
                   const std::string& kept_dir) {
  if (!login.is_needed) {
    report.login = LoginState::not_needed;
    return;
  }
  for (const std::string& key : login.keys) {
    if (value_in(environment, key).empty()) continue;
    report.login = LoginState::key;
    report.login_place = key;
    return;
  }
  if (login.file.empty()) return;
  report.login = LoginState::file;
  if (!kept_dir.empty()) {
    report.login_place = kept_dir + "/" + login.file;
    if (is_file(report.login_place)) return;
  }
  const std::string earlier = login_dir_in(environment, login) + "/" + login.file;
  if (kept_dir.empty() || is_file(earlier)) report.login_place = earlier;
  if (!is_file(report.login_place)) report.login = LoginState::missing;
}

void note_login_command(AgentReport& report, const LoginSpec& login,
                        const Environment& environment) {
  if (login.command.empty()) return;
  report.login_command = login.command;
  std::string& program = report.login_command.front();
  program = find_program(program, value_in(environment, "PATH")).value_or(program);
  for (const std::string& name : {std::string("HOME"), std::string("PATH"), login.dir_variable}) {
    const std::string value = name.empty() ? "" : value_in(environment, name);
    if (!value.empty()) report.login_environment[name] = value;
  }
}

AgentReport look_at(const AgentSpec& spec, const InventorySources& sources) {
  const Environment environment = agent_environment(sources.environment, spec, {});
  AgentReport report;
  report.name = spec.name;
  const std::string session_program = spec.protocol == AgentProtocol::acpx ? sources.acpx_program
                                      : spec.command.empty()               ? std::string()
                                                                           : spec.command.front();
  const bool has_runs =
      spec.one_shot_protocol != OneShotProtocol::none && !spec.one_shot_command.empty();
  const bool is_one = has_runs && spec.one_shot_command.front() == session_program;
  if (has_runs) {
    report.programs.push_back(look_at_program(is_one ? "runs and sessions" : "runs",
                                              spec.one_shot_command.front(), spec.one_shot_facts,
                                              environment));
  }
  if (!is_one && !session_program.empty()) {
    report.programs.push_back(
        look_at_program("sessions", session_program, spec.facts, environment));
  }
  for (ProgramReport& program : report.programs) {
    if (spec.version.empty()) continue;
    program.version = spec.version;  // built in: always the one that was tested
    program.trial = VersionTrial::tested;
  }
  const bool is_kept_here = is_kept(spec, report, sources);
  look_at_login(report, spec.login, environment, is_kept_here ? sources.login_dir : "");
  note_login_command(report, spec.login, environment);
  if (is_kept_here && !report.login_command.empty()) {
    report.login_environment[spec.login.storage_variable] = sources.login_dir;
    report.login_environment[spec.login.dir_variable] = sources.keeper_dir;
  }
  return report;
}

}  // namespace

LoginDirs login_dirs(const std::string& data_dir, const std::string& chosen) {
  return {chosen.empty() ? data_dir + "/login/claude" : chosen, data_dir + "/login/keeper"};
}

std::vector<AgentReport> take_inventory(const InventorySources& sources) {
  std::vector<AgentReport> reports;
  for (const AgentSpec& spec : sources.specs) reports.push_back(look_at(spec, sources));
  return reports;
}

VersionTrial trial_of(std::string_view version, const ProgramFacts& facts) {
  const auto found = numbers_of(version);
  const auto oldest = numbers_of(facts.tested_oldest);
  const auto newest = numbers_of(facts.tested_newest);
  if (!found || !oldest || !newest) return VersionTrial::unknown;
  if (*found < *oldest) return VersionTrial::older;
  return *found > *newest ? VersionTrial::newer : VersionTrial::tested;
}

bool is_older(std::string_view version, std::string_view oldest) {
  const auto found = numbers_of(version);
  const auto least = numbers_of(oldest);
  return found && least && *found < *least;
}

void note_version(ProgramReport& program, std::string version) {
  if (version.empty()) return;
  program.version = std::move(version);
  program.trial = trial_of(program.version, program.facts);
}

bool is_complete(const AgentReport& agent) {
  return std::ranges::none_of(agent.programs, &std::string::empty, &ProgramReport::path);
}

bool is_installed(const AgentReport& agent) {
  return !std::ranges::all_of(agent.programs, &std::string::empty, &ProgramReport::path);
}

std::string install_command(const AgentReport& agent) {
  for (const ProgramReport& program : agent.programs) {
    if (!program.path.empty() || program.facts.package.empty()) continue;
    return "npm install -g " + program.facts.package;
  }
  return {};
}

std::string login_words(const AgentReport& agent) {
  switch (agent.login) {
    case LoginState::not_needed:
      return "needs no login";
    case LoginState::key:
      return fmt::format("has a key: {}", agent.login_place);
    case LoginState::file:
      return fmt::format("has a login: {}", agent.login_place);
    case LoginState::missing:
      return "not logged in";
    case LoginState::unknown:
      break;
  }
  return "login not known";
}

std::string program_words(const ProgramReport& program) {
  if (program.path.empty()) return program.name + " is not there";
  return program.version.empty() ? program.path : program.path + " " + program.version;
}

}  // namespace clawdforge
