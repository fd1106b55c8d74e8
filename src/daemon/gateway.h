// Gateway wires the rooms together, in order, and takes them apart again in the
// reverse: start, serve, drain. Lives on the io thread, as the process's main object.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_catalog.h"
#include "agent/core/process_starter.h"
#include "agent/core/program_probe.h"
#include "agent/jail/jail_planner.h"
#include "agent/memory/agent_memory.h"
#include "agent/warm/warm_pool.h"
#include "api/core/api.h"
#include "api/core/health_routes.h"
#include "api/dashboard/overview_routes.h"
#include "api/jobs/job_work.h"
#include "api/native/agent_routes.h"
#include "base/async/compute_worker.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "browsers/sign_in_codes.h"
#include "custody/custody.h"
#include "daemon/agent_outlook.h"
#include "daemon/gateway_dependencies.h"
#include "daemon/jail_setup.h"
#include "daemon/policy_setup.h"
#include "egress/egress_proxy.h"
#include "hooks/webhooks.h"
#include "http/server/server.h"
#include "jobs/jobs.h"
#include "keys/keys.h"
#include "quota/apps.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "runs/runs.h"
#include "sessions/sessions.h"
#include "storage/homes/earlier_home.h"
#include "storage/work/acpx_records.h"
#include "storage/work/answer_files.h"
#include "storage/work/run_dirs.h"
#include "storage/work/session_dirs.h"
#include "storage/work/trash.h"
#include "storage/work/upload_files.h"
#include "upkeep/app_removals.h"
#include "upkeep/session_sweep.h"
#include "upkeep/sweeper.h"
#include "upkeep/watch.h"
#include "uploads/uploads.h"
#include "workspaces/programs.h"
#include "workspaces/workspaces.h"

namespace clawdforge {

class Gateway {
 public:
  using Dependencies = GatewayDependencies;
  Gateway(Dependencies surroundings, Digest admin_digest);
  // Serves until a signal asks to stop, then drains. An error: it did not start.
  Async<void> run();

 private:
  using Signals = boost::asio::basic_signal_set<IoExecutor>;
  void connect();
  Async<void> start();
  Result<std::uint16_t> listen();
  void listen_locally();
  std::string url_at(const std::string& host) const;
  std::string local_url() const;
  Result<void> write_address() const;
  Task<void> wait_for_signal();
  Task<void> reload_certificate();
  Task<void> watch_for_second_signal();
  Task<void> measure_loop_lag();
  Task<void> let_idle_sleep();
  Task<void> keep_telling();
  Async<void> drain();
  Async<void> tidy_disk();
  void show_depths();
  Task<void> await_first_look();
  Task<void> tell_agents();
  Task<void> tidy_workspaces();
  Task<void> reload_browsers();
  OverviewSources overview_sources();
  std::vector<Room> rooms();
  Task<bool> wait_until_idle(std::chrono::steady_clock::time_point end);
  std::size_t connections_max() const;
  Quota::Options quota_options();
  AddressRules address_rules() const;
  RateLimits::Options rate_options() const;
  ByteBudget::Limits memory_limits() const;
  ApiLimits api_limits();
  Runs::Dependencies runs_dependencies();
  Workspaces::Options workspace_options();
  SetupBounds setup_bounds(const std::vector<std::string>& command, const WorkspaceUser& user,
                           const std::string& repository);
  ProcessStarter::Dependencies starter_dependencies();
  Task<void> add_to_audit(AppName app, AuditEvent event);
  void watch_limits();
  void note_refused(const EgressRules& rules, const std::string& target);
  static RefusalRenderers refusals();
  ServerOptions server_options();
  Endpoints endpoints();
  RunDefaults run_defaults() const;
  RunCall run_call();
  SessionDefaults session_defaults() const;
  JobCalls job_calls();
  std::vector<AgentSpec> specs() const;
  bool is_too_old(const AgentSpec& spec) const;
  Custody::Options login_options() const;
  InventorySources inventory_sources() const;
  LoginHealth login_health() const;
  ProcessStarter::Options starter_options() const;
  WarmPool::Dependencies warm_dependencies();
  std::vector<AgentListing> agent_listings() const;
  void relieve_memory();
  std::size_t spares_max(bool is_run) const;
  std::optional<std::string> find_on_path(const std::string& program) const;
  Sessions::Options sessions_options() const;
  Sessions::Dependencies sessions_dependencies();
  Webhooks::Dependencies webhooks_dependencies();
  Task<void> end_work();
  ProgramProbe probe_of(const std::string& program, const std::string& agent);
  Dependencies deps_;
  const InstanceId instance_id_;
  std::uint16_t port_ = 0;
  std::string certificate_;  // PEM; empty: no TLS
  const std::size_t connections_max_;
  bool is_draining_ = false;
  bool refuses_work_ = false;
  bool is_ending_ = false;
  bool is_over_ = false;  // nothing is left but to return
  TaskGroup tasks_{deps_.io.get_executor()};
  Signals signals_{deps_.io.get_executor()};
  Timer lag_timer_{deps_.io.get_executor()};
  Timer sleep_timer_{deps_.io.get_executor()};
  Timer alive_timer_{deps_.io.get_executor()};
  const Digest admin_digest_;
  Apps apps_;
  Browsers browsers_{deps_.ledger.browsers, apps_, admin_digest_, deps_.clock, deps_.ids};
  SignInCodes codes_{deps_.clock};
  OwnerNotes owner_notes_{deps_.ledger.browsers, deps_.clock};
  const std::shared_ptr<Attempts> attempts_ = std::make_shared<Attempts>();
  Budgets budgets_{deps_.io.get_executor(), deps_.ledger.budgets, deps_.clock, deps_.ids,
                   budget_options(deps_.config)};
  Quota quota_;
  RateLimits rates_;
  ByteBudget memory_;
  const Policies policies_ = policies_of(deps_.config, deps_.environment);
  Watch watch_;
  ComputeWorker compute_{deps_.io.get_executor()};
  UploadFiles upload_files_;
  RunDirs run_dirs_;
  SessionDirs session_dirs_;
  Trash trash_{deps_.data_dir.path(), deps_.disk, deps_.log};
  AcpxRecords acpx_records_;
  EarlierHome earlier_home_{home_of(deps_.environment), claude_dir_of(deps_.environment),
                            deps_.disk, deps_.log};
  Workspaces workspaces_{{deps_.io.get_executor(), deps_.disk, deps_.spawner,
                          deps_.ledger.worktrees, deps_.clock, deps_.log},
                         workspace_options()};
  Uploads uploads_;
  Webhooks webhooks_;
  Keys keys_{deps_.ledger.keys,
             deps_.clock,
             instance_id_,
             {deps_.config.idempotency_age_max, deps_.config.keys_max_per_app,
              deps_.config.key_bytes_max_per_app}};
  const AgentCatalog catalog_;
  const JailPlanner jails_{
      jail_options(deps_.config, deps_.spawner, deps_.own_program, deps_.environment)};
  AgentMemory agent_memory_;
  std::chrono::steady_clock::time_point relief_not_before_;
  EgressProxy egress_{
      deps_.io.get_executor(), deps_.metrics, deps_.log,
      [this](const auto& rules, const auto& target) { note_refused(rules, target); }};
  Custody custody_{{deps_.io.get_executor(), deps_.spawner, deps_.disk, deps_.ledger.audit,
                    catalog_, deps_.clock, deps_.log, deps_.metrics},
                   login_options()};
  ProcessStarter starter_;
  WarmPool warm_;
  Runs runs_;
  Sessions sessions_;
  AnswerFiles answer_files_{deps_.data_dir.path(), deps_.disk};
  Jobs jobs_;
  AppRemovals removals_;
  Sweeper sweeper_;
  SessionSweep session_sweep_;
  ProgramProbe claude_;
  ProgramProbe acpx_;
  AgentOutlook outlook_;
  HealthSources health_;
  Api api_;
  Server server_;
};
}  // namespace clawdforge
