// Gateway wires the rooms together, in order, and takes them apart again in the
// reverse: start, serve, drain. Lives on the io thread, as the process's main object.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_catalog.h"
#include "agent/core/process_starter.h"
#include "agent/core/program_probe.h"
#include "agent/jail/jail_planner.h"
#include "api/core/api.h"
#include "api/core/health_routes.h"
#include "api/jobs/job_work.h"
#include "base/async/async.h"
#include "base/async/compute_worker.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/limits/byte_budget.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "config/config.h"
#include "daemon/agent_outlook.h"
#include "daemon/jail_setup.h"
#include "daemon/policy_setup.h"
#include "daemon/service_notice.h"
#include "hooks/webhooks.h"
#include "http/server/server.h"
#include "jobs/jobs.h"
#include "keys/keys.h"
#include "ledger/ledger.h"
#include "process/tree/spawner.h"
#include "quota/apps.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "quota/rate_limits.h"
#include "runs/runs.h"
#include "sessions/sessions.h"
#include "storage/disk/data_dir.h"
#include "storage/disk/disk.h"
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
#include "workspaces/workspaces.h"

namespace clawdforge {

class Gateway {
 public:
  // What is there before the gateway, and outlives it.
  struct Dependencies {
    IoContext& io;
    const Config& config;
    const DataDir& data_dir;
    Ledger& ledger;
    const Clock& clock;
    IdSource& ids;
    Log& log;
    Metrics& metrics;
    Spawner& spawner;
    Disk& disk;
    const ServiceNotice& notice;
    std::string own_program;
    std::map<std::string, std::string> environment;
  };

  Gateway(Dependencies surroundings, Digest admin_digest);

  // Serves until a signal asks to stop, then drains. An error: it did not start.
  Async<void> run();

 private:
  using Signals = boost::asio::basic_signal_set<IoExecutor>;

  void connect();
  Async<void> start();
  void listen_locally();
  Result<void> write_address() const;
  Task<void> wait_for_signal();
  Task<void> reload_certificate();
  Task<void> watch_for_second_signal();
  Task<void> measure_loop_lag();
  Task<void> keep_telling();
  Async<void> drain();
  Async<void> tidy_disk();
  void show_depths();
  Task<void> await_first_look();
  Task<void> tell_agents();
  Task<void> tidy_workspaces();
  Task<bool> wait_until_idle(std::chrono::steady_clock::time_point end);
  std::size_t connections_max() const;
  Quota::Options quota_options();
  AddressRules address_rules() const;
  RateLimits::Options rate_options() const;
  ByteBudget::Limits memory_limits() const;
  ApiLimits api_limits();
  Runs::Dependencies runs_dependencies();
  Workspaces::Options workspace_options() const;
  static RefusalRenderers refusals();
  ServerOptions server_options();
  Endpoints endpoints();
  RunDefaults run_defaults() const;
  SessionDefaults session_defaults() const;
  JobCalls job_calls();
  std::vector<AgentSpec> specs() const;
  // Only Claude's own command line has another way beside it.
  bool is_too_old(const AgentSpec& spec) const {
    return is_older(claude_.finding().version, spec.version_min);
  }
  ProcessStarter::Options starter_options() const;
  std::optional<std::string> find_on_path(const std::string& program) const;
  Sessions::Options sessions_options() const;
  Webhooks::Dependencies webhooks_dependencies();
  Task<void> end_work();
  ProgramProbe probe_of(const std::string& program, const std::string& agent);

  Dependencies deps_;
  const InstanceId instance_id_;
  std::uint16_t port_ = 0;
  std::string certificate_;  // PEM; empty: no TLS
  const std::size_t connections_max_;
  bool is_draining_ = false;
  bool is_ending_ = false;
  bool is_over_ = false;  // nothing is left but to return
  TaskGroup tasks_{deps_.io.get_executor()};
  Signals signals_{deps_.io.get_executor()};
  Timer lag_timer_{deps_.io.get_executor()};
  Timer alive_timer_{deps_.io.get_executor()};
  Apps apps_;
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
  ProcessStarter starter_;
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
