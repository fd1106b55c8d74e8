#include "runs/run_execution.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <utility>

#include "agent/single/single_turn.h"
#include "base/refusals.h"
#include "base/text.h"
#include "json/json_parse.h"
#include "json/result_value.h"
#include "json/schema/json_schema.h"
#include "model/limits/ask_usage.h"
#include "runs/run_feed.h"

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

PermissionMode mode_of(const RunRequest& request) {
  return request.permission_mode.value_or(PermissionMode::deny_all);
}

// What the agent may spend at most, where its app has such a budget.
std::optional<double> budget_of(const LiveRun& run) {
  if (!run.ticket) return std::nullopt;
  return run.ticket->nano_usd_left().transform(usd_of);
}

// As the prompt lists them: what the app may speak of stands beside the name in the directory.
std::vector<std::string> listed(std::vector<std::string> attachments,
                                const std::vector<std::string>& called) {
  for (std::size_t i = 0; i < attachments.size() && i < called.size(); ++i) {
    if (!called[i].empty()) attachments[i] += fmt::format(" ({})", called[i]);
  }
  return attachments;
}

Result<std::string> checked_value(const std::string& text, const JsonSchema* schema) {
  return schema == nullptr ? result_value(text) : value_by_schema(text, *schema);
}

}  // namespace

Task<void> RunExecution::execute(std::shared_ptr<LiveRun> run) {
  run->spare = claim_spare(*run);
  if (run->spare) run->run_id = RunId(run->spare->id());
  if (run->run_id.empty()) run->run_id = RunId(deps_.ids.uuid());
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
  if (run->shot) co_await end_agent(run);
  const Lane lane(run->app->name);
  if (run->may_have_dir) deps_.run_dirs.remove(run->run_id.str(), lane);
  run->line.leave();
  if (run->has_workspace) co_await deps_.workspaces->remove(run->run_id.str(), lane);
}

// A program that was started ahead, in a directory that becomes the run's. It cannot be told
// afterwards where to work, which system prompt it has, and what it may spend.
std::unique_ptr<SpareClaim> RunExecution::claim_spare(const LiveRun& run) const {
  const RunRequest& request = run.request;
  const AgentSpec* const spec = deps_.catalog.find(request.agent);
  const bool is_plain = request.system.empty() && request.workspace.name.empty() &&
                        !budget_of(run).has_value() && !request.tools && !request.max_turns &&
                        !request.schema;
  if (spec == nullptr || !is_plain) return nullptr;
  if (takes_single_turn(*spec, request.feed != nullptr)) return nullptr;
  StartOrder order;
  order.spec = *spec;
  order.app = run.app->name;
  order.permission_mode = request.permission_mode.value_or(PermissionMode::deny_all);
  OneShotRequest asked;
  asked.model = request.model;
  asked.effort = request.effort;
  return deps_.starter.claim_run(std::move(order), std::move(asked));
}

// What acpx has kept of the conversation goes with it.
Task<void> RunExecution::end_agent(std::shared_ptr<LiveRun> run) {
  co_await run->shot->finish();
  std::string conversation = run->shot->agent_session_id();
  run->shot.reset();
  deps_.settler.note_gone(run->run_id);
  if (deps_.acpx_records == nullptr || conversation.empty()) co_return;
  const auto removed =
      co_await deps_.acpx_records->remove(std::move(conversation), Lane(run->app->name));
  if (!removed && deps_.log != nullptr) {
    deps_.log->warn("what acpx has kept of a run could not be removed",
                    {{"run_id", std::string_view(run->run_id)},
                     {"why", std::string_view(removed.error().detail)}});
  }
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
  const AgentSpec* const spec = deps_.catalog.find(request.agent);
  if (spec == nullptr) {
    co_return fail(Errc::unavailable, "agent_not_found", "There is no agent of this name.");
  }
  for (const Attachment& attachment : run->attachments) run->called.push_back(attachment.name);
  RunFiles files{.attachments = std::move(run->attachments),
                 .system_prompt = {},
                 .has_dir = run->spare != nullptr};
  if (takes_single_turn(*spec, request.feed != nullptr)) {
    const auto switches = spec->modes.find(mode_of(request));
    if (switches != spec->modes.end()) files.temp_files = switches->second.files;
  } else {
    files.system_prompt = std::move(request.system);
  }
  auto dir =
      co_await deps_.run_dirs.make(run->run_id.str(), std::move(files), Lane(run->app->name));
  run->may_have_dir = dir || was_begun(dir.error());
  if (!dir) co_return std::unexpected(dir.error());
  if (run->stopped() != RunStop::none) co_return never_started(run->stopped());
  auto visible = co_await make_workspace(run, &*dir);
  if (!visible) co_return std::unexpected(std::move(visible.error()));
  if (run->stopped() != RunStop::none) co_return never_started(run->stopped());
  Run row{.id = run->run_id,
          .app = run->app->name,
          .agent = request.agent,
          .model = request.model,
          .prompt_bytes = static_cast<std::int64_t>(request.prompt.size()),
          .started_at = deps_.clock.now(),
          .instance_id = deps_.instance_id};
  if (const auto& key = request.key) row.key = key->begin();
  if (deps_.keeps_prompts) row.prompt = cut_to(request.prompt, kKeptRunPromptBytesMax);
  auto shot = start(*run, *spec, std::move(*dir), std::move(*visible));
  run->spare.reset();  // the start has taken it
  if (!shot) co_return std::unexpected(shot.error());
  run->shot = std::move(*shot);
  co_return co_await add_row(run, std::move(row));
}

Result<std::unique_ptr<OneShotAgent>> RunExecution::start(LiveRun& run, const AgentSpec& spec,
                                                          RunDir dir,
                                                          std::vector<VisiblePath> visible) {
  RunRequest& request = run.request;
  StartOrder order{.spec = spec,
                   .app = run.app->name,
                   .working_dir = std::move(dir.work),
                   .temp_dir = std::move(dir.temp),
                   .own_dir = std::move(dir.own),
                   .permission_mode = mode_of(request),
                   .home_dir = std::move(dir.home),
                   .visible = std::move(visible)};
  OneShotRequest asked{.prompt = std::move(request.prompt),
                       .model = request.model,
                       .system = std::move(request.system),
                       .system_file = std::move(dir.system_file),
                       .system_mode = request.system_mode,
                       .effort = request.effort,
                       .budget_usd = budget_of(run),
                       .tools = request.tools,
                       .max_turns = request.max_turns,
                       .schema = request.schema ? request.schema->text() : std::string(),
                       .attachments = listed(std::move(dir.attachments), run.called),
                       .listener = request.feed};
  if (!takes_single_turn(spec, request.feed != nullptr)) {
    return deps_.starter.start_one_shot(std::move(order), std::move(asked));
  }
  return start_single_turn({.executor = deps_.executor,
                            .starter = deps_.starter,
                            .memory = deps_.memory,
                            .name = run.run_id.str(),
                            .conversation_id = deps_.ids.uuid()},
                           std::move(order), std::move(asked));
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
                     .agent = run->request.agent,
                     .own_dir = dir->own,
                     .work = dir->own + "/tree",
                     .temp = dir->temp,
                     .is_run = true};
  auto made = co_await deps_.workspaces->make(chosen, user);
  if (!made) co_return std::unexpected(std::move(made.error()));
  const SessionWorkspace& workspace = made->workspace;
  std::vector<VisiblePath> visible;
  if (workspace.is_shared()) {
    const bool is_direct = workspace.mode == WorkspaceMode::direct;
    visible.push_back({.path = workspace.path, .is_writable = is_direct, .is_held = !is_direct});
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
Task<Result<std::string>> RunExecution::value_of(AppName app, OneShotAnswer* answer,
                                                 std::shared_ptr<const JsonSchema> schema) {
  const auto said = std::make_shared<const std::string>(
      answer->structured.empty() ? answer->text : std::move(answer->structured));
  if (deps_.compute == nullptr || said->size() < kComputeBytesMin) {
    co_return checked_value(*said, schema.get());
  }
  const auto value = std::make_shared<Result<std::string>>(std::string());
  const auto done =
      co_await deps_.compute->call(Lane(std::move(app)), [said, schema, value]() -> Result<void> {
        *value = checked_value(*said, schema.get());
        return {};
      });
  co_return done ? std::move(*value) : checked_value(*said, schema.get());
}

Task<void> RunExecution::settle(std::shared_ptr<LiveRun> run, OneShotAnswer answer) {
  if (answer.failure && run->stopped() != RunStop::none) {
    answer.failure = stopped_failure(run->stopped(), run->request);  // says nothing of the agent
  } else if (std::optional<Ticket>& ticket = run->ticket) {
    ticket->settle(answer.failure);
  }
  Result<std::string> value = std::string();
  if (!answer.failure) {
    value = co_await value_of(run->app->name, &answer, run->request.schema);
    if (!value) answer.failure = std::move(value.error());
  }
  RunOutcome outcome{
      .run_id = run->run_id,
      .failure = std::move(answer.failure),
      .result = {},
      .stop_reason = std::move(answer.stop_reason),
      .usage = answer.usage,
      .cost_usd = answer.cost_usd,
      .denials = std::move(answer.denials),
      .model = run->request.model,
      .error_tail = std::move(answer.error_tail),
      .duration = std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - run->begun)};
  RunEnd end = end_of(*run, outcome.failure, run->stopped(), deps_.clock.now());
  if (outcome.failure) {
    outcome.stop_reason = end.stop_reason;
    if (outcome.failure->code == "schema_not_met") {
      outcome.failed_text = cut_to(answer.text, kFailedTextBytesMax);
    }
  } else {
    end.stop_reason = outcome.stop_reason;
    end.result_bytes = static_cast<std::int64_t>(answer.text.size());
    outcome.result = std::move(*value);
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
