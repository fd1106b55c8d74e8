#include "runs/run_execution.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/refusals.h"
#include "base/text.h"
#include "json/result_value.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

RunState state_of(RunStop stop) {
  switch (stop) {
    case RunStop::caller_gone:
    case RunStop::cancelled:
    case RunStop::revoked:
      return RunState::cancelled;
    case RunStop::shutdown:
      return RunState::interrupted;
    case RunStop::none:
    case RunStop::timed_out:
      break;
  }
  return RunState::failed;
}

std::string_view stop_reason_of(RunStop stop) {
  switch (stop) {
    case RunStop::caller_gone:
    case RunStop::cancelled:
    case RunStop::revoked:
      return "cancelled";
    case RunStop::timed_out:
      return "timeout";
    case RunStop::none:
    case RunStop::shutdown:
      break;
  }
  return "error";
}

// What the caller is told about a run that was stopped after its agent was asked.
Failure stopped_failure(RunStop stop, const RunRequest& request) {
  if (stop == RunStop::caller_gone || stop == RunStop::cancelled) {
    return {.kind = Errc::gone,
            .code = "cancelled",
            .message = stop == RunStop::cancelled ? "The run was cancelled by its app."
                                                  : "The caller hung up.",
            .cause = Cause::cancelled};
  }
  if (stop == RunStop::shutdown || stop == RunStop::revoked) return never_started(stop).error();
  return {.kind = Errc::timed_out,
          .code = "timeout",
          .message = fmt::format("{} did not finish within {} seconds", request.agent,
                                 request.timeout.count()),
          .cause = Cause::deadline};
}

// As the ledger keeps it; what the agent has said is not in it yet.
RunEnd end_of(const LiveRun& run, const std::optional<Failure>& failure, RunStop stop,
              TimePoint now) {
  RunEnd end;
  end.run_id = run.run_id;
  end.app = run.app->name;
  end.state = failure ? state_of(stop) : RunState::succeeded;
  end.outcome = failure ? failure->code : "ok";
  end.ended_at = now;
  if (failure) {
    end.stop_reason = stop_reason_of(stop);
    end.error = first_characters(failure->message, kSentenceCharactersMax);
  }
  return end;
}

// A program that did not start was not asked anything.
bool is_ask(const std::optional<Failure>& failure) {
  return !failure || (failure->cause != Cause::agent_missing && failure->cause != Cause::not_begun);
}

// What the agent may spend at most, where its app has such a budget.
std::optional<double> budget_of(const LiveRun& run) {
  if (!run.ticket) return std::nullopt;
  return run.ticket->nano_usd_left().transform(usd_of);
}

}  // namespace

Task<void> RunExecution::execute(std::shared_ptr<LiveRun> run) {
  run->run_id = RunId(deps_.ids.uuid());
  run->begun = steady_clock::now();
  bool is_out_of_memory = false;
  try {
    co_await ask(run);
  } catch (const std::bad_alloc&) {
    is_out_of_memory = true;  // for what the agent has said, most likely
  }
  if (is_out_of_memory) {
    if (run->shot) run->shot->stop();
    OneShotAnswer nothing;
    nothing.failure = out_of_memory().error();
    co_await settle(run, std::move(nothing));
  }
  if (run->shot) {
    co_await run->shot->finish();
    run->shot.reset();
    deps_.settler.note_gone(run->run_id);
  }
  const Lane lane(run->app->name);
  if (run->may_have_dir) deps_.run_dirs.remove(run->run_id.str(), lane);
  run->line.leave();
  if (run->has_workspace) co_await deps_.workspaces->remove(run->run_id.str(), lane);
}

Task<void> RunExecution::ask(std::shared_ptr<LiveRun> run) {
  auto begun = co_await begin(run);
  if (!begun) {
    if (run->shot) run->shot->stop();
    run->set_answer(std::unexpected(std::move(begun.error())));
    co_return;
  }
  OneShotAnswer answer = co_await run->shot->answer();
  co_await settle(run, std::move(answer));
}

// The directory, the process, the row. The prompt is sent only after all three: no agent is asked
// anything that the ledger does not know of. The row is written while the program starts.
Async<void> RunExecution::begin(std::shared_ptr<LiveRun> run) {
  RunRequest& request = run->request;
  auto dir = co_await deps_.run_dirs.make(
      run->run_id.str(),
      {.attachments = std::move(run->attachments), .system_prompt = std::move(request.system)},
      Lane(run->app->name));
  run->may_have_dir = dir || was_begun(dir.error());
  if (!dir) co_return std::unexpected(dir.error());
  if (run->stopped() != RunStop::none) co_return never_started(run->stopped());
  auto visible = co_await make_workspace(run, &*dir);
  if (!visible) co_return std::unexpected(std::move(visible.error()));
  if (run->stopped() != RunStop::none) co_return never_started(run->stopped());
  const AgentSpec* const spec = deps_.catalog.find(request.agent);
  if (spec == nullptr) {
    co_return fail(Errc::unavailable, "agent_not_found", "There is no agent of this name.");
  }
  Run row{.id = run->run_id,
          .app = run->app->name,
          .agent = request.agent,
          .model = request.model,
          .prompt_bytes = static_cast<std::int64_t>(request.prompt.size()),
          .started_at = deps_.clock.now(),
          .instance_id = deps_.instance_id};
  if (const auto& key = request.key) row.key = key->begin();
  auto shot = deps_.starter.start_one_shot(
      {.spec = *spec,
       .app = run->app->name,
       .working_dir = std::move(dir->work),
       .temp_dir = std::move(dir->temp),
       .own_dir = std::move(dir->own),
       .permission_mode = request.permission_mode.value_or(PermissionMode::deny_all),
       .visible = std::move(*visible)},
      {.prompt = std::move(request.prompt),
       .model = request.model,
       .system_file = std::move(dir->system_file),
       .system_mode = request.system_mode,
       .effort = request.effort,
       .budget_usd = budget_of(*run),
       .attachments = std::move(dir->attachments)});
  if (!shot) co_return std::unexpected(shot.error());
  run->shot = std::move(*shot);
  co_return co_await add_row(run, std::move(row));
}

// The run works in what it is given of its workspace, and finds its attachments there, or beside
// it. What the agent sees of the owner's directories.
Async<std::vector<VisiblePath>> RunExecution::make_workspace(std::shared_ptr<LiveRun> run,
                                                             RunDir* dir) {
  const SessionWorkspace& chosen = run->request.workspace;
  if (chosen.name.empty() || deps_.workspaces == nullptr) co_return std::vector<VisiblePath>();
  const Lane lane(run->app->name);
  run->has_workspace = true;
  WorkspaceUser user{.id = run->run_id.str(),
                     .app = run->app->name,
                     .own_dir = dir->own,
                     .work = dir->own + "/tree",
                     .temp = dir->temp,
                     .is_run = true};
  auto made = co_await deps_.workspaces->make(chosen, user);
  if (!made) co_return std::unexpected(std::move(made.error()));
  const SessionWorkspace& workspace = made->workspace;
  std::vector<VisiblePath> visible;
  if (workspace.is_shared()) {
    visible.push_back(
        {.path = workspace.path, .is_writable = workspace.mode == WorkspaceMode::direct});
    for (std::string& name : dir->attachments) name = dir->work + "/" + name;
    dir->work = workspace.path;
  } else {
    visible.push_back({.path = user.work, .is_writable = true});
    if (!workspace.repository.empty()) visible.push_back({.path = workspace.repository});
    auto moved =
        co_await deps_.run_dirs.move_attachments(run->run_id.str(), "tree", dir->attachments, lane);
    if (!moved) co_return std::unexpected(std::move(moved.error()));
    dir->work = user.work;
  }
  if (workspace.mode != WorkspaceMode::direct) co_return visible;
  DirectTurns& direct = deps_.workspaces->direct();
  if (!run->request.waits_for_workspace && direct.is_busy(workspace.path)) {
    co_return workspace_busy();
  }
  run->line = direct.join(workspace.path);
  run->on_stop = [all = &direct] { all->nudge(); };
  const bool is_first =
      co_await run->line.first([run_ = run.get()] { return run_->stopped() != RunStop::none; });
  if (!is_first) co_return never_started(run->stopped());
  co_return visible;
}

Async<void> RunExecution::add_row(std::shared_ptr<LiveRun> run, Run row) {
  auto added = co_await deps_.rows.add(std::move(row), run->shot->mark());
  if (!added && may_be_kept(added.error())) {
    // The row may come after all, and must not say for ever that it runs.
    RunEnd end = end_of(*run, added.error(), RunStop::none, deps_.clock.now());
    if (const auto& key = run->request.key) end.key = key->release(end.ended_at);
    deps_.settler.settle_later(std::move(end));
  }
  co_return added;
}

// A large result is read by the compute worker, unless too many wait for it.
Task<std::string> RunExecution::value_of(AppName app, std::string text) {
  if (deps_.compute == nullptr || text.size() < kComputeBytesMin) co_return result_value(text);
  const auto answer = std::make_shared<const std::string>(std::move(text));
  auto value = co_await deps_.compute->call(
      Lane(std::move(app)), [answer]() -> Result<std::string> { return result_value(*answer); });
  co_return value ? std::move(*value) : result_value(*answer);
}

Task<void> RunExecution::settle(std::shared_ptr<LiveRun> run, OneShotAnswer answer) {
  if (answer.failure && run->stopped() != RunStop::none) {
    answer.failure = stopped_failure(run->stopped(), run->request);  // says nothing of the agent
  } else if (std::optional<Ticket>& ticket = run->ticket) {
    ticket->settle(answer.failure);
  }
  RunOutcome outcome{
      .run_id = run->run_id,
      .failure = std::move(answer.failure),
      .result = {},
      .stop_reason = std::move(answer.stop_reason),
      .usage = answer.usage,
      .cost_usd = answer.cost_usd,
      .denials = std::move(answer.denials),
      .error_tail = std::move(answer.error_tail),
      .duration = std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - run->begun)};
  RunEnd end = end_of(*run, outcome.failure, run->stopped(), deps_.clock.now());
  if (outcome.failure) {
    outcome.stop_reason = end.stop_reason;
  } else {
    end.stop_reason = outcome.stop_reason;
    end.result_bytes = static_cast<std::int64_t>(answer.text.size());
    outcome.result = co_await value_of(run->app->name, std::move(answer.text));
  }
  end.duration_ms = outcome.duration.count();
  end.exit_code = answer.exit_code;
  end.exit_signal = answer.exit_signal;
  end.usage = answer.usage;
  end.cost_usd = answer.cost_usd;
  if (is_ask(outcome.failure)) end.agent_ms = end.duration_ms;
  if (auto& ticket = run->ticket) {
    outcome.limits = ticket->notice(end.ended_at);
    end.reservation = ticket->hand_over_reservation();
    if (end.agent_ms) {
      ticket->note({.app = run->app->name,
                    .agent = run->request.agent,
                    .model = run->request.model,
                    .tokens = answer.usage.value_or(Usage()),
                    .nano_usd = nano_usd_of(answer.cost_usd),
                    .agent_ms = end.duration_ms});
    }
  }
  if (const auto& key = run->request.key) {
    end.key = end.agent_ms ? key->keep(run->request.answer_of(outcome), end.ended_at)
                           : key->release(end.ended_at);
  }
  // Done means committed: a caller whose run is not settled is told so, and not its result.
  auto settled = co_await deps_.settler.settle(std::move(end));
  if (!settled) {
    run->set_answer(std::unexpected(std::move(settled.error())));
  } else {
    if (const auto& key = run->request.key) key->is_settled = true;
    run->set_answer(std::move(outcome));
  }
}

}  // namespace clawdforge
