#include "runs/runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/agent_catalog.h"
#include "agent/single/single_turn.h"
#include "base/async/hang_up_subscription.h"
#include "ledger/rows/run_rows.h"
#include "quota/agent_breaker.h"
#include "quota/apps.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "runs/live_run.h"
#include "runs/run_execution.h"
#include "runs/run_feed.h"
#include "runs/run_settler.h"
#include "storage/work/attachments.h"
#include "uploads/uploads.h"
#include "workspaces/workspaces.h"

namespace clawdforge {
namespace {

// What a breaker refuses looks like the run that has shut it.
Result<RunOutcome> refused(Failure failure) {
  using Scope = AgentBreaker::Scope;
  const bool is_of_agent = AgentBreaker::shuts(Scope::agent, failure.cause) ||
                           AgentBreaker::shuts(Scope::model, failure.cause);
  if (!is_of_agent) return std::unexpected(std::move(failure));
  RunOutcome outcome;
  outcome.stop_reason = "error";
  outcome.failure = std::move(failure);
  return outcome;
}

// Those that a run of this agent can be held to. There is no caller whom it could ask.
std::vector<PermissionMode> modes_of_runs(const AgentSpec& spec, bool is_streamed) {
  std::vector<PermissionMode> held;
  if (takes_single_turn(spec, is_streamed)) {
    for (const auto& [mode, switches] : spec.modes) held.push_back(mode);
    std::erase(held, PermissionMode::ask);
  } else {
    for (const auto& [mode, arguments] : spec.one_shot_modes) held.push_back(mode);
  }
  return held;
}

// Only Claude's own command line can be told these.
Result<void> check_limits(const AgentSpec& spec, const RunRequest& request) {
  const bool takes_them = takes_single_turn(spec, request.feed != nullptr)
                              ? spec.protocol == AgentProtocol::claude
                              : spec.takes_claude_options;
  if (takes_them) return {};
  if (request.tools) {
    return fail(Errc::invalid, "tools_not_supported",
                fmt::format("The agent {} cannot be told which tools it has: leave tools out, and "
                            "use permission_mode.",
                            spec.name));
  }
  if (request.max_turns) {
    return fail(Errc::invalid, "max_turns_not_supported",
                fmt::format("The agent {} cannot be told how many turns it has: leave max_turns "
                            "out, and use timeout_secs.",
                            spec.name));
  }
  return {};
}

}  // namespace

Runs::Runs(Dependencies deps)
    : executor_(deps.executor),
      rows_(deps.rows),
      catalog_(deps.catalog),
      permission_mode_(deps.permission_mode),
      workspaces_(deps.workspaces),
      starter_(deps.starter),
      quota_(deps.quota),
      apps_(deps.apps),
      policies_(deps.policies),
      uploads_(deps.uploads),
      ids_(deps.ids),
      settler_(std::make_unique<RunSettler>(deps.executor, deps.rows, deps.metrics)),
      execution_(std::make_unique<RunExecution>(
          RunExecution::Dependencies{.executor = deps.executor,
                                     .rows = deps.rows,
                                     .catalog = deps.catalog,
                                     .starter = deps.starter,
                                     .run_dirs = deps.run_dirs,
                                     .settler = *settler_,
                                     .clock = deps.clock,
                                     .ids = deps.ids,
                                     .instance_id = std::move(deps.instance_id),
                                     .compute = deps.compute,
                                     .workspaces = deps.workspaces,
                                     .memory = deps.memory,
                                     .acpx_records = deps.acpx_records,
                                     .log = deps.log,
                                     .keeps_prompts = deps.keeps_prompts})),
      parking_(deps.executor),
      tasks_(deps.executor) {}

Runs::~Runs() = default;

std::size_t Runs::unsettled() const { return settler_->unsettled(); }

Result<PermissionMode> Runs::mode_of(const App& app, const AgentSpec& spec,
                                     const RunRequest& request) const {
  const auto permitted = permitted_mode(policies_.of(app, request.agent), request.permission_mode,
                                        spec.permission_mode.value_or(permission_mode_));
  if (!permitted) return std::unexpected(permitted.error());
  PermissionMode mode = *permitted;
  // That sessions ask by default does not close runs: what would be asked is denied.
  if (mode == PermissionMode::ask && !request.permission_mode) mode = PermissionMode::approve_reads;
  const std::vector<PermissionMode> held = modes_of_runs(spec, request.feed != nullptr);
  if (std::ranges::find(held, mode) != held.end()) return mode;
  if (mode == PermissionMode::ask) {
    return fail(
        Errc::invalid, "permission_mode_not_supported",
        fmt::format("A run cannot wait for answers to an agent's questions, so it cannot be held "
                    "to ask: use {}, or a session.",
                    fmt::join(names_of(held), ", ")));
  }
  return mode_not_supported(spec, mode, held);
}

Result<SessionWorkspace> Runs::choose_workspace(const App& app, const RunRequest& request) const {
  if (workspaces_ == nullptr) {
    return fail(Errc::forbidden, "workspace_not_allowed", "This gateway has no workspaces.");
  }
  return workspaces_->choose(policies_.of(app, request.agent), request.workspace_name,
                             starter_.holds_read_only(app.name, request.agent));
}

// The files of a run that its app may ask for; its mode is decided.
Async<std::vector<Attachment>> Runs::prepare(std::shared_ptr<const App> app, RunRequest* request) {
  const Policy policy = policies_.of(*app, request->agent);
  if (auto allowed = check_agent(policy, request->agent); !allowed) {
    co_return std::unexpected(allowed.error());
  }
  const AgentSpec* const spec = catalog_.find(request->agent);
  if (spec == nullptr) co_return unknown_agent(catalog_, policy);
  if (request->model.empty()) request->model = spec->default_model;
  if (auto allowed = check_model(policy, request->model); !allowed) {
    co_return std::unexpected(allowed.error());
  }
  if (auto taken = check_limits(*spec, *request); !taken) {
    co_return std::unexpected(std::move(taken.error()));
  }
  const auto mode = mode_of(*app, *spec, *request);
  if (!mode) co_return std::unexpected(mode.error());
  request->permission_mode = *mode;
  if (!request->workspace_name.empty()) {
    auto chosen = choose_workspace(*app, *request);
    if (!chosen) co_return std::unexpected(std::move(chosen.error()));
    request->workspace = std::move(*chosen);
  }
  if (request->files.empty()) co_return std::vector<Attachment>();
  co_return co_await uploads_.find(app->name, request->files);
}

Async<void> Runs::check(std::shared_ptr<const App> app, RunRequest request) {
  const auto prepared = co_await prepare(std::move(app), &request);
  if (!prepared) co_return std::unexpected(prepared.error());
  co_return Result<void>{};
}

// Admitted, and on its way. Of what a breaker refused there is an outcome at once.
Async<std::shared_ptr<LiveRun>> Runs::start(std::shared_ptr<const App> app, RunRequest request,
                                            std::shared_ptr<AskGate> gate) {
  if (is_stopping_) co_return never_started(RunStop::shutdown);
  auto attachments = co_await prepare(app, &request);
  if (!attachments) co_return std::unexpected(attachments.error());
  if (is_stopping_) co_return never_started(RunStop::shutdown);
  // From here to its place in `live_`, where end_app() finds it, nothing waits.
  if (!apps_.is_current(*app)) co_return token_revoked();
  auto ticket = quota_.admit(*app, {WorkKind::run, request.agent, request.model});
  if (!ticket) co_return std::unexpected(std::move(ticket.error()));
  const auto run = std::make_shared<LiveRun>(executor_, live_, std::move(app), std::move(request),
                                             std::move(*ticket));
  run->attachments = std::move(*attachments);
  run->gate = std::move(gate);
  if (run->request.feed) run->run_id = RunId(ids_.uuid());  // its reader is told before it begins
  if (!run->gate) run->start_deadline();
  tasks_.spawn(work(run));
  co_return run;
}

Async<RunOutcome> Runs::execute(std::shared_ptr<const App> app, RunRequest request, HangUp* hang_up,
                                std::shared_ptr<AskGate> gate) {
  auto started = co_await start(std::move(app), std::move(request), std::move(gate));
  if (!started) co_return refused(std::move(started.error()));
  const std::shared_ptr<LiveRun> run = std::move(*started);
  const HangUpSubscription subscription(hang_up, [weak = std::weak_ptr(run)] {
    if (const auto unwanted = weak.lock()) unwanted->stop(RunStop::caller_gone);
  });
  co_return co_await run->answer();
}

Async<std::unique_ptr<StreamedRun>> Runs::stream(std::shared_ptr<const App> app, RunRequest request,
                                                 HangUp* hang_up) {
  const auto deadline = request.received + request.timeout;
  request.feed = std::make_shared<RunFeed>();
  while (true) {
    auto started = co_await start(app, request, nullptr);
    if (started) {
      const std::shared_ptr<LiveRun> run = std::move(*started);
      co_return std::make_unique<StreamedRun>(run, request.feed);
    }
    if (!request.waits) co_return std::unexpected(std::move(started.error()));
    Failure refusal = started.error();
    const bool may_try = co_await parking_.wait(app->name, std::move(refusal), deadline, hang_up);
    if (!may_try) co_return std::unexpected(std::move(started.error()));
  }
}

Async<RunOutcome> Runs::execute_in_time(std::shared_ptr<const App> app, RunRequest request,
                                        HangUp* hang_up) {
  const auto deadline = request.received + request.timeout;
  while (true) {
    auto outcome = co_await execute(app, request, hang_up);
    // One that a breaker refused has no run.
    std::optional<Failure> refusal;
    if (!outcome) refusal = outcome.error();
    if (outcome && outcome->run_id.empty()) refusal = outcome->failure;
    if (!refusal) co_return outcome;
    const bool may_try = co_await parking_.wait(app->name, std::move(*refusal), deadline, hang_up);
    if (!may_try) co_return outcome;
  }
}

// From the queue to the end of the last process.
Task<void> Runs::work(std::shared_ptr<LiveRun> run) {
  std::optional<Ticket>& ticket = run->ticket;
  assert(ticket);
  auto ready = co_await ticket->ready();
  if (run->stopped() == RunStop::timed_out && !ticket->has_place() && quota_.are_starts_held()) {
    run->set_answer(memory_full());
  } else if (run->stopped() != RunStop::none) {
    run->set_answer(never_started(run->stopped()));
  } else if (!ready) {
    run->set_answer(refused(std::move(ready.error())));
  } else if (auto begun = co_await begin(run); !begun) {
    run->set_answer(std::unexpected(std::move(begun.error())));
  } else {
    co_await execution_->execute(run);
  }
  run->ticket.reset();
}

Async<void> Runs::begin(std::shared_ptr<LiveRun> run) {
  if (!run->gate) co_return Result<void>{};
  auto begun = co_await run->gate->begin({});
  if (!begun) co_return begun;
  run->request.received = std::chrono::steady_clock::now();
  run->start_deadline();
  co_return begun;
}

Async<bool> Runs::cancel(AppName app, RunId run_id) {
  const auto found = std::ranges::find_if(live_, [&](const LiveRun* run) {
    return !run->run_id.empty() && run->run_id == run_id && run->app->name == app;
  });
  const bool is_live = found != live_.end() && !(*found)->is_answered();
  if (is_live) {
    const std::shared_ptr<LiveRun> run = (*found)->shared_from_this();
    run->stop(RunStop::cancelled);
    co_await run->answered();
  }
  // The row decides: the agent may have answered before it was stopped.
  const auto record = co_await rows_.find(std::move(app), std::move(run_id));
  // A streamed one has its id before it has a row.
  if (!record && is_live && record.error().kind == Errc::not_found) co_return true;
  if (!record) co_return std::unexpected(record.error());
  const auto& end = record->end;
  co_return is_live&& end && end->state == RunState::cancelled;
}

void Runs::end_app(const AppName& app) {
  for (LiveRun* run : live_) {
    if (run->app->name == app) run->stop(RunStop::revoked);
  }
}

Task<void> Runs::stop() {
  is_stopping_ = true;
  parking_.stop();
  for (LiveRun* run : live_) run->stop(RunStop::shutdown);
  co_await tasks_.join();
  co_await settler_->stop();
}

}  // namespace clawdforge
