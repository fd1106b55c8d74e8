#include "daemon/gateway.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "agent/core/agent_environment.h"
#include "agent/jail/program_path.h"
#include "agent/memory/tree_memory.h"
#include "api/core/problem.h"
#include "base/async/async_tokens.h"
#include "base/version.h"
#include "config/agents/agent_specs.h"
#include "daemon/agent_protocols.h"
#include "daemon/process/local_peers.h"
#include "daemon/process/process_setup.h"
#include "sessions/live/session_dependencies.h"
#include "upkeep/recovery.h"
#include "upkeep/usage_sweep.h"

namespace clawdforge {
namespace {

constexpr std::chrono::milliseconds kDrainLook{10};
constexpr std::chrono::seconds kFirstLookMax{1};
constexpr std::int64_t kSharedFrom = 8;  // connections or sessions: of fewer, one app may have all
constexpr std::chrono::seconds kLastStepsMax{10};   // of a drain, beside graces and processes
constexpr std::chrono::minutes kFirstLinkMax{10};   // the link that a start prints
constexpr std::chrono::seconds kLastAnswersMax{1};  // to write them when the grace is over

// The link only to a terminal: a person who reads it there owns the gateway.
void print_start(const Config& config, SignInCodes& codes, const std::string& url,
                 const std::string& local_url) {
  std::printf("clawdforge listening on %s\n", url.c_str());
  if (config.log_format == LogFormat::text && ::isatty(STDOUT_FILENO) == 1) {
    const auto made = codes.make(kFirstLinkMax);
    std::printf(
        "\nDashboard: %s/#/in/%s\n  The link signs in one browser, once, within 10 minutes. Later: "
        "clawdforge dashboard\n",
        local_url.c_str(), std::string(made.code.reveal()).c_str());
  }
  std::fflush(stdout);
}

// One app leaves a quarter to the others, unless there are so few that it would hardly have any.
std::int64_t share_of(std::int64_t all) { return all < kSharedFrom ? all : all / 4 * 3; }

std::uint64_t agent_memory_max(const Config& config) {
  const auto configured = config.agent_memory_max;
  return configured ? static_cast<std::uint64_t>(*configured) : machine_memory_bytes() / 2;
}

WarmPool::Options warm_options(const Config& config) {
  return {.auto_max = 2 * std::max<std::size_t>(1, std::thread::hardware_concurrency()),
          .permission_mode = config.permission_mode};
}

// Locks of renewals, also of the keeper of an earlier life.
std::vector<std::string> busy_paths(const InventorySources& sources) {
  std::vector<std::string> paths = refresh_locks(sources.specs, sources.environment);
  for (const AgentSpec& spec : sources.specs) {
    if (spec.login.storage_variable.empty()) continue;
    paths.push_back(sources.login_dir + "/" + spec.login.refresh_lock);
  }
  return paths;
}

}  // namespace

Gateway::Gateway(Dependencies surroundings, Digest admin_digest)
    : deps_(surroundings),
      instance_id_(deps_.ledger.instance_id),
      connections_max_(connections_max()),
      admin_digest_(admin_digest),
      apps_(deps_.ledger.apps, deps_.clock, deps_.ids, deps_.log),
      quota_(quota_options(), deps_.metrics),
      rates_(rate_options(), deps_.metrics),
      memory_(memory_limits(), deps_.metrics),
      watch_({.executor = deps_.io.get_executor(),
              .ledger = deps_.ledger,
              .apps = apps_,
              .clock = deps_.clock,
              .log = deps_.log}),
      upload_files_(deps_.data_dir.path(), deps_.disk, deps_.config.free_disk_bytes_min),
      run_dirs_(deps_.data_dir.path(), deps_.disk, deps_.log),
      session_dirs_(deps_.data_dir.path(), deps_.disk, deps_.log),
      acpx_records_(home_of(deps_.environment), deps_.disk),
      uploads_(deps_.ledger.uploads, upload_files_, deps_.clock, deps_.ids, instance_id_,
               deps_.config.upload_bytes_max_per_app),
      webhooks_(webhooks_dependencies(), webhook_options(deps_.config)),
      catalog_(specs(), [this](const AgentSpec& spec) { return is_too_old(spec); }),
      agent_memory_({deps_.io.get_executor(), compute_, deps_.metrics, private_bytes},
                    agent_memory_max(deps_.config)),
      starter_(starter_dependencies(), starter_options()),
      warm_(warm_dependencies(), warm_options(deps_.config)),
      runs_(runs_dependencies()),
      sessions_(sessions_dependencies(), sessions_options()),
      jobs_({deps_.io.get_executor(), deps_.ledger.jobs, apps_, answer_files_, memory_, deps_.clock,
             deps_.ids, deps_.log, deps_.metrics,
             [this](const AppName& app) { webhooks_.wake(app); }},
            {deps_.config.queued_jobs_max_per_app, deps_.config.job_ttl}),
      removals_({deps_.ledger.apps, sessions_, deps_.clock, deps_.log}),
      sweeper_({.executor = deps_.io.get_executor(),
                .uploads = deps_.ledger.uploads,
                .runs = deps_.ledger.runs,
                .audit = deps_.ledger.audit,
                .upload_files = upload_files_,
                .clock = deps_.clock,
                .log = deps_.log,
                .metrics = deps_.metrics},
               {deps_.config.sweep_interval, deps_.config.audit_max_age}),
      session_sweep_(
          {deps_.ledger.sessions, deps_.ledger.journal, sessions_, session_dirs_, deps_.clock},
          {deps_.config.session_ttl, deps_.config.session_hard_ttl, deps_.config.journal_max_age,
           deps_.config.journal_bytes_max_per_session}),
      claude_(probe_of(deps_.config.claude_bin, "claude")),
      acpx_(probe_of(deps_.config.acpx_bin, "")),
      outlook_(
          inventory_sources(), deps_.disk,
          {{deps_.config.claude_bin, claude_.finding()}, {deps_.config.acpx_bin, acpx_.finding()}}),
      health_{[this] { return deps_.ledger.is_healthy(); },
              [this] { return watch_.open_sessions(); },
              deps_.metrics,
              is_draining_,
              claude_.finding(),
              acpx_.finding(),
              [this] { return deps_.disk.is_stalled(); },
              [this] { show_depths(); },
              [this] { return login_health(); },
              name_of(deps_.spawner.jail_means()),
              name_of(deps_.spawner.limit_means())},
      api_(endpoints(), Auth(address_rules(), admin_digest, apps_, &browsers_, attempts_),
           api_limits(), refuses_work_, refusals()),
      server_(
          deps_.io, server_options(), [this](Request& request) { return api_.admit(request); },
          deps_.log, deps_.metrics) {
  connect();
}

// Shows the version, and ties the parts together: who is told of what.
void Gateway::connect() {
  deps_.metrics.gauge("clawdforge_build_info", "The running version.", {{"version", kVersion}})
      .set(1);
  show_jail(deps_.spawner, deps_.metrics);
  watch_limits();
  apps_.on_removed([this](const AppName& app) {
    runs_.end_app(app);
    jobs_.end_app(app);
    removals_.note(app);
  });
  agent_memory_.on_change([this] { relieve_memory(); });
  watch_.on_reload([this] {
    sessions_.recheck_readers();
    if (removals_.has_any()) tasks_.spawn(removals_.follow());
    tasks_.spawn(reload_browsers());
  });
  sweeper_.add([this](SweepReport* report) { return session_sweep_.sweep(report); });
  sweeper_.add([this](SweepReport*) { return workspaces_.sweep(); });
  sweeper_.add([this](SweepReport*) { return keys_.sweep(); });
  sweeper_.add([this](SweepReport*) { return tidy_disk(); });
  sweeper_.add([this](SweepReport*) {
    return sweep_usage(&deps_.ledger.usage, &deps_.ledger.budgets, &deps_.clock);
  });
  sweeper_.add([this](SweepReport*) { return webhooks_.sweep(); });
  sweeper_.add([this](SweepReport*) { return browsers_.tidy(); });
  sweeper_.add([this](SweepReport*) { return uploads_.count_stored(); });
  sweeper_.add([this](SweepReport*) { return sessions_.count_stored(); });
  sweeper_.add([this](SweepReport*) { return jobs_.sweep(); });
}

// As configured, or as many as there are descriptors for: a connection that cannot be
// accepted waits without an answer.
std::size_t Gateway::connections_max() const {
  // The ledger, the surplus connections, spare ones; and those of an agent while it starts.
  constexpr std::size_t kDescriptorsPerAgent = 13;
  const std::size_t others =
      128 + kDescriptorsPerAgent *
                static_cast<std::size_t>(deps_.config.runs_max + deps_.config.agents_max);
  const auto wanted = static_cast<std::size_t>(deps_.config.connections_max);
  const std::size_t limit = descriptors_max();
  const std::size_t possible = limit > others ? limit - others : 1;
  if (wanted <= possible) return wanted;
  deps_.log.warn("the limit on descriptors allows fewer connections than configured",
                 {{"configured", static_cast<std::int64_t>(wanted)},
                  {"allowed", static_cast<std::int64_t>(possible)}});
  return possible;
}

Quota::Options Gateway::quota_options() {
  const Config& config = deps_.config;
  const auto connections = config.connections_max_per_app.value_or(
      share_of(static_cast<std::int64_t>(connections_max_)));
  return {.runs_max = static_cast<std::size_t>(config.runs_max),
          .queued_runs_max = static_cast<std::size_t>(config.queued_runs_max),
          .runs_max_per_app = config.runs_max_per_app,
          .agents_max = static_cast<std::size_t>(config.agents_max),
          .sessions = {.open_max = config.live_sessions_max,
                       .open_max_per_app = config.sessions_max_per_app,
                       .open_share_max = share_of(config.live_sessions_max)},
          .connections_max_per_app = connections,
          .event_streams_max_per_app = config.event_streams_max_per_app.value_or(connections),
          .budgets = &budgets_,
          .logins = &custody_};
}

AddressRules Gateway::address_rules() const {
  AddressRules rules{deps_.config.allow_cidrs, deps_.config.trusted_proxies,
                     deps_.config.allow_hosts};
  rules.hosts.push_back(own_host_name());
  return rules;
}

RateLimits::Options Gateway::rate_options() const {
  const auto all = static_cast<std::int64_t>(connections_max_);
  const Config& config = deps_.config;
  return {.app_requests_max = static_cast<double>(config.app_requests_max),
          .app_bytes_max = static_cast<double>(config.app_bytes_max),
          .address_requests_max = static_cast<double>(config.address_requests_max),
          .address_bytes_max = static_cast<double>(config.address_bytes_max),
          .address_connections_max = static_cast<std::size_t>(
              config.connections_max_per_address.value_or(all < kSharedFrom ? all : all / 4)),
          .proxies = config.trusted_proxies};
}

// Whatever is configured, one body of the largest size fits.
ByteBudget::Limits Gateway::memory_limits() const {
  const Config& config = deps_.config;
  const std::int64_t all = std::max(config.memory_bytes_max, 2 * config.body_bytes_max);
  return {.bytes_max = static_cast<std::size_t>(all),
          .share_bytes_max =
              static_cast<std::size_t>(config.memory_bytes_max_per_app.value_or(all / 4))};
}

// Each dialect registers its own shape for its paths here.
RefusalRenderers Gateway::refusals() { return RefusalRenderers(render_native_refusal); }

ApiLimits Gateway::api_limits() {
  return {.quota = quota_,
          .rates = rates_,
          .memory = memory_,
          .body_bytes_max = static_cast<std::size_t>(deps_.config.body_bytes_max),
          .owner_notes = &owner_notes_,
          .cross_origin = CrossOrigin(deps_.config.allow_origins)};
}

ServerOptions Gateway::server_options() {
  ServerOptions options;
  options.admit_peer = [this](const IpAddress& peer) { return rates_.admit_connection(peer); };
  options.connections_max = connections_max_;
  options.admits_local = may_administer;
  options.refusals = refusals();
  options.cross_origin = CrossOrigin(deps_.config.allow_origins);
  // The id's random tail tells the requests of two lives of the gateway apart. Short: with
  // its number after it, the id fits into a string without memory of its own.
  options.request_id_prefix = "r" + instance_id_.str().substr(instance_id_.str().size() - 6) + "-";
  return options;
}

std::optional<std::string> Gateway::find_on_path(const std::string& program) const {
  const auto path = deps_.environment.find("PATH");
  return find_program(program, path == deps_.environment.end() ? "" : path->second);
}

// Only Claude's own command line has another way beside it.
bool Gateway::is_too_old(const AgentSpec& spec) const {
  return is_older(claude_.finding().version, spec.version_min);
}

std::vector<AgentSpec> Gateway::specs() const {
  return agent_specs(
      deps_.config, [this](const std::string& name) { return find_on_path(name); },
      deps_.own_program);
}

ProcessStarter::Options Gateway::starter_options() const {
  const std::string& acpx = deps_.config.acpx_bin;
  return {.protocols = agent_protocols(deps_.own_program, find_on_path(acpx).value_or(acpx)),
          .environment = deps_.environment,
          .start_max = deps_.config.agent_start_timeout};
}

Runs::Dependencies Gateway::runs_dependencies() {
  return {.executor = deps_.io.get_executor(),
          .rows = deps_.ledger.runs,
          .quota = quota_,
          .apps = apps_,
          .policies = policies_,
          .catalog = catalog_,
          .starter = warm_,
          .uploads = uploads_,
          .run_dirs = run_dirs_,
          .clock = deps_.clock,
          .ids = deps_.ids,
          .metrics = deps_.metrics,
          .instance_id = instance_id_,
          .compute = &compute_,
          .permission_mode = deps_.config.permission_mode,
          .workspaces = &workspaces_,
          .memory = &memory_,
          .acpx_records = &acpx_records_,
          .log = &deps_.log,

          .keeps_prompts = deps_.config.keep_prompts == KeptPrompts::all};
}

Sessions::Dependencies Gateway::sessions_dependencies() {
  return {deps_.io.get_executor(),
          deps_.ledger.sessions,
          deps_.ledger.journal,
          quota_,
          policies_,
          catalog_,
          warm_,
          uploads_,
          session_dirs_,
          acpx_records_,
          deps_.clock,
          deps_.ids,
          deps_.log,
          deps_.metrics,
          &memory_,
          [this](const AppName& app) { webhooks_.wake(app); },
          &workspaces_,
          [this](const std::string& own_dir) { return agent_memory_.bytes_of_dir(own_dir); },
          [this] { relieve_memory(); },
          &earlier_home_};
}

Sessions::Options Gateway::sessions_options() const {
  const Config& config = deps_.config;
  return {.permission_mode = config.permission_mode,
          .cancel_grace = config.cancel_grace,
          .start_max = config.agent_start_timeout,
          .first_sign_max = config.first_sign_timeout,
          .permission_timeout = config.permission_timeout,
          .sleep_after = config.session_sleep,
          .reader_bytes_max = static_cast<std::size_t>(config.reader_buffer_bytes),
          .journal_bytes_max = config.journal_bytes_max_per_session,
          .journal_bytes_max_per_app = config.journal_bytes_max_per_app,
          .keeps_prompts = config.keep_prompts != KeptPrompts::none,
          .hard_ttl = config.session_hard_ttl};
}

Webhooks::Dependencies Gateway::webhooks_dependencies() {
  return {.executor = deps_.io.get_executor(),
          .rows = deps_.ledger.deliveries,
          .clock = deps_.clock,
          .log = deps_.log,
          .metrics = deps_.metrics,
          .load_trust = [this] { return deps_.disk.call(Lane(), load_system_trust); }};
}

ProgramProbe Gateway::probe_of(const std::string& program, const std::string& agent) {
  return ProgramProbe(
      deps_.io.get_executor(), deps_.spawner, program, plain_environment(deps_.environment, {}),
      deps_.data_dir.path(),
      {.plan =
           [this, program, agent] {
             return jails_.trial_plan(program, policies_.of(App{}, agent), agent.empty());
           },
       .on_failure = [this,
                      program](std::string_view said) { warn_of_jail(program, said, deps_.log); }});
}

Async<void> Gateway::run() {
  auto started = co_await start();
  if (started) {
    co_await wait_for_signal();
    tasks_.spawn(watch_for_second_signal());
    started = co_await drain();
  }
  is_ending_ = true;
  watch_.stop();
  sweeper_.stop();
  session_sweep_.stop();
  claude_.stop();
  acpx_.stop();
  lag_timer_.cancel();
  sleep_timer_.cancel();
  agent_memory_.stop();
  signals_.cancel();
  co_await server_.stop();
  co_await end_work();
  co_await warm_.stop();
  co_await webhooks_.stop();
  co_await custody_.stop();
  co_await deps_.spawner.stop();
  is_over_ = true;
  alive_timer_.cancel();
  co_await tasks_.join();
  co_return started;
}

Async<void> Gateway::start() {
  // Before the first worker of ours may get one: a signal must not end us half-way.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) signals_.add(number);
  auto begun = co_await deps_.ledger.instances.begin(kVersion, ::getpid(), deps_.clock.now());
  if (!begun) co_return std::unexpected(begun.error());
  auto looked = co_await watch_.begin();
  if (!looked) co_return std::unexpected(looked.error());
  tasks_.spawn(claude_.run());
  tasks_.spawn(acpx_.run());
  auto recovered = co_await recover({.executor = deps_.io.get_executor(),
                                     .ledger = deps_.ledger,
                                     .run_dirs = run_dirs_,
                                     .session_dirs = session_dirs_,
                                     .upload_files = upload_files_,
                                     .clock = deps_.clock,
                                     .log = deps_.log,
                                     .metrics = deps_.metrics,
                                     .kill_grace = deps_.config.kill_grace,
                                     .busy_paths = busy_paths(inventory_sources())});
  if (!recovered) co_return recovered;
  if (auto known = co_await browsers_.reload(); !known) co_return known;
  auto ids = co_await deps_.ledger.sessions.all_ids();
  if (!ids) co_return std::unexpected(ids.error());
  auto counted = co_await workspaces_.recover(std::move(*ids));
  if (counted) counted = co_await uploads_.count_stored();
  if (counted) counted = co_await sessions_.count_stored();
  if (counted) counted = co_await jobs_.recover();
  if (counted) counted = co_await webhooks_.begin();
  if (counted) counted = co_await keys_.count_kept();
  if (!counted) co_return counted;
  co_await await_first_look();

  if (!deps_.config.tls_cert.empty()) {
    auto loaded = load_tls(deps_.config.tls_cert, deps_.config.tls_key);
    if (!loaded) co_return std::unexpected(loaded.error());
    certificate_ = certificate_pem(*loaded);
    server_.replace_tls(std::move(*loaded));
  }
  const auto port = listen();
  if (!port) co_return std::unexpected(port.error());
  port_ = *port;
  auto written = deps_.data_dir.write_port(port_);
  if (written) written = write_address();
  if (!written) co_return std::unexpected(written.error());
  listen_locally();
  tasks_.spawn(watch_.run());
  tasks_.spawn(measure_loop_lag());
  tasks_.spawn(let_idle_sleep());
  tasks_.spawn(warm_.run());
  tasks_.spawn(agent_memory_.run());
  tasks_.spawn(sweeper_.run());
  tasks_.spawn(custody_.run());
  tasks_.spawn(webhooks_.run());
  tasks_.spawn(keep_telling());
  jobs_.start([calls = job_calls()](JobCall call) { return perform_job(calls, std::move(call)); });
  server_.start();

  const std::string url = url_at(deps_.config.listen.host);
  deps_.log.info("ready", {{"url", std::string_view(url)},
                           {"version", std::string_view(kVersion)},
                           {"data_dir", std::string_view(deps_.data_dir.path())},
                           {"instance", std::string_view(instance_id_)}});
  print_start(deps_.config, codes_, url, local_url());
  deps_.notice.ready("listening on " + url);
  trash_.empty();
  tasks_.spawn(tell_agents());
  tasks_.spawn(tidy_workspaces());
  co_return Result<void>{};
}

Task<void> Gateway::wait_for_signal() {
  for (;;) {
    const auto [error, number] = co_await signals_.async_wait(kAwait);
    if (error) co_return;
    if (number == SIGHUP) {
      co_await reload_certificate();
      continue;
    }
    deps_.log.info("draining", {{"signal", std::int64_t{number}}});
    co_return;
  }
}

Task<void> Gateway::watch_for_second_signal() {
  while (!is_ending_) {
    const auto [error, number] = co_await signals_.async_wait(kAwait);
    if (error) co_return;
    // A second signal ends the process at once. What was answered is committed, so nothing is lost.
    if (number != SIGHUP) std::_Exit(128 + number);
  }
}

Async<void> Gateway::drain() {
  is_draining_ = true;
  // With a socket that is kept, only callers who are here already can still ask.
  refuses_work_ = !server_.keeps_backlog();
  const Config& config = deps_.config;
  const auto end_max = config.drain_grace + config.cancel_grace + config.kill_grace + kBusyKillMax +
                       kLauncherEndMax + kOrphansEndMax + kLastStepsMax + custody_.end_max();
  deps_.notice.stopping("draining", end_max);
  end_process_after(std::chrono::ceil<std::chrono::seconds>(end_max));
  server_.drain();
  warm_.close();
  jobs_.drain();
  sessions_.end_event_streams();
  const bool is_idle =
      co_await wait_until_idle(std::chrono::steady_clock::now() + config.drain_grace);
  if (!is_idle) {
    // Those who wait are told that they were interrupted, before they are cut off.
    co_await end_work();
    co_await wait_until_idle(std::chrono::steady_clock::now() + kLastAnswersMax);
  }
  auto noted = co_await apps_.note_uses();
  if (noted) noted = co_await browsers_.tidy();
  auto ended = co_await deps_.ledger.instances.end(deps_.clock.now());
  if (!noted) ended = std::unexpected(noted.error());
  if (!ended) {
    deps_.log.warn("the last words did not reach the ledger",
                   {{"why", std::string_view(ended.error().detail)}});
  }
  deps_.data_dir.remove_port_and_address();
  deps_.log.info("drained", {{"cut_off", static_cast<std::int64_t>(server_.busy())}});
  co_return Result<void>{};
}

// Both at the same time: each has its graces.
Task<void> Gateway::end_work() {
  workspaces_.stop();
  TaskGroup ending(deps_.io.get_executor());
  ending.spawn(runs_.stop());
  ending.spawn(sessions_.stop());
  co_await ending.join();
  co_await jobs_.stop();
  co_await egress_.stop();
  co_await budgets_.stop();
}

// False: something is still under way at `end`.
Task<bool> Gateway::wait_until_idle(std::chrono::steady_clock::time_point end) {
  Timer look(deps_.io.get_executor());
  // A turn may be under way whose caller has gone.
  const auto is_busy = [this] {
    return server_.busy() > 0 || sessions_.busy_count() > 0 || jobs_.in_hand() > 0;
  };
  while (is_busy() && std::chrono::steady_clock::now() < end) {
    look.expires_after(kDrainLook);
    co_await look.async_wait(kAwait);
  }
  co_return !is_busy();
}

// So that the first /healthz tells what is there. A program that hangs delays the start no
// longer than this.
Task<void> Gateway::await_first_look() {
  const auto end = std::chrono::steady_clock::now() + kFirstLookMax;
  Timer look(deps_.io.get_executor());
  while (!(claude_.has_looked() && acpx_.has_looked()) && std::chrono::steady_clock::now() < end) {
    look.expires_after(kDrainLook);
    co_await look.async_wait(kAwait);
  }
  co_await custody_.begin();
}

}  // namespace clawdforge
