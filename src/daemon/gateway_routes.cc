// Which routes the Gateway has, and what each of them is made of.
#include <unistd.h>

#include "agent/jail/jail_bounds.h"
#include "api/admin/audit_routes.h"
#include "api/admin/delivery_routes.h"
#include "api/admin/sweep_routes.h"
#include "api/admin/token_routes.h"
#include "api/admin/whoami_routes.h"
#include "api/dashboard/docs_routes.h"
#include "api/dashboard/overview_routes.h"
#include "api/dashboard/page_routes.h"
#include "api/dashboard/sign_in_routes.h"
#include "api/jobs/job_routes.h"
#include "api/native/agent_routes.h"
#include "api/native/event_routes.h"
#include "api/native/file_routes.h"
#include "api/native/permission_routes.h"
#include "api/native/run_routes.h"
#include "api/native/session_routes.h"
#include "api/native/usage_routes.h"
#include "api/workspaces/session_work_routes.h"
#include "api/workspaces/workspace_routes.h"
#include "daemon/gateway.h"

namespace clawdforge {

Endpoints Gateway::endpoints() {
  Endpoints all;
  add_health_routes(all, health_, deps_.config.metrics_without_token);
  add_page_routes(all, dashboard_assets());
  add_sign_in_routes(all, {apps_, browsers_, codes_, admin_digest_, attempts_});
  add_overview_routes(all, overview_sources());
  add_docs_routes(all, docs_assets());
  add_token_routes(all, apps_, sessions_, removals_);
  add_whoami_routes(all, policies_, catalog_.names());
  const Config& config = deps_.config;
  add_run_routes(all, run_call(), deps_.ledger.runs, keys_);
  add_file_routes(all, uploads_, apps_, keys_, static_cast<std::size_t>(config.file_bytes_max));
  add_session_routes(all, sessions_, apps_, quota_, memory_, keys_, compute_, deps_.ledger.sessions,
                     session_defaults());
  add_event_routes(all, sessions_, apps_, quota_, memory_, compute_);
  add_permission_routes(all, sessions_);
  add_agent_routes(all,
                   {[this] { return agent_listings(); }, [this] { return outlook_.look(); },
                    static_cast<int>(::geteuid()),
                    [this](const Policy& policy) {
                      return AgentJail{jail_in_force(policy, jails_, deps_.spawner),
                                       net_mode(policy)};
                    },
                    [this](std::string_view agent) { return custody_.state_of(agent); }},
                   policies_);
  add_workspace_routes(all, [this] { return workspaces_.list(); }, policies_);
  add_session_work_routes(all, sessions_, apps_, static_cast<std::size_t>(config.file_bytes_max));
  add_job_routes(all,
                 {&jobs_, &deps_.ledger.jobs, &answer_files_, &policies_, &keys_, job_calls()});
  add_audit_routes(all, {deps_.ledger.runs, deps_.ledger.sessions, deps_.ledger.audit}, sessions_);
  add_delivery_routes(all, deps_.ledger.deliveries, webhooks_);
  add_sweep_routes(all, sweeper_);
  add_usage_routes(all, deps_.ledger.usage, deps_.clock);
  return all;
}

OverviewSources Gateway::overview_sources() {
  return {.rooms = [this] { return rooms(); },
          .trouble = [this]() -> std::string_view {
            if (is_draining_) return "draining";
            if (!deps_.ledger.is_healthy()) return "ledger_unavailable";
            return deps_.disk.is_stalled() ? "disk_stalled" : "";
          },
          .questions_open =
              [this] { return static_cast<std::int64_t>(sessions_.load().questions_open); },
          .apps = [this] { return static_cast<std::int64_t>(apps_.list().size()); },
          .config = [this] { return render_config_as_json(deps_.config); },
          .instance_id = instance_id_.str(),
          .started_at = deps_.clock.now(),
          .clock = deps_.clock};
}

// Each bounded thing beside its bound. The gauges are those that /metrics shows.
std::vector<Room> Gateway::rooms() {
  const Config& config = deps_.config;
  const auto shown = [this](const char* name, const char* help) {
    return deps_.metrics.gauge(name, help).value();
  };
  return {{"runs", shown("clawdforge_runs_running", "Runs that hold a place."), config.runs_max,
           "The next one waits."},
          {"runs_waiting", shown("clawdforge_runs_waiting", "Runs that wait for a place."),
           config.queued_runs_max, "The next one is refused."},
          {"sessions_open", watch_.open_sessions(), config.live_sessions_max,
           "The next one is refused."},
          {"agents", shown("clawdforge_agents_running", "Agents that sessions hold."),
           config.agents_max, "The one that was idle for longest sleeps."},
          {"connections", shown("clawdforge_http_connections", "Open connections."),
           static_cast<std::int64_t>(connections_max_), "The next one is refused."}};
}

RunDefaults Gateway::run_defaults() const {
  return {deps_.config.default_timeout, deps_.config.max_timeout};
}

SessionDefaults Gateway::session_defaults() const {
  return {deps_.config.default_timeout, deps_.config.max_timeout, deps_.config.event_format};
}

RunCall Gateway::run_call() {
  return {.runs = &runs_,
          .compute = &compute_,
          .defaults = std::make_shared<const RunDefaults>(run_defaults()),
          .quota = &quota_,
          .memory = &memory_,
          .clock = &deps_.clock};
}

JobCalls Gateway::job_calls() {
  return {.run = run_call(),
          .turn = {&sessions_, &apps_, &quota_, &memory_, &compute_, session_defaults()}};
}

}  // namespace clawdforge
