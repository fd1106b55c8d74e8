#include "agent/core/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/acp/acp_agent.h"
#include "agent/acp/acp_failure.h"
#include "agent/acpx/acpx_agent.h"
#include "agent/claude/claude_cli.h"
#include "agent/core/agent_process.h"
#include "agent/core/program_path.h"
#include "base/version.h"
#include "process/tree/proc_entry.h"

namespace clawdforge {
namespace {

constexpr std::string_view kDemo = "demo";

bool is_there(const std::string& program, const Environment& environment) {
  const auto path = environment.find("PATH");
  return find_program(program, path == environment.end() ? "" : path->second).has_value();
}

bool names_claude(const std::string& word) {
  return word.substr(word.find_last_of('/') + 1).contains("claude");
}

// Whether it is the adapter for Claude, which needs what the command line needs. To acpx it
// may be given by its name or as a command.
bool is_claude(const AgentSpec& spec) {
  if (spec.name == "claude") return true;
  if (spec.protocol == AgentProtocol::acpx) return std::ranges::any_of(spec.command, names_claude);
  return !spec.command.empty() && names_claude(spec.command.front());
}

}  // namespace

Agents::Agents(Spawner& spawner, Options options)
    : spawner_(spawner),
      options_(std::move(options)),
      boot_id_(read_boot_id()),
      gauges_(options_.metrics == nullptr ? AgentGauges{} : AgentGauges::in(*options_.metrics)) {}

const AgentSpec* Agents::find(std::string_view name) const {
  const auto found = std::ranges::find(options_.specs, name, &AgentSpec::name);
  return found == options_.specs.end() ? nullptr : &*found;
}

std::vector<std::string> Agents::names() const {
  std::vector<std::string> names;
  for (const AgentSpec& spec : options_.specs) names.push_back(spec.name);
  return names;
}

std::vector<AgentListing> Agents::list() const {
  std::vector<AgentListing> listings;
  for (const AgentSpec& spec : options_.specs) {
    AgentListing listing{.name = spec.name,
                         .protocol = spec.protocol,
                         .is_present = is_present(spec, plan_for(spec, {})),
                         .version = {}};
    const auto said = versions_.find(spec.name);
    if (spec.name == kDemo) {
      listing.version = kVersion;
    } else if (listing.is_present && said != versions_.end()) {
      listing.version = said->second;
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

ChildPlan Agents::plan_for(const AgentSpec& spec, const std::string& temp_dir) const {
  ChildPlan plan;
  if (spec.name == kDemo) {
    plan.argv = {options_.demo_program, "demo-agent", "--acp"};
    plan.environment = plain_environment(options_.environment, {});
    plan.environment["TMPDIR"] = temp_dir;
    return plan;
  }
  plan.argv = spec.command;
  if (spec.protocol == AgentProtocol::acpx) plan.argv = {options_.demo_program, "agent-host"};
  if (is_claude(spec)) {
    plan.environment = claude_environment(options_.environment, spec.env, spec.set_env, temp_dir);
    return plan;
  }
  plan.environment = plain_environment(options_.environment, spec.env);
  for (const auto& [name, value] : spec.set_env) {
    if (!name.starts_with("CLAWDFORGE_")) plan.environment.insert_or_assign(name, value);
  }
  plan.environment["TMPDIR"] = temp_dir;
  return plan;
}

bool Agents::is_present(const AgentSpec& spec, const ChildPlan& plan) const {
  const bool is_acpx = spec.protocol == AgentProtocol::acpx;
  if (!is_acpx && plan.argv.empty()) return false;
  return is_there(is_acpx ? options_.acpx_program : plan.argv.front(), plan.environment);
}

Result<std::unique_ptr<SessionAgent>> Agents::start(const AgentSpec& spec, std::string working_dir,
                                                    std::string temp_dir) {
  ChildPlan plan = plan_for(spec, temp_dir);
  plan.working_dir = std::move(working_dir);
  if (!is_present(spec, plan)) {
    return fail(Errc::unavailable, "agent_not_found", not_found(spec).message);
  }
  auto child = spawner_.spawn(plan);
  if (!child) return std::unexpected(std::move(child.error()));
  AgentSetup setup{.spec = spec,
                   .start_max = options_.start_max,
                   .clock = options_.clock,
                   .version = &versions_[spec.name],
                   .secrets = secrets_in(plan.environment),
                   .boot_id = boot_id_,
                   .gauges = gauges_};
  if (spec.protocol == AgentProtocol::acpx) {
    return std::make_unique<AcpxAgent>(std::move(*child),
                                       AcpxAgent::Setup{std::move(setup), options_.acpx_program});
  }
  return std::make_unique<AcpAgent>(
      std::move(*child),
      AcpAgent::Setup{std::move(setup), is_claude(spec), options_.owner_settings});
}

}  // namespace clawdforge
