#include "quota/quota.h"

#include <chrono>
#include <utility>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kOverLimitWait{2};

}  // namespace

Quota::Quota(Options options, Metrics& metrics)
    : options_(options),
      run_places_({options.runs_max, options.queued_runs_max},
                  metrics.gauge("clawdforge_runs_running", "Runs that hold a place."),
                  metrics.gauge("clawdforge_runs_waiting", "Runs that wait for a place.")),
      agent_places_({options.agents_max, options.queued_agents_max},
                    metrics.gauge("clawdforge_agents_running", "Agents that sessions hold."),
                    metrics.gauge("clawdforge_agents_waiting",
                                  "Sessions that wait for a place for their agent.")) {}

Result<Ticket> Quota::admit(const App& app, Work work) {
  switch (work.kind) {
    case WorkKind::run:
      return admit_run(app, std::move(work));
    case WorkKind::turn:
    case WorkKind::session_start:
      break;
  }
  return Ticket();
}

Result<Ticket> Quota::admit_run(const App& app, Work work) {
  Ticket ticket;
  ticket.breakers_ = &breakers_;
  ticket.model_ = {std::move(work.agent), std::move(work.model)};
  if (auto refusal = breakers_.refusal(ticket.model_, std::chrono::steady_clock::now())) {
    return std::unexpected(std::move(*refusal));
  }
  auto share = runs_.take(app.name, app.runs_max ? app.runs_max : options_.runs_max_per_app);
  if (!share) {
    return fail_for_now(Errc::over_quota, "too_many_runs",
                        "This app has as many runs under way as it may have; wait for one to end.",
                        kOverLimitWait);
  }
  ticket.share_ = std::move(*share);
  auto slot = run_places_.enter(app.name);
  if (!slot) return std::unexpected(std::move(slot.error()));
  ticket.slot_ = std::move(*slot);
  return ticket;
}

Result<Ticket> Quota::admit_agent(AppName app) {
  auto slot = agent_places_.enter(std::move(app));
  if (!slot) return std::unexpected(std::move(slot.error()));
  Ticket ticket;
  ticket.slot_ = std::move(*slot);
  return ticket;
}

SessionLimits Quota::session_limits(const App& app) const {
  SessionLimits limits = options_.sessions;
  if (app.sessions_max) limits.open_max_per_app = app.sessions_max;
  if (limits.open_max_per_app) limits.open_share_max.reset();
  return limits;
}

Result<AppShare> Quota::admit_connection(const App& app) {
  auto share = connections_.take(app.name, options_.connections_max_per_app);
  if (share) return std::move(*share);
  return fail_for_now(Errc::over_quota, "too_many_app_connections",
                      "This app has as many connections open as it may have; close some first.",
                      kOverLimitWait);
}

Result<AppShare> Quota::admit_event_stream(const App& app) {
  auto share = event_streams_.take(app.name, options_.event_streams_max_per_app);
  if (share) return std::move(*share);
  return fail_for_now(Errc::over_quota, "too_many_streams",
                      "This app has as many streams open as it may have; close some first.",
                      kOverLimitWait);
}

}  // namespace clawdforge
