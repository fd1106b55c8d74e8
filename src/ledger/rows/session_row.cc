#include "ledger/rows/session_row.h"

#include <algorithm>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

enum Column : std::size_t {
  kSessionId,
  kAppName,
  kAgent,
  kMeta,
  kCreatedAt,
  kLastTurnAt,
  kClosedAt,
  kCloseReason,
  kTurnCount,
  kLastEventId,
  kInputTokens,
  kCostUsd = kInputTokens + 4,
  kAgentSessionId,
  kModel,
  kSystem,
  kEffort,
  kMcpServers,
  kPermissionMode,
};
static_assert(kSessionId == kSessionColumnId && kCreatedAt == kSessionColumnCreatedAt);

std::string text_at(const SqlRow& row, Column column) {
  return text_in(row.at(column)).value_or("");
}

std::int64_t count_at(const SqlRow& row, Column column) {
  return std::max<std::int64_t>(whole_in(row.at(column)).value_or(0), 0);
}

}  // namespace

Session session_from(const SqlRow& row) {
  Session session;
  session.id = text_at(row, kSessionId);
  session.app = text_at(row, kAppName);
  session.agent = text_at(row, kAgent);
  session.meta = json_object_in(row.at(kMeta)).value_or("{}");
  session.created_at = time_in(row.at(kCreatedAt)).value_or(TimePoint());
  session.last_turn_at = time_in(row.at(kLastTurnAt));
  if (!std::holds_alternative<std::monostate>(row.at(kClosedAt))) {
    session.closed_at = time_in(row.at(kClosedAt)).value_or(TimePoint());
    session.close_reason = text_at(row, kCloseReason);
  }
  session.turn_count = count_at(row, kTurnCount);
  session.last_event_id = count_at(row, kLastEventId);
  session.usage = usage_in(row, kInputTokens).value_or(Usage());
  session.cost_usd = number_in(row.at(kCostUsd));
  session.agent_session_id = text_at(row, kAgentSessionId);
  session.model = text_at(row, kModel);
  session.system = text_at(row, kSystem);
  session.effort = text_at(row, kEffort);
  session.mcp_servers = json_array_in(row.at(kMcpServers)).value_or("");
  session.permission_mode =
      permission_mode_from(text_at(row, kPermissionMode)).value_or(PermissionMode::deny_all);
  return session;
}

SqlRow row_of(const Session& session, const std::string& instance_id) {
  return {session.id,
          session.app,
          session.agent,
          session.meta,
          unix_seconds(session.created_at),
          text_or_null(session.model),
          text_or_null(session.system),
          text_or_null(session.effort),
          text_or_null(session.mcp_servers),
          std::string(name_of(session.permission_mode)),
          instance_id};
}

}  // namespace clawdforge
