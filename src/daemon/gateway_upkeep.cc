// What the gateway does for workspaces, for sessions that are not used, for what its disk keeps,
// and for the login of its agents.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "agent/core/agent_environment.h"
#include "agent/jail/jail_bounds.h"
#include "agent/warm/start_text.h"
#include "base/async/async_tokens.h"
#include "custody/custody_setup.h"
#include "daemon/gateway.h"
#include "daemon/process/process_setup.h"
#include "json/json_members.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::chrono::milliseconds kSleepLookShortest{100};
constexpr std::chrono::milliseconds kSleepLookLongest{5'000};
// What a spare takes, as long as nothing is known of any agent.
constexpr std::uint64_t kSpareBytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds kReliefPause{3};

Async<SpareDir> make_spare_dir(RunDirs* runs, SessionDirs* sessions, bool is_run, std::string id,
                               std::map<std::string, std::string> temp_files) {
  if (is_run) {
    auto made = co_await runs->make(std::move(id), {});
    if (!made) co_return std::unexpected(std::move(made.error()));
    co_return SpareDir{std::move(made->own), std::move(made->work), std::move(made->temp),
                       std::move(made->home)};
  }
  auto made = co_await sessions->make(std::move(id), Lane(), std::move(temp_files));
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return SpareDir{std::move(made->own), std::move(made->work), std::move(made->temp),
                     std::move(made->home)};
}

std::string chosen_login_dir(const Config& config) {
  const auto table = config.agents.find("claude");
  return table == config.agents.end() ? "" : table->second.login_dir;
}

}  // namespace

// At most an eighth later than configured, or five seconds.
Task<void> Gateway::let_idle_sleep() {
  const std::chrono::milliseconds sleep_after = deps_.config.session_sleep;
  if (sleep_after == std::chrono::milliseconds::zero()) co_return;
  while (!is_ending_) {
    sleep_timer_.expires_after(std::clamp(sleep_after / 8, kSleepLookShortest, kSleepLookLongest));
    co_await sleep_timer_.async_wait(kAwait);
    if (!is_ending_) sessions_.sleep_idle();
  }
}

WarmPool::Dependencies Gateway::warm_dependencies() {
  return {
      .executor = deps_.io.get_executor(),
      .starter = starter_,
      .catalog = catalog_,
      .ids = deps_.ids,
      .log = deps_.log,
      .metrics = deps_.metrics,
      .start_text = [this](const StartOrder& order, const SpareKind& kind) -> Result<std::string> {
        OneShotRequest request;
        request.model = kind.model;
        request.effort = kind.effort;
        const auto plan =
            kind.is_run ? starter_.plan_one_shot(order, request) : starter_.plan_session(order);
        if (!plan) return std::unexpected(plan.error());
        return start_text(*plan, order.spec);
      },
      .profile_of =
          [this](const AppName& app, const std::string& agent) {
            return policy_text(starter_.policy_of(app, agent));
          },
      .make_dir =
          [this](bool is_run, std::string id, std::map<std::string, std::string> temp_files) {
            return make_spare_dir(&run_dirs_, &session_dirs_, is_run, std::move(id),
                                  std::move(temp_files));
          },
      .remove_dir =
          [this](bool is_run, std::string id) {
            if (is_run)
              run_dirs_.remove(std::move(id));
            else
              session_dirs_.remove(std::move(id));
          },
      .places_left = [this](bool is_run) { return spares_max(is_run); },
      .has_login = [this](const std::string& agent) { return !custody_.refusal(agent); }};
}

// As there are places that no session has, and memory for one more.
std::size_t Gateway::spares_max(bool is_run) const {
  std::uint64_t one = 0;
  for (const AgentSpec& spec : catalog_.specs()) {
    one = std::max(one, agent_memory_.expected(spec.name));
  }
  if (one == 0) one = kSpareBytes;
  const std::uint64_t taken = agent_memory_.bytes();
  const std::uint64_t all = agent_memory_.bytes_max();
  const std::size_t more = taken < all ? static_cast<std::size_t>((all - taken) / one) : 0;
  const std::size_t places = is_run ? quota_.runs_left() : quota_.agents_left();
  return std::min(places, warm_.spares() + more);
}

// In this order: starts wait, spares go, idle sessions sleep. What has been told to end is still
// counted until it is gone, so there is a pause before more is ended.
void Gateway::relieve_memory() {
  quota_.hold_starts(agent_memory_.is_full());
  const std::uint64_t excess = agent_memory_.excess();
  const auto now = std::chrono::steady_clock::now();
  if (excess == 0 || is_ending_ || now < relief_not_before_) return;
  std::uint64_t freed = warm_.give_way(
      excess, [this](const std::string& own_dir) { return agent_memory_.bytes_of_dir(own_dir); });
  if (freed < excess) freed += sessions_.sleep_for_memory(excess - freed);
  if (freed > 0) relief_not_before_ = now + kReliefPause;
}

std::vector<AgentListing> Gateway::agent_listings() const {
  std::vector<AgentListing> listings = starter_.list();
  for (AgentListing& listing : listings) {
    listing.spares = warm_.spares_of(listing.name);
    listing.memory_bytes = agent_memory_.bytes_of_agent(listing.name);
  }
  return listings;
}

Workspaces::Options Gateway::workspace_options() {
  Workspaces::Options options{.workspaces = deps_.config.workspaces,
                              .data_dir = deps_.data_dir.path(),
                              .environment = plain_environment(deps_.environment, {})};
  ProgramJails jails;
  if (deps_.spawner.jail_means() != JailMeans::none && deps_.config.jail != JailMode::off) {
    // Git works for the gateway, so what agents and apps are given does not count.
    jails.git = [this](const std::vector<VisiblePath>& paths) {
      return jails_.plan({.commands = {{"git"}}, .visible = paths}, Policy{}, "/usr/bin:/bin");
    };
  }
  jails.setup = [this](const std::vector<std::string>& command, const WorkspaceUser& user,
                       const std::string& repository) {
    return setup_bounds(command, user, repository);
  };
  options.jails = std::make_shared<const ProgramJails>(std::move(jails));
  return options;
}

SetupBounds Gateway::setup_bounds(const std::vector<std::string>& command,
                                  const WorkspaceUser& user, const std::string& repository) {
  const Policy policy = policy_finder(apps_, policies_)(user.app, user.agent);
  SetupBounds bounds{.jail = std::nullopt, .limits = tree_limits(policy)};
  if (jails_.mode_of(policy) == JailMode::off) return bounds;
  JailNeeds needs{.commands = {command}, .own_dir = user.own_dir, .home_dir = user.temp};
  if (!repository.empty()) needs.visible.push_back({.path = repository});
  const auto path = deps_.environment.find("PATH");
  JailPlan plan = jails_.plan(needs, policy, path == deps_.environment.end() ? "" : path->second);
  add_bounds(policy, plan);
  const bool has_proxy = plan.net == TreeNet::proxy;
  bounds.jail = std::move(plan);
  if (!has_proxy) return bounds;
  add_proxy_variables(bounds.environment);
  bounds.serve_net = [this, rules = EgressRules{user.app, user.agent, net_targets(policy)}](
                         Child& child) { egress_.serve(child.take_outlet(), rules); };
  return bounds;
}

ProcessStarter::Dependencies Gateway::starter_dependencies() {
  return {.catalog = catalog_,
          .spawner = deps_.spawner,
          .clock = deps_.clock,
          .metrics = deps_.metrics,
          .log = deps_.log,
          .compute = &compute_,
          .memory = &memory_,
          .jails = &jails_,
          .policy_of = policy_finder(apps_, policies_),
          .agent_memory = &agent_memory_,
          .login_of = [this](const AgentSpec& spec,
                             bool is_jailed) { return custody_.view_of(spec, is_jailed); },
          .serve_net =
              [this](Child& child, const StartOrder& order, std::vector<std::string> targets) {
                egress_.serve(child.take_outlet(),
                              {order.app, order.spec.name, std::move(targets)});
              }};
}

// Trees that were ended because they used too much are counted, and are in the audit.
void Gateway::watch_limits() {
  Counter& memory = deps_.metrics.counter("clawdforge_trees_over_memory_total",
                                          "Agents that were ended for their memory.");
  Counter& processes = deps_.metrics.counter("clawdforge_trees_over_processes_total",
                                             "Agents that were ended for their processes.");
  deps_.spawner.on_over_limit([this, &memory, &processes](const std::string& owner,
                                                          OverLimit over) {
    const bool is_memory = over.what == OverLimit::What::memory;
    (is_memory ? memory : processes).increment();
    if (owner.empty()) return;
    AuditEvent event{
        .event = is_memory ? "limit.memory" : "limit.pids", .at = deps_.clock.now(), .meta = "{}"};
    tasks_.spawn(add_to_audit(AppName(owner), std::move(event)));
  });
  const auto failures = [this](std::string_view step) -> Counter& {
    return deps_.metrics.counter(
        "clawdforge_jail_failures_total",
        "Programs that were not started, by the step of the launcher that failed.",
        {{"step", std::string(step)}});
  };
  failures("place");  // the family is shown from the start
  deps_.spawner.on_failed_step([failures](std::string_view step) { failures(step).increment(); });
}

// A line of the audit; that it may fail is noticed by the ledger's own gauges.
void Gateway::note_refused(const EgressRules& rules, const std::string& target) {
  AuditEvent event{.event = "net.refused", .at = deps_.clock.now(), .meta = "{"};
  append_member(event.meta, "agent", rules.agent);
  append_member(event.meta, "target", target);
  event.meta += '}';
  tasks_.spawn(add_to_audit(rules.app, std::move(event)));
}

Task<void> Gateway::add_to_audit(AppName app, AuditEvent event) {
  const auto added = co_await deps_.ledger.audit.add(std::move(app), std::move(event));
  if (!added) {
    deps_.log.warn("a line of the audit is lost",
                   {{"why", std::string_view(added.error().detail)}});
  }
}

// What an earlier life has left in repositories goes, and what cannot be used is named.
Task<void> Gateway::tidy_workspaces() {
  const auto swept = co_await workspaces_.sweep();
  if (!swept && !is_ending_) {
    deps_.log.warn("worktrees of an earlier life are left to the sweeper",
                   {{"why", std::string_view(swept.error().detail)}});
  }
  co_await workspaces_.report_absent();
}

// When another program has changed the ledger. Where it cannot be asked now, it is the next time.
Task<void> Gateway::reload_browsers() {
  const auto reloaded = co_await browsers_.reload();
  if (reloaded || is_ending_) co_return;
  deps_.log.warn("what another program has changed of browsers is not known yet",
                 {{"why", std::string_view(reloaded.error().detail)}});
}

// Removes what could not be removed when its time had come. It first waits until the disk has done
// what the sweep asked for before, so that jobs do not pile up for a disk that is slow or stuck.
Async<void> Gateway::tidy_disk() {
  const auto answered = co_await deps_.disk.call(Lane(), []() -> Result<void> { return {}; });
  if (!answered) co_return std::unexpected(answered.error());
  run_dirs_.remove_again();
  session_dirs_.remove_again();
  workspaces_.remove_again();
  trash_.remove_again();
  upload_files_.remove_again();
  co_return Result<void>{};
}

// After the gateway listens, so that no look at a disk delays it.
Task<void> Gateway::tell_agents() {
  const std::vector<AgentReport> agents = co_await outlook_.look();
  if (is_ending_ || agents.empty()) co_return;
  if (deps_.config.log_format == LogFormat::text && ::isatty(STDOUT_FILENO) == 1) {
    const auto path = deps_.environment.find("PATH");
    const std::string command =
        own_command(deps_.own_program, path == deps_.environment.end() ? "" : path->second);
    std::printf("\n%s\n", start_text(agents, command).c_str());
    std::fflush(stdout);
  } else {
    log_agents(agents, deps_.log);
  }
  give_back_start_pages();  // this was the last of what is done once
}

// From the io thread, so that a loop that stands still is noticed; until the very end, because
// a drain may take long.
Task<void> Gateway::keep_telling() {
  const auto interval = deps_.notice.watchdog_interval();
  if (!interval) co_return;
  while (!is_over_) {
    deps_.notice.alive();
    alive_timer_.expires_after(*interval);
    co_await alive_timer_.async_wait(kAwait);
  }
}

Custody::Options Gateway::login_options() const {
  return custody_options({.data_dir = deps_.data_dir.path(),
                          .chosen_dir = chosen_login_dir(deps_.config),
                          .specs = catalog_.specs(),
                          .environment = deps_.environment,
                          .version = [this]() -> std::optional<std::string> {
                            const ProgramFinding& found = claude_.finding();
                            if (!found.is_present) return std::nullopt;
                            return found.version;
                          },
                          .jails = jails_,
                          .policy = [this] { return policies_.of(App{}, "claude"); }});
}

InventorySources Gateway::inventory_sources() const {
  const LoginDirs dirs = login_dirs(deps_.data_dir.path(), chosen_login_dir(deps_.config));
  return {catalog_.specs(), deps_.environment, deps_.config.acpx_bin, dirs.login, dirs.keeper};
}

LoginHealth Gateway::login_health() const {
  const Custody::Standing now = custody_.standing();
  return {.state = name_of(now.state),
          .expires_at = now.expires_at,
          .sign_in_ends_at = now.sign_in_ends_at,
          .ends_soon =
              now.sign_in_ends_at && *now.sign_in_ends_at - deps_.clock.now() <= kEndsSoonBefore};
}

}  // namespace clawdforge
