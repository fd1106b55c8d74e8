// Fills a gateway's ledger with a million events, as many short turns would have, while no
// gateway runs on it.
#pragma once

#include <string>

namespace clawdforge {

enum class Fill { nothing, this_session, other_sessions };

// `database` is the path of the ledger, which has the session. Gives up where something fails.
void fill_journal(const std::string& database, const std::string& session_id, Fill fill);

}  // namespace clawdforge
