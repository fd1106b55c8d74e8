// The parts that lists of the audit have in common: their query and the end of a page.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "api/core/query.h"
#include "ledger/rows/run_rows.h"

namespace clawdforge {

// The span of time and the page that a query asks for; mistakes are noted in it.
AuditFilter audit_filter_of(Query& query);

// After the last entry: ],"count":N,"next_cursor":...}
void append_page_end(std::string& out, std::size_t count,
                     const std::optional<std::string>& next_cursor);

}  // namespace clawdforge
