#include "agent/core/process_starter.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "agent/failure/agent_failure.h"
#include "agent/jail/jail_bounds.h"
#include "agent/jail/jail_planner.h"
#include "agent/jail/program_path.h"
#include "agent/memory/agent_memory.h"
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
    listing.default_model = spec.default_model;
    for (const auto& [mode, switches] : spec.modes) listing.modes.push_back(mode);
    const auto told = lore_.find(spec.name);
    if (told != lore_.end()) {
      const AgentLore& lore = told->second;
      if (listing.version.empty() && listing.is_present) listing.version = lore.version;
      listing.models = lore.models;
      listing.efforts = lore.efforts;
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
                 .own_dir = order.own_dir,
                 .owner = order.app.str()};
  const LoginSpec& login = order.spec.login;
  const LoginView view = view_of(order);
  const std::string login_dir = view.dir.empty() ? login_dir_in(plan.environment, login) : view.dir;
  if (view.has_own_home) move_home(plan.environment, login, order.home_dir);
  if (!view.dir.empty()) plan.environment[login.storage_variable] = view.dir;
  for (const std::string& argument : switches.arguments) {
    plan.argv.push_back(with_temp_dir(argument, order.temp_dir));
  }
  for (const auto& [name, value] : switches.env) {
    plan.environment.insert_or_assign(name, with_temp_dir(value, order.temp_dir));
  }
  // A renewed login that its process cannot save any more is lost for all.
  if (!view.dir.empty()) plan.also_kept = view.dir;
  if (!login.refresh_lock.empty()) plan.busy.path = login_dir + "/" + login.refresh_lock;
  auto added = add_jail(order, view, plan);
  if (!added) return std::unexpected(std::move(added.error()));
  return plan;
}

Policy ProcessStarter::policy_of(const AppName& app, const std::string& agent) const {
  return deps_.policy_of ? deps_.policy_of(app, agent) : Policy{};
}

bool ProcessStarter::holds_read_only(const AppName& app, const std::string& agent) const {
  return deps_.jails != nullptr && deps_.spawner.jail_means() == JailMeans::own_root &&
         deps_.jails->mode_of(policy_of(app, agent)) != JailMode::off;
}

LoginView ProcessStarter::view_of(const StartOrder& order) const {
  if (!deps_.login_of || deps_.jails == nullptr || order.home_dir.empty()) return {};
  const Policy policy = policy_of(order.app, order.spec.name);
  return deps_.login_of(order.spec, deps_.jails->mode_of(policy) != JailMode::off);
}

Result<void> ProcessStarter::add_jail(const StartOrder& order, const LoginView& view,
                                      ChildPlan& plan) const {
  // Looked at again here: the app may have another policy than when its session was made.
  if (std::ranges::any_of(order.visible, &VisiblePath::is_held) &&
      !holds_read_only(order.app, order.spec.name)) {
    return jail_needed();
  }
  if (deps_.jails == nullptr) return {};
  const Policy policy = policy_of(order.app, order.spec.name);
  plan.limits = tree_limits(policy);
  const JailMode mode = deps_.jails->mode_of(policy);
  const bool has_root = mode != JailMode::off && deps_.spawner.jail_means() == JailMeans::own_root;
  if (!has_root && (mode >= JailMode::files || net_mode(policy) != NetMode::open)) {
    return fail(Errc::unavailable, "jail_unavailable",
                "The gateway's machine does not give this agent the jail that its owner demands; "
                "clawdforge doctor says why.");
  }
  if (mode == JailMode::off) return {};
  JailNeeds needs{.commands = {plan.argv, order.spec.command, order.spec.one_shot_command},
                  .files = files_named_in(plan.environment),
                  .own_dir = order.own_dir,
                  .home_dir = view.has_own_home ? order.home_dir : deps_.jails->home(),
                  .visible = order.visible};
  // Where its login is, unless that is in its home.
  const auto login_dir = plan.environment.find(order.spec.login.dir_variable);
  if (login_dir != plan.environment.end() && login_dir->second.starts_with('/')) {
    needs.visible.push_back({login_dir->second, true});
  }
  needs.login_dir = view.dir;
  if (!view.is_alone) needs.login_file = order.spec.login.file;
  if (const std::string& driver = protocol_of(order.spec).driver; !driver.empty()) {
    needs.commands.push_back({driver});
  }
  const auto path = plan.environment.find("PATH");
  plan.jail = deps_.jails->plan(needs, policy, path == plan.environment.end() ? "" : path->second);
  add_bounds(policy, *plan.jail);
  if (plan.jail->net == TreeNet::proxy) add_proxy_variables(plan.environment);
  return {};
}

Result<std::unique_ptr<Child>> ProcessStarter::spawn(const StartOrder& order,
                                                     const ChildPlan& plan) const {
  auto child = deps_.spawner.spawn(plan);
  if (child) {
    const std::string_view app = order.is_spare ? std::string_view() : std::string_view(order.app);
    deps_.log.debug(
        order.is_spare ? "a spare agent was started" : "an agent was started",
        {{"agent", std::string_view(order.spec.name)}, {"app", app}, {"pid", (*child)->id().pid}});
    if (deps_.serve_net && plan.jail && plan.jail->net == TreeNet::proxy) {
      deps_.serve_net(**child, order, net_targets(policy_of(order.app, order.spec.name)));
    }
  }
  return child;
}

AgentSetup ProcessStarter::setup_for(StartOrder order, const ChildPlan& plan, const Child& child) {
  std::shared_ptr<TrackedTree> tree;
  if (deps_.agent_memory != nullptr) {
    tree = deps_.agent_memory->track({.process = child.id(),
                                      .app = order.is_spare ? AppName() : order.app,
                                      .agent = order.spec.name,
                                      .own_dir = order.own_dir});
  }
  AgentLore& lore = lore_[order.spec.name];
  std::vector<std::string> secrets = secrets_in(plan.environment);
  std::ranges::move(order.secrets, std::back_inserter(secrets));
  AgentSpec& spec = order.spec;
  if (spec.auth_method.empty() && has_only_key(plan.environment, spec.login)) {
    spec.auth_method = spec.key_auth_method;
  }
  return {.spec = std::move(order.spec),
          .start_max = options_.start_max,
          .clock = &deps_.clock,
          .lore = &lore,
          .secrets = std::move(secrets),
          .boot_id = boot_id_,
          .gauges = gauges_,
          .app = std::move(order.app),
          .working_dir = std::move(order.working_dir),
          .conversation_id = std::move(order.conversation_id),
          .loads_conversation = order.loads_conversation,
          .is_spare = order.is_spare,
          .permission_mode = order.permission_mode,
          .log = &deps_.log,
          .compute = deps_.compute,
          .memory = deps_.memory,
          .tree = std::move(tree)};
}

Result<ChildPlan> ProcessStarter::plan_session(const StartOrder& order) const {
  const SessionProtocol& protocol = protocol_of(order.spec);
  const auto switches = order.spec.modes.find(order.permission_mode);
  std::vector<std::string> argv = protocol.host.empty() ? order.spec.command : protocol.host;
  if (protocol.arguments) {
    auto arguments = protocol.arguments(order);
    argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
                std::make_move_iterator(arguments.end()));
  }
  return plan_for(order, std::move(argv),
                  switches == order.spec.modes.end() ? ModeSwitches{} : switches->second);
}

Result<std::unique_ptr<SessionAgent>> ProcessStarter::start_session(StartOrder order) {
  if (!is_present(order.spec)) return std::unexpected(not_found(order.spec));
  auto plan = plan_session(order);
  if (!plan) return std::unexpected(std::move(plan.error()));
  auto child = spawn(order, *plan);
  if (!child) return std::unexpected(std::move(child.error()));
  const SessionProtocol& protocol = protocol_of(order.spec);
  AgentSetup setup = setup_for(std::move(order), *plan, **child);
  return protocol.make(std::move(*child), std::move(setup));
}

Result<ChildPlan> ProcessStarter::plan_one_shot(const StartOrder& order,
                                                const OneShotRequest& request) const {
  const OneShotMaker& protocol = options_.protocols.one_shots.at(order.spec.one_shot_protocol);
  auto arguments = protocol.arguments(order, request);
  std::vector<std::string> argv = order.spec.one_shot_command;
  argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
              std::make_move_iterator(arguments.end()));
  const auto held = order.spec.one_shot_modes.find(order.permission_mode);
  if (held != order.spec.one_shot_modes.end()) {
    argv.insert(argv.end(), held->second.begin(), held->second.end());
  }
  return plan_for(order, std::move(argv), {});
}

Result<std::unique_ptr<OneShotAgent>> ProcessStarter::start_one_shot(StartOrder order,
                                                                     OneShotRequest request) {
  const OneShotMaker& protocol = options_.protocols.one_shots.at(order.spec.one_shot_protocol);
  auto plan = plan_one_shot(order, request);
  if (!plan) return std::unexpected(std::move(plan.error()));
  auto child = spawn(order, *plan);
  if (!child) return std::unexpected(std::move(child.error()));
  AgentSetup setup = setup_for(std::move(order), *plan, **child);
  return protocol.make(std::move(*child), std::move(setup), std::move(request));
}

}  // namespace clawdforge
