// A row of the table `sessions`, to and from the model. Other programs write this table too:
// what cannot be understood in a row counts as absent, and what decides what an agent may do
// as its strictest value.
#pragma once

#include <string>
#include <string_view>

#include "ledger/core/sql_driver.h"
#include "model/session.h"

namespace clawdforge {

// What session_from() reads, in its order.
inline constexpr std::string_view kSessionColumns =
    "session_id, app_name, agent, meta, created_at, last_turn_at, closed_at, close_reason, "
    "turn_count, last_event_id, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, cost_usd, agent_session_id, model, system, effort, mcp_servers, "
    "permission_mode";

// The same without what may be large and only a session's agent needs.
inline constexpr std::string_view kSessionShortColumns =
    "session_id, app_name, agent, meta, created_at, last_turn_at, closed_at, close_reason, "
    "turn_count, last_event_id, input_tokens, output_tokens, cache_read_tokens, "
    "cache_write_tokens, cost_usd, agent_session_id, model, '', effort, '', permission_mode";

inline constexpr std::size_t kSessionColumnId = 0;
inline constexpr std::size_t kSessionColumnCreatedAt = 4;

// A session that the database calls closed is closed here, whatever its time says.
Session session_from(const SqlRow& row);

// The parameters of the statement that adds one: session_id, app_name, agent, meta,
// created_at, model, system, effort, mcp_servers, permission_mode, instance_id, webhook.
SqlRow row_of(const Session& session, const InstanceId& instance_id);

}  // namespace clawdforge
