#include "sessions/session_closer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "sessions/journal/feeds.h"
#include "sessions/live/session_dependencies.h"
#include "sessions/live_sessions.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUndroppedMax = 1'000;  // sessions that were not made, and have a row
constexpr std::chrono::seconds kDropPause{1};

}  // namespace

SessionCloser::SessionCloser(const SessionDependencies& deps, LiveSessions& live, Feeds& feeds)
    : deps_(deps), live_(live), feeds_(feeds) {}

Async<bool> SessionCloser::close(Session session) {
  bool was_open = false;
  const Lane lane(session.app);
  if (!session.closed_at) {
    AuditEvent event{.event = "close", .at = deps_.clock.now()};
    const auto changed =
        co_await close_row(session.id, CloseReason::closed, std::move(event), std::nullopt, lane);
    if (!changed) co_return changed;
    was_open = *changed;
  }
  co_await end_for_good(std::move(session.id), std::move(session.agent_session_id), lane);
  co_return was_open;
}

// While the ledger decides, no new turn begins.
Async<bool> SessionCloser::close_row(SessionId id, CloseReason reason, AuditEvent event,
                                     std::optional<TimePoint> idle_since, Lane lane) {
  const auto live = live_.find(id);
  if (live) live->refuse_turns();
  auto changed = co_await deps_.rows.close(std::move(id), reason, std::move(event), idle_since,
                                           std::move(lane));
  if (live && (!changed || !*changed)) live->accept_turns();
  co_return changed;
}

// An agent that was started meanwhile may have begun another conversation.
Task<void> SessionCloser::end_for_good(SessionId id, std::string agent_session_id, Lane lane) {
  const auto live = live_.find(id);
  co_await live_.end(id, TurnStop::closed);
  feeds_.end(id, FeedEnd::closed);
  if (live) agent_session_id = live->session().agent_session_id;
  const auto removed =
      co_await deps_.acpx_records.remove(std::move(agent_session_id), std::move(lane));
  if (removed) co_return;
  deps_.log.warn(
      "what acpx has kept of a session could not be removed",
      {{"session", std::string_view(id)}, {"why", std::string_view(removed.error().detail)}});
}

Async<bool> SessionCloser::sweep(SessionId id, TimePoint idle_since) {
  if (const auto live = live_.find(id); live && live->is_busy()) co_return false;
  AuditEvent event{.event = "sweep_close", .at = deps_.clock.now()};
  auto changed = co_await close_row(id, CloseReason::idle, std::move(event), idle_since, Lane());
  if (changed && *changed) {
    auto cleared = co_await clear(std::move(id));
    if (!cleared) co_return std::unexpected(std::move(cleared.error()));
  }
  co_return changed;
}

Async<void> SessionCloser::clear(SessionId id) {
  const auto row = co_await deps_.rows.find(id);
  co_await end_for_good(std::move(id), row ? row->agent_session_id : "", Lane());
  if (!row && row.error().kind != Errc::not_found) co_return std::unexpected(row.error());
  co_return Result<void>{};
}

Async<void> SessionCloser::follow_ledger() {
  std::vector<SessionId> ids = live_.ids_at_work();
  for (SessionId& id : feeds_.session_ids()) {
    if (!live_.find(id)) ids.push_back(std::move(id));
  }
  live_.forget_quiet();
  if (ids.empty()) co_return Result<void>{};
  const auto open = co_await deps_.rows.open_among(ids);
  if (!open) co_return std::unexpected(open.error());
  std::erase_if(ids,
                [&](const SessionId& id) { return std::ranges::find(*open, id) != open->end(); });
  for (const SessionId& id : ids) {
    if (const auto live = live_.find(id)) live->begin_end(TurnStop::closed);
  }
  for (const SessionId& id : ids) {
    co_await end_for_good(id, "", Lane());
    // The program that closed the row has left the mark of the session's process there.
    auto forgotten = co_await deps_.rows.forget_process(id);
    if (!forgotten) co_return forgotten;
  }
  co_return Result<void>{};
}

void SessionCloser::forget_snapshot(const SessionId& id) {
  if (deps_.workspaces != nullptr) deps_.workspaces->forget_snapshot(id.str());
}

Task<void> SessionCloser::undo(Session session, bool has_dir, AuditEvent why) {
  SessionId id = std::move(session.id);
  const Lane lane(session.app);
  co_await end_for_good(id, std::move(session.agent_session_id), lane);
  if (has_dir) deps_.dirs.remove(id.str(), lane);
  if (deps_.workspaces != nullptr && (has_dir || !session.workspace.name.empty())) {
    co_await deps_.workspaces->remove(id.str(), lane);
  }
  const auto dropped = co_await deps_.rows.drop(id, lane, why);
  if (dropped) co_return;
  deps_.log.warn(
      "the row of a session that did not start could not be removed yet",
      {{"session", std::string_view(id)}, {"why", std::string_view(dropped.error().detail)}});
  drop_later(std::move(id), std::move(why));
}

// One that is left out is closed when it has been idle for long; if no agent's session is in
// it, the next start removes it.
void SessionCloser::drop_later(SessionId id, std::optional<AuditEvent> why) {
  if (undropped_ >= kUndroppedMax) return;
  ++undropped_;
  live_.tasks().spawn(drop_again(std::move(id), std::move(why)));
}

Task<void> SessionCloser::drop_again(SessionId id, std::optional<AuditEvent> why) {
  Timer pause(deps_.executor);
  for (bool is_dropped = false; !is_dropped && !live_.is_stopping();) {
    pause.expires_after(kDropPause);
    co_await pause.async_wait(kAwait);
    const auto dropped = co_await deps_.rows.drop(id, Lane(), why);
    is_dropped = dropped.has_value();
  }
  --undropped_;
}

}  // namespace clawdforge
