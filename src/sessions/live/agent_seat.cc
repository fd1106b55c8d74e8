#include "sessions/live/agent_seat.h"

#include <cassert>
#include <new>
#include <utility>

#include "base/refusals.h"
#include "sessions/live/session_refusals.h"
#include "storage/homes/earlier_home.h"

namespace clawdforge {
namespace {

// What the agent sees beside its own directories. Of a repository it may read everything and write
// nothing: what lies there, such as a hook, is started by the owner's own git.
std::vector<VisiblePath> visible_paths(const SessionWorkspace& workspace) {
  if (workspace.is_shared()) {
    const bool is_direct = workspace.mode == WorkspaceMode::direct;
    return {{.path = workspace.path, .is_writable = is_direct, .is_held = !is_direct}};
  }
  if (workspace.repository.empty()) return {};
  return {{.path = workspace.repository, .is_writable = false}};
}

Failure never_started() {
  return fail_for_now(Errc::unavailable, "queue_timeout",
                      "No place for another agent became free in time; it is safe to try again.",
                      std::chrono::seconds(2))
      .error();
}

}  // namespace

AgentSeat::AgentSeat(SeatOwner& owner, const LiveSessionDependencies& shared,
                     const Session& session)
    : owner_(owner), shared_(shared), deps_(shared.services), session_(session) {}

bool AgentSeat::is_leaving() const {
  return state_ == SeatState::leaving || state_ == SeatState::replacing;
}

void AgentSeat::move_to(SeatState state) {
  assert(is_in_table({state_, state}));
  if (shared_.on_seat_change) shared_.on_seat_change({state_, state});
  state_ = state;
  changed_.notify_all();
}

Task<std::optional<Failure>> AgentSeat::start(AgentTerms terms, bool is_unasked,
                                              std::optional<SessionCreated> created) {
  const auto alive = owner_.shared_from_this();
  terms_ = std::move(terms);
  if (state_ == SeatState::leaving) {
    move_to(SeatState::replacing);
    while (state_ == SeatState::replacing) co_await changed_.wait();
  } else {
    move_to(SeatState::queued);
  }
  std::optional<Failure> failure;
  if (state_ == SeatState::queued) failure = co_await take_slot();
  if (state_ == SeatState::starting) failure = co_await start_process(is_unasked);
  if (state_ == SeatState::opening) failure = co_await open(is_unasked, std::move(created));
  if (state_ == SeatState::ready) {
    shared_.tasks.spawn(listen(agent_));
    co_return std::nullopt;
  }
  // What it says of the agent's login is for who keeps that.
  if (agent_ && ticket_) ticket_->settle(failure);
  const bool is_held = deps_.quota.are_starts_held() && !has_slot();
  Failure refused = std::move(failure).value_or(is_held ? memory_full().error() : never_started());
  if (agent_) refused.error_tail = agent_->error_tail();
  give_up();
  co_return refused;
}

void AgentSeat::interrupt() {
  switch (state_) {
    case SeatState::replacing:
      move_to(SeatState::leaving);
      break;
    case SeatState::queued:
      move_to(SeatState::aborting);
      if (ticket_) ticket_->withdraw();
      break;
    case SeatState::starting:
      move_to(SeatState::aborting);
      break;
    case SeatState::opening:
      move_to(SeatState::aborting);
      agent_->stop();
      break;
    case SeatState::empty:
    case SeatState::ready:
    case SeatState::aborting:
    case SeatState::leaving:
      break;
  }
}

void AgentSeat::give_up() {
  if (agent_) {
    let_go();
  } else if (state_ == SeatState::queued || state_ == SeatState::starting ||
             state_ == SeatState::aborting) {
    ticket_.reset();
    move_to(SeatState::empty);
  }
}

Task<std::optional<Failure>> AgentSeat::take_slot() {
  auto admitted = deps_.quota.admit_agent(session_.app, session_.agent);
  if (!admitted) co_return admitted.error();
  ticket_ = std::move(*admitted);
  if (!ticket_->has_place()) shared_.make_space();
  const auto ready = co_await ticket_->ready();
  // After an interrupt the ticket is withdrawn, and the state has said so already.
  if (!ready && state_ == SeatState::queued) co_return ready.error();
  if (state_ == SeatState::queued) move_to(SeatState::starting);
  co_return std::nullopt;
}

Task<std::optional<Failure>> AgentSeat::start_process(bool is_unasked) {
  const AgentSpec* const spec = deps_.catalog.find(session_.agent);
  if (spec == nullptr) {
    co_return fail(Errc::unavailable, "agent_not_found",
                   "The session's agent is not configured any more.")
        .error();
  }
  // The session may be older than what the configuration says now, and its app may have less now.
  const auto switches = spec->modes.find(terms_.permission_mode);
  if (switches == spec->modes.end())
    co_return mode_not_supported(*spec, terms_.permission_mode).error();
  const auto dir =
      co_await deps_.dirs.make(session_.id.str(), Lane(session_.app), switches->second.files);
  if (!dir) co_return dir.error();
  if (state_ == SeatState::aborting) co_return std::nullopt;
  const bool loads = !is_unasked && !session_.agent_session_id.empty();
  std::string working_dir = Workspaces::work_dir(session_.workspace, dir->work);
  const bool is_acpx = spec->protocol == AgentProtocol::acpx;
  if ((loads || is_acpx) && deps_.earlier_home != nullptr &&
      !spec->login.storage_variable.empty()) {
    co_await deps_.earlier_home->bring({.own_dir = dir->own,
                                        .home = dir->home,
                                        .working_dir = working_dir,
                                        .agent_session_id = loads ? session_.agent_session_id : "",
                                        .is_acpx = is_acpx},
                                       Lane(session_.app));
    if (state_ == SeatState::aborting) co_return std::nullopt;
  }
  auto started = deps_.starter.start_session(
      {.spec = *spec,
       .app = session_.app,
       .working_dir = std::move(working_dir),
       .temp_dir = dir->temp,
       .own_dir = dir->own,
       .permission_mode = terms_.permission_mode,
       .home_dir = dir->home,
       .secrets = deps_.policies.mcp_secrets(session_.mcp_servers),
       .conversation_id = loads ? session_.agent_session_id : deps_.ids.uuid(),
       .loads_conversation = loads,
       .visible = visible_paths(session_.workspace)});
  if (!started) co_return started.error();
  agent_ = std::move(*started);
  move_to(SeatState::opening);
  co_return std::nullopt;
}

// The conversation is open, and the row says by which process.
Task<std::optional<Failure>> AgentSeat::open(bool is_unasked,
                                             std::optional<SessionCreated> created) {
  Opening opened = std::unexpected(out_of_memory().error());
  try {
    opened = co_await agent_->open(conversation(is_unasked));
  } catch (const std::bad_alloc&) {
    agent_->stop();
  }
  if (!opened) co_return opened.error();
  opened_ = std::move(*opened);
  const auto noted =
      co_await deps_.rows.note_agent(session_.id, opened_.agent_session_id, agent_->mark(),
                                     std::move(created), Lane(session_.app));
  if (!noted) co_return noted.error();
  if (state_ == SeatState::opening) move_to(SeatState::ready);
  co_return std::nullopt;
}

Conversation AgentSeat::conversation(bool is_unasked) const {
  const SessionDir dir = deps_.dirs.of(session_.id.str());
  return {.name = session_.id.str(),
          .working_dir = Workspaces::work_dir(session_.workspace, dir.work),
          .temp_dir = dir.temp,
          .agent_session_id = session_.agent_session_id,
          .is_unasked = is_unasked,
          .model = session_.model,
          .system = session_.system,
          .system_mode = session_.system_mode,
          .effort = session_.effort,
          .mcp_servers = deps_.policies.resolved(session_.mcp_servers),
          .schema = terms_.schema,
          .permission_mode = terms_.permission_mode,
          .cost_usd_so_far = session_.cost_usd.value_or(0)};
}

// Also between turns: the agent may say something at any time, and that it has died is worth
// knowing at once. An agent that was let go is read on until it has ended.
Task<void> AgentSeat::listen(std::shared_ptr<SessionAgent> agent) {
  const auto alive = owner_.shared_from_this();
  std::optional<Failure> death;
  bool has_lost_words = false;
  while (!death) {
    try {
      AgentNews news = co_await agent->next();
      shared_.lines_skipped.increment(static_cast<std::int64_t>(news.skipped_lines));
      death = std::move(news.death);
      if (agent == agent_) owner_.on_news(std::move(news));
    } catch (const std::bad_alloc&) {
      // The agent cannot go on as if nothing were missing.
      death = out_of_memory().error();
      has_lost_words = true;
      break;
    }
    co_await owner_.wait_for_space();
  }
  if (agent == agent_) owner_.on_death(std::move(*death), has_lost_words);
}

void AgentSeat::end() {
  if (state_ == SeatState::ready) let_go();
}

void AgentSeat::let_go() {
  move_to(SeatState::leaving);
  shared_.tasks.spawn(await_exit(std::exchange(agent_, nullptr)));
}

Task<void> AgentSeat::await_exit(std::shared_ptr<SessionAgent> agent) {
  const auto alive = owner_.shared_from_this();
  co_await agent->finish(owner_.is_closed());
  agent.reset();
  ticket_.reset();
  move_to(state_ == SeatState::replacing ? SeatState::queued : SeatState::empty);
  // The mark of the next process stays.
  if (state_ == SeatState::empty) {
    const auto forgotten = co_await deps_.rows.forget_process(session_.id, Lane(session_.app));
    if (!forgotten) {
      deps_.log.warn("the mark of a process that has ended is still in the ledger",
                     {{"session", std::string_view(session_.id)},
                      {"why", std::string_view(forgotten.error().detail)}});
    }
  }
  owner_.on_vacated();
}

}  // namespace clawdforge
