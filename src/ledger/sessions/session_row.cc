#include "ledger/sessions/session_row.h"

#include <algorithm>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

enum SessionColumn : std::size_t {
  kSessionAtSessionId,
  kSessionAtAppName,
  kSessionAtAgent,
  kSessionAtMeta,
  kSessionAtCreatedAt,
  kSessionAtLastTurnAt,
  kSessionAtClosedAt,
  kSessionAtCloseReason,
  kSessionAtTurnCount,
  kSessionAtLastEventId,
  kSessionAtInputTokens,
  kSessionAtCostUsd = kSessionAtInputTokens + 4,
  kSessionAtAgentSessionId,
  kSessionAtModel,
  kSessionAtSystem,
  kSessionAtEffort,
  kSessionAtMcpServers,
  kSessionAtPermissionMode,
};
static_assert(kSessionAtSessionId == kSessionColumnId &&
              kSessionAtCreatedAt == kSessionColumnCreatedAt);

std::string text_at(const SqlRow& row, SessionColumn column) {
  return text_in(row.at(column)).value_or("");
}

std::int64_t count_at(const SqlRow& row, SessionColumn column) {
  return std::max<std::int64_t>(whole_in(row.at(column)).value_or(0), 0);
}

}  // namespace

Session session_from(const SqlRow& row) {
  Session session;
  session.id = id_in<SessionId>(row.at(kSessionAtSessionId));
  session.app = id_in<AppName>(row.at(kSessionAtAppName));
  session.agent = text_at(row, kSessionAtAgent);
  session.meta = json_object_in(row.at(kSessionAtMeta)).value_or("{}");
  session.created_at = time_in(row.at(kSessionAtCreatedAt)).value_or(TimePoint());
  session.last_turn_at = time_in(row.at(kSessionAtLastTurnAt));
  if (!std::holds_alternative<std::monostate>(row.at(kSessionAtClosedAt))) {
    session.closed_at = time_in(row.at(kSessionAtClosedAt)).value_or(TimePoint());
    session.close_reason = text_at(row, kSessionAtCloseReason);
  }
  session.turn_count = count_at(row, kSessionAtTurnCount);
  session.last_event_id = count_at(row, kSessionAtLastEventId);
  session.usage = usage_in(row, kSessionAtInputTokens).value_or(Usage());
  session.cost_usd = number_in(row.at(kSessionAtCostUsd));
  session.agent_session_id = text_at(row, kSessionAtAgentSessionId);
  session.model = text_at(row, kSessionAtModel);
  session.system = text_at(row, kSessionAtSystem);
  session.effort = text_at(row, kSessionAtEffort);
  session.mcp_servers = json_array_in(row.at(kSessionAtMcpServers)).value_or("");
  session.permission_mode = permission_mode_from(text_at(row, kSessionAtPermissionMode))
                                .value_or(PermissionMode::deny_all);
  return session;
}

SqlRow row_of(const Session& session, const InstanceId& instance_id) {
  return {session.id.str(),
          session.app.str(),
          session.agent,
          session.meta,
          unix_seconds(session.created_at),
          text_or_null(session.model),
          text_or_null(session.system),
          text_or_null(session.effort),
          text_or_null(session.mcp_servers),
          std::string(name_of(session.permission_mode)),
          instance_id.str(),
          text_or_null(session.webhook)};
}

}  // namespace clawdforge
