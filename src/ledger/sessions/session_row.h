// A row of the table `sessions`, to and from the model. Other programs write this table too:
// what cannot be understood in a row counts as absent, and what decides what an agent may do
// as its strictest value.
//
// The table of columns is in session_row.cc; all of the below is made from it.
#pragma once

#include <string>
#include <string_view>

#include "ledger/core/sql_driver.h"
#include "model/session.h"

namespace clawdforge {

// What session_from() reads, in its order; the id and the time come first.
std::string session_columns();
// The same without what may be large and only a session's agent needs.
std::string session_short_columns();
inline constexpr std::size_t kSessionColumnId = 0;
inline constexpr std::size_t kSessionColumnCreatedAt = 1;

// A session's workspace as its row has it. What cannot be understood is none: its agent then has a
// directory of its own.
std::string workspace_text(const SessionWorkspace& workspace);
SessionWorkspace workspace_in(std::string_view text);

// A session that the database calls closed is closed here, whatever its time says.
Session session_from(const SqlRow& row);

// Adds a row; its parameters.
std::string session_insert();
SqlRow row_of(const Session& session, const InstanceId& instance_id);

}  // namespace clawdforge
