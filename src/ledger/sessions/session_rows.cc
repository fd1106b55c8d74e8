// What a call may well come to, such as a full pool, is not an error for the worker, which
// would take the ledger for ill, roll back and repeat the calls beside it: it becomes one when
// the worker has answered.
#include "ledger/sessions/session_rows.h"

#include <fmt/format.h>

#include "base/refusals.h"
#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/keys/key_write.h"
#include "ledger/rows/audit_rows.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/sessions/session_row.h"

namespace clawdforge {
namespace {

// Beside this one, which may be there already: the answer to a commit can get lost.
constexpr std::string_view kCountOpen =
    "SELECT COUNT(*) FROM sessions WHERE closed_at IS NULL AND session_id <> $1";
constexpr std::string_view kCountOpenOfApp =
    "SELECT COUNT(*) FROM sessions WHERE app_name = $2 AND closed_at IS NULL AND session_id <> $1";
constexpr std::string_view kNoteAgent =
    "UPDATE sessions SET agent_session_id = $2, process_pid = $3, process_start = $4, "
    "process_boot_id = $5, instance_id = $6 WHERE session_id = $1 AND closed_at IS NULL AND {} "
    "RETURNING app_name";
constexpr std::string_view kForgetProcess =
    "UPDATE sessions SET process_pid = NULL, process_start = NULL, process_boot_id = NULL "
    "WHERE session_id = $1 AND {}";
constexpr std::string_view kDropJournal = "DELETE FROM journal WHERE session_id = $1";
constexpr std::string_view kDropParts = "DELETE FROM journal_parts WHERE session_id = $1";
constexpr std::string_view kDropTurns = "DELETE FROM turns WHERE session_id = $1";
constexpr std::string_view kDropSession =
    "DELETE FROM sessions WHERE session_id = $1 RETURNING app_name";
// The mark of its process stays until the process is gone: see kForgetProcess.
constexpr std::string_view kClose =
    "UPDATE sessions SET closed_at = $2, close_reason = $3 "
    "WHERE session_id = $1 AND closed_at IS NULL RETURNING app_name";
constexpr std::string_view kCloseIdle =
    "UPDATE sessions SET closed_at = $2, close_reason = $3 "
    "WHERE session_id = $1 AND closed_at IS NULL AND COALESCE(last_turn_at, created_at) <= $4 "
    "RETURNING app_name";

constexpr std::chrono::seconds kFullRetryAfter{5};

struct Admission {
  enum class Kind { granted, pool_full, app_full };
  Kind kind = Kind::granted;
  std::int64_t limit = 0;  // of the app, and what it has; for app_full
  std::int64_t used = 0;
};

Result<Admission> insert_session(SqlDriver& driver, const Session& session,
                                 const SessionLimits& limits, const InstanceId& instance_id) {
  const auto count_in = [](const SqlResult& result) {
    return whole_in(result.rows.at(0).at(0)).value_or(0);
  };
  // Another gateway must not count the same free place.
  if (auto locked = driver.lock("admission"); !locked) {
    return std::unexpected(std::move(locked.error()));
  }
  if (limits.open_max_per_app || limits.open_share_max) {
    const auto own = driver.execute(kCountOpenOfApp, {session.id.str(), session.app.str()});
    if (!own) return std::unexpected(own.error());
    const std::int64_t count = count_in(*own);
    if (limits.open_max_per_app && count >= *limits.open_max_per_app) {
      return Admission{Admission::Kind::app_full, *limits.open_max_per_app, count};
    }
    if (limits.open_share_max && count >= *limits.open_share_max) {
      return Admission{Admission::Kind::pool_full};
    }
  }
  const auto all = driver.execute(kCountOpen, {session.id.str()});
  if (!all) return std::unexpected(all.error());
  if (count_in(*all) >= limits.open_max) return Admission{Admission::Kind::pool_full};
  static const std::string kAddSession = session_insert();
  const auto added = driver.execute(kAddSession, row_of(session, instance_id));
  if (!added) return std::unexpected(added.error());
  return Admission{};
}

Result<void> answer_of(const Admission& admission) {
  if (admission.kind == Admission::Kind::granted) return {};
  const bool is_app_full = admission.kind == Admission::Kind::app_full;
  auto refused = is_app_full
                     ? fail(Errc::over_quota, "too_many_sessions",
                            "This app has as many sessions open as it may have; close one first.")
                     : fail(Errc::unavailable, "pool_full",
                            "As many sessions are open as the gateway allows; try again later.");
  refused.error().retry_after = kFullRetryAfter;
  if (is_app_full) {
    refused.error().limit = standing_limit("sessions", admission.limit, admission.used);
  }
  return refused;
}

struct AgentNote {
  std::string agent_session_id;
  ProcessMark process;
  InstanceId instance_id;
  std::optional<SessionCreated> created;
};

// False: there is no open session of this id, or another gateway has it.
Result<bool> update_agent(SqlDriver& driver, const SessionId& id, const AgentNote& agent) {
  static const std::string kNote = fmt::format(kNoteAgent, may_be_written_by("sessions", "$6"));
  const auto noted = driver.execute(
      kNote, {id.str(), agent.agent_session_id, agent.process.pid, agent.process.start_time,
              agent.process.boot_id, agent.instance_id.str()});
  if (!noted) return std::unexpected(noted.error());
  if (noted->rows.empty()) return false;
  if (!agent.created) return true;
  const auto app = id_in<AppName>(noted->rows[0].at(0));
  if (const auto& key = agent.created->key) {
    if (auto kept = write_key(driver, *key); !kept) return std::unexpected(std::move(kept.error()));
  }
  auto written = add_audit(driver, id, app, agent.created->event);
  if (!written) return std::unexpected(std::move(written.error()));
  return true;
}

Result<bool> update_closed(SqlDriver& driver, const SessionId& id, CloseReason reason,
                           const AuditEvent& event, std::optional<std::int64_t> idle_since) {
  SqlRow params = {id.str(), unix_seconds(event.at), std::string(name_of(reason))};
  if (idle_since) params.emplace_back(*idle_since);
  const auto closed = driver.execute(idle_since ? kCloseIdle : kClose, params);
  if (!closed) return std::unexpected(closed.error());
  if (closed->rows.empty()) return false;
  const auto app = id_in<AppName>(closed->rows[0].at(0));
  auto written = add_audit(driver, id, app, event);
  if (!written) return std::unexpected(std::move(written.error()));
  return true;
}

// The audit's line comes once, with the row: the call may be repeated.
Result<void> delete_session(SqlDriver& driver, const SessionId& id,
                            const std::optional<AuditEvent>& why) {
  for (const std::string_view statement : {kDropJournal, kDropParts, kDropTurns}) {
    auto dropped = driver.execute(statement, {id.str()});
    if (!dropped) return std::unexpected(std::move(dropped.error()));
  }
  const auto dropped = driver.execute(kDropSession, {id.str()});
  if (!dropped) return std::unexpected(dropped.error());
  if (!why || dropped->rows.empty()) return {};
  return add_audit(driver, id, id_in<AppName>(dropped->rows[0].at(0)), *why);
}

Result<std::optional<Session>> select_session(SqlDriver& driver, const SessionId& id,
                                              bool is_whole) {
  static const std::string kFind =
      fmt::format("SELECT {} FROM sessions WHERE session_id = $1", session_short_columns());
  static const std::string kLoad =
      fmt::format("SELECT {} FROM sessions WHERE session_id = $1", session_columns());
  auto result = driver.execute(is_whole ? kLoad : kFind, {id.str()});
  if (!result) return std::unexpected(std::move(result.error()));
  if (result->rows.empty()) return std::nullopt;
  return session_from(result->rows.front());
}

}  // namespace

Async<Session> SessionRows::find(SessionId id, Lane lane) const {
  return read(std::move(id), false, std::move(lane));
}

std::optional<std::uint64_t> SessionRows::foreign_mark() const { return worker_.foreign_mark(); }

Async<Session> SessionRows::load(SessionId id, Lane lane) const {
  return read(std::move(id), true, std::move(lane));
}

Async<Session> SessionRows::read(SessionId id, bool is_whole, Lane lane) const {
  auto found = co_await worker_.call<std::optional<Session>>(
      std::move(lane), Access::read, [id = std::move(id), is_whole](SqlDriver& driver) {
        return select_session(driver, id, is_whole);
      });
  if (!found) co_return std::unexpected(std::move(found.error()));
  std::optional<Session>& session = *found;
  if (!session) co_return fail(Errc::not_found, "session_not_found", "There is no such session.");
  co_return std::move(*session);
}

Async<void> SessionRows::add(Session session, SessionLimits limits) {
  Lane lane(session.app);
  auto added = co_await worker_.call<Admission>(
      std::move(lane), Access::write,
      [session = std::move(session), limits, self = self_](SqlDriver& driver) {
        return insert_session(driver, session, limits, self);
      });
  if (!added) co_return std::unexpected(std::move(added.error()));
  co_return answer_of(*added);
}

Async<void> SessionRows::note_agent(SessionId id, std::string agent_session_id, ProcessMark process,
                                    std::optional<SessionCreated> created, Lane lane) {
  AgentNote agent{std::move(agent_session_id), std::move(process), self_, std::move(created)};
  auto noted = co_await worker_.call<bool>(
      std::move(lane), Access::write,
      [id = std::move(id), agent = std::move(agent)](SqlDriver& driver) {
        return update_agent(driver, id, agent);
      });
  if (!noted) co_return std::unexpected(std::move(noted.error()));
  if (!*noted) co_return fail(Errc::gone, "session_closed", "The session is closed.");
  co_return Result<void>();
}

Async<void> SessionRows::note_workspace(SessionId id, SessionWorkspace workspace, Lane lane) {
  return worker_.call<void>(
      std::move(lane), Access::write,
      [id = std::move(id), text = workspace_text(workspace)](SqlDriver& driver) {
        return without_rows(driver.execute(
            "UPDATE sessions SET workspace = $2 WHERE session_id = $1", {id.str(), text}));
      });
}

Async<void> SessionRows::forget_process(SessionId id, Lane lane) {
  return worker_.call<void>(std::move(lane), Access::write,
                            [id = std::move(id), self = self_](SqlDriver& driver) {
                              static const std::string kForget =
                                  fmt::format(kForgetProcess, may_be_written_by("sessions", "$2"));
                              return without_rows(driver.execute(kForget, {id.str(), self.str()}));
                            });
}

Async<void> SessionRows::drop(SessionId id, Lane lane, std::optional<AuditEvent> why) {
  return worker_.call<void>(std::move(lane), Access::write,
                            [id = std::move(id), why = std::move(why)](SqlDriver& driver) {
                              return delete_session(driver, id, why);
                            });
}

Async<bool> SessionRows::close(SessionId id, CloseReason reason, AuditEvent event,
                               std::optional<TimePoint> idle_since, Lane lane) {
  return worker_.call<bool>(std::move(lane), Access::write,
                            [id = std::move(id), reason, event = std::move(event),
                             since = idle_since.transform(unix_seconds)](SqlDriver& driver) {
                              return update_closed(driver, id, reason, event, since);
                            });
}

}  // namespace clawdforge
