#include "quota/quota.h"

#include <chrono>
#include <utility>

#include "base/refusals.h"
#include "model/limits/app_limits.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kOverLimitWait{2};

// Fewer places are not divided: a second app waits for the run that ends next.
constexpr std::size_t kDividedPlacesMin = 8;

std::size_t part_of(std::size_t places) { return places < kDividedPlacesMin ? 0 : places / 2; }

}  // namespace

Quota::Quota(Options options, Metrics& metrics)
    : options_(options),
      run_places_({.slots_max = options.runs_max,
                   .waiting_max = options.queued_runs_max,
                   .shared_slots_max = part_of(options.runs_max)},
                  metrics.gauge("clawdforge_runs_running", "Runs that hold a place."),
                  metrics.gauge("clawdforge_runs_waiting", "Runs that wait for a place.")),
      agent_places_({options.agents_max, options.queued_agents_max},
                    metrics.gauge("clawdforge_agents_running", "Agents that sessions hold."),
                    metrics.gauge("clawdforge_agents_waiting",
                                  "Sessions that wait for a place for their agent.")),
      metrics_(metrics) {}

// For the agents of its sessions, too, whose start knows only the app's name.
void Quota::note_weight(const App& app) {
  const std::optional<std::int64_t> weight = app.limits ? app.limits->weight : std::nullopt;
  if (weight) {
    weights_[app.name] = static_cast<double>(*weight);
  } else {
    weights_.erase(app.name);
  }
}

double Quota::weight_of(const AppName& app) const {
  const auto found = weights_.find(app);
  return found == weights_.end() ? 1 : found->second;
}

Result<Ticket> Quota::admit(const App& app, Work work) {
  note_weight(app);
  if (work.kind == WorkKind::session_start) return Ticket();
  auto admitted = work.kind == WorkKind::run ? admit_run(app, work) : admit_ask(app, work);
  if (admitted) return admitted;
  tell_limits(admitted.error(), app);
  metrics_.note_refused(app.name, work.agent, work.model, admitted.error().code);
  return admitted;
}

// What is known here: its budgets are in the ledger, which is not asked in vain.
void Quota::tell_limits(Failure& refusal, const App& app) const {
  if (!app.limits) return;
  const std::optional<std::int64_t> per_minute = app.limits->asks_per_minute;
  if (!per_minute) return;
  const std::int64_t left =
      rates_.left(app.name.str(), *per_minute, std::chrono::steady_clock::now());
  // It is the rate that refuses where none is left.
  const auto wait = left == 0 ? refusal.retry_after : std::chrono::seconds(0);
  tell(refusal, notice_of({}, {}, RateState{*per_minute, left, wait}, SystemClock().now()));
}

// What holds for each ask, whatever it is: the breakers, the app's rate, and that its budgets are
// asked.
Result<Ticket> Quota::admit_ask(const App& app, const Work& work) {
  Ticket ticket;
  ticket.breakers_ = &breakers_;
  ticket.logins_ = options_.logins;
  ticket.model_ = {work.agent, work.model};
  ticket.minds_limits_alone_ = work.kind == WorkKind::turn;
  if (auto refusal = ticket.breaker_refusal()) return std::unexpected(std::move(*refusal));
  if (auto refusal = ticket.login_refusal()) return std::unexpected(std::move(*refusal));
  ticket.metrics_ = &metrics_;
  ticket.key_ = {app.name, work.agent, work.model};
  const AppLimits none;
  const AppLimits& limits = app.limits ? *app.limits : none;
  if (limits.asks_per_minute) {
    const AskRates::Answer answer =
        rates_.take(app.name.str(), *limits.asks_per_minute, std::chrono::steady_clock::now());
    const RateState rate{*limits.asks_per_minute, answer.left, answer.wait};
    if (answer.wait.count() > 0) {
      return std::unexpected(rate_refusal(rate, SystemClock().now()));
    }
    ticket.rate_ = rate;
    ticket.rates_ = &rates_;
  }
  if (options_.budgets != nullptr && options_.budgets->apply_to(limits.budgets)) {
    ticket.budgets_ = options_.budgets;
    ticket.app_budgets_ = limits.budgets;
  }
  return ticket;
}

Result<Ticket> Quota::admit_run(const App& app, const Work& work) {
  auto admitted = admit_ask(app, work);
  if (!admitted) return admitted;
  Ticket ticket = std::move(*admitted);
  const auto most = app.runs_max ? app.runs_max : options_.runs_max_per_app;
  auto share = runs_.take(app.name, most);
  if (!share) {
    ticket.give_rate_back();
    auto refused = fail_for_now(
        Errc::over_quota, "too_many_runs",
        "This app has as many runs under way as it may have; wait for one to end.", kOverLimitWait);
    refused.error().cause = Cause::app_busy;
    refused.error().limit = standing_limit("runs", most.value_or(0), runs_.held_by(app.name));
    return refused;
  }
  ticket.share_ = std::move(*share);
  auto slot = run_places_.enter(app.name, weight_of(app.name));
  if (!slot) {
    ticket.give_rate_back();
    return std::unexpected(std::move(slot.error()));
  }
  ticket.slot_ = std::move(*slot);
  return ticket;
}

Result<Ticket> Quota::admit_agent(AppName app, std::string agent) {
  const double weight = weight_of(app);
  auto slot = agent_places_.enter(std::move(app), weight);
  if (!slot) return std::unexpected(std::move(slot.error()));
  Ticket ticket;
  ticket.slot_ = std::move(*slot);
  ticket.logins_ = options_.logins;
  ticket.model_.first = std::move(agent);
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
