#include "agent/core/process_starter.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "agent/failure/agent_failure.h"
#include "agent/jail/jail_planner.h"
#include "agent/jail/program_path.h"
#include "process/tree/child.h"
#include "process/tree/proc_entry.h"
#include "process/tree/spawner.h"

namespace clawdforge {
namespace {

std::string with_temp_dir(std::string text, const std::string& temp_dir) {
  const std::size_t at = text.find(kTempDirMark);
  if (at != std::string::npos) text.replace(at, kTempDirMark.size(), temp_dir);
  return text;
}

// Files and directories of the owner's that variables name, for the agent to read.
std::vector<std::string> files_named_in(const Environment& environment) {
  constexpr std::array<const char*, 10> kNames = {
      "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE",  "SSL_CERT_DIR",
      "REQUESTS_CA_BUNDLE",  "CURL_CA_BUNDLE", "GOOGLE_APPLICATION_CREDENTIALS",
      "GIT_CONFIG_GLOBAL",   "GIT_SSL_CAINFO", "OPENCODE_CONFIG",
      "OPENCODE_CONFIG_DIR"};
  std::vector<std::string> files;
  for (const char* name : kNames) {
    const auto found = environment.find(name);
    if (found != environment.end() && found->second.starts_with('/')) {
      files.push_back(found->second);
    }
  }
  return files;
}

}  // namespace

ProcessStarter::ProcessStarter(Dependencies deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      boot_id_(read_boot_id()),
      gauges_(AgentGauges::in(deps_.metrics)) {}

const SessionProtocol& ProcessStarter::protocol_of(const AgentSpec& spec) const {
  return options_.protocols.sessions.at(spec.protocol);
}

bool ProcessStarter::is_present(const AgentSpec& spec) const {
  const std::string& driver = protocol_of(spec).driver;
  if (driver.empty() && spec.command.empty()) return false;
  const Environment environment = agent_environment(options_.environment, spec, {});
  const auto path = environment.find("PATH");
  return find_program(driver.empty() ? spec.command.front() : driver,
                      path == environment.end() ? "" : path->second)
      .has_value();
}

std::vector<AgentListing> ProcessStarter::list() const {
  std::vector<AgentListing> listings;
  for (const AgentSpec& known : deps_.catalog.specs()) {
    const AgentSpec* const found = deps_.catalog.find(known.name);
    const AgentSpec& spec = found == nullptr ? known : *found;
    AgentListing listing{.name = spec.name,
                         .protocol = spec.protocol,
                         .is_present = is_present(spec),
                         .version = spec.version};
    const auto told = versions_.find(spec.name);
    if (listing.version.empty() && listing.is_present && told != versions_.end()) {
      listing.version = told->second;
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

// The one place that decides what an agent's process gets, for sessions and single prompts.
Result<ChildPlan> ProcessStarter::plan_for(const StartOrder& order, std::vector<std::string> argv,
                                           const ModeSwitches& switches) const {
  ChildPlan plan{.argv = std::move(argv),
                 .environment = agent_environment(options_.environment, order.spec, order.temp_dir),
                 .working_dir = order.working_dir,
                 .own_dir = order.own_dir};
  for (const std::string& argument : switches.arguments) {
    plan.argv.push_back(with_temp_dir(argument, order.temp_dir));
  }
  for (const auto& [name, value] : switches.env) {
    plan.environment.insert_or_assign(name, with_temp_dir(value, order.temp_dir));
  }
  // A renewed login that its process cannot save any more is lost for all.
  const LoginSpec& login = order.spec.login;
  if (!login.refresh_lock.empty()) {
    plan.busy.path = login_dir_in(plan.environment, login) + "/" + login.refresh_lock;
  }
  if (auto added = add_jail(order, plan); !added) return std::unexpected(std::move(added.error()));
  return plan;
}

Policy ProcessStarter::policy_of(const AppName& app, const std::string& agent) const {
  return deps_.policy_of ? deps_.policy_of(app, agent) : Policy{};
}

bool ProcessStarter::holds_read_only(const AppName& app, const std::string& agent) const {
  return deps_.jails != nullptr && deps_.spawner.jail_means() == JailMeans::own_root &&
         deps_.jails->mode_of(policy_of(app, agent)) != JailMode::off;
}

Result<void> ProcessStarter::add_jail(const StartOrder& order, ChildPlan& plan) const {
  if (deps_.jails == nullptr) return {};
  const Policy policy = policy_of(order.app, order.spec.name);
  const JailMode mode = deps_.jails->mode_of(policy);
  if (mode == JailMode::off) return {};
  if (mode == JailMode::files && deps_.spawner.jail_means() != JailMeans::own_root) {
    return fail(Errc::unavailable, "jail_unavailable",
                "The gateway's machine does not give this agent the jail that its owner demands; "
                "clawdforge doctor says why.");
  }
  JailNeeds needs{.commands = {plan.argv, order.spec.command, order.spec.one_shot_command},
                  .files = files_named_in(plan.environment),
                  .own_dir = order.own_dir,
                  .home_dir = order.home_dir,
                  .visible = order.visible};
  // Where its login is, unless that is in its home.
  const auto login_dir = plan.environment.find(order.spec.login.dir_variable);
  if (login_dir != plan.environment.end() && login_dir->second.starts_with('/')) {
    needs.visible.push_back({login_dir->second, true});
  }
  if (const std::string& driver = protocol_of(order.spec).driver; !driver.empty()) {
    needs.commands.push_back({driver});
  }
  const auto path = plan.environment.find("PATH");
  plan.jail = deps_.jails->plan(needs, policy, path == plan.environment.end() ? "" : path->second);
  return {};
}

Result<std::unique_ptr<Child>> ProcessStarter::spawn(const StartOrder& order,
                                                     const ChildPlan& plan) {
  auto child = deps_.spawner.spawn(plan);
  if (child) {
    deps_.log.debug("an agent was started", {{"agent", std::string_view(order.spec.name)},
                                             {"app", std::string_view(order.app)},
                                             {"pid", (*child)->id().pid}});
  }
  return child;
}

AgentSetup ProcessStarter::setup_for(StartOrder order, const ChildPlan& plan) {
  std::string& version = versions_[order.spec.name];
  std::vector<std::string> secrets = secrets_in(plan.environment);
  std::ranges::move(order.secrets, std::back_inserter(secrets));
  return {.spec = std::move(order.spec),
          .start_max = options_.start_max,
          .clock = &deps_.clock,
          .version = &version,
          .secrets = std::move(secrets),
          .boot_id = boot_id_,
          .gauges = gauges_,
          .app = std::move(order.app),
          .working_dir = std::move(order.working_dir),
          .conversation_id = std::move(order.conversation_id),
          .loads_conversation = order.loads_conversation,
          .log = &deps_.log,
          .compute = deps_.compute,
          .memory = deps_.memory};
}

Result<std::unique_ptr<SessionAgent>> ProcessStarter::start_session(StartOrder order) {
  if (!is_present(order.spec)) return std::unexpected(not_found(order.spec));
  const SessionProtocol& protocol = protocol_of(order.spec);
  const auto switches = order.spec.modes.find(order.permission_mode);
  std::vector<std::string> argv = protocol.host.empty() ? order.spec.command : protocol.host;
  if (protocol.arguments) {
    auto arguments = protocol.arguments(order);
    argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
                std::make_move_iterator(arguments.end()));
  }
  auto plan = plan_for(order, std::move(argv),
                       switches == order.spec.modes.end() ? ModeSwitches{} : switches->second);
  if (!plan) return std::unexpected(std::move(plan.error()));
  auto child = spawn(order, *plan);
  if (!child) return std::unexpected(std::move(child.error()));
  return protocol.make(std::move(*child), setup_for(std::move(order), *plan));
}

Result<std::unique_ptr<OneShotAgent>> ProcessStarter::start_one_shot(StartOrder order,
                                                                     OneShotRequest request) {
  const OneShotMaker& protocol = options_.protocols.one_shots.at(order.spec.one_shot_protocol);
  auto arguments = protocol.arguments(order, request);
  std::vector<std::string> argv = order.spec.one_shot_command;
  argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
              std::make_move_iterator(arguments.end()));
  const auto held = order.spec.one_shot_modes.find(order.permission_mode);
  if (held != order.spec.one_shot_modes.end()) {
    argv.insert(argv.end(), held->second.begin(), held->second.end());
  }
  auto plan = plan_for(order, std::move(argv), {});
  if (!plan) return std::unexpected(std::move(plan.error()));
  auto child = spawn(order, *plan);
  if (!child) return std::unexpected(std::move(child.error()));
  return protocol.make(std::move(*child), setup_for(std::move(order), *plan), std::move(request));
}

}  // namespace clawdforge
