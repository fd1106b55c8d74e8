// Paging through rows that are sorted by time and then by id, newest first. A cursor names
// the place where a page ended, not a row: what comes or goes meanwhile moves nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/core/ledger_records.h"
#include "ledger/core/sql_driver.h"

namespace clawdforge {

// The next page holds what sorts before it.
struct PageCursor {
  std::int64_t second = std::numeric_limits<std::int64_t>::max();
  std::string id;
  auto operator<=>(const PageCursor&) const = default;
};

// Where the page that `filter` asks for begins; its cursor and its `until` both say so.
// Errc::invalid "validation_failed" for a cursor that no page has given.
Result<PageCursor> place_of(const AuditFilter& filter);

// The same error, for a list that knows more about its cursors.
std::unexpected<Failure> foreign_cursor();

// The parameters $1 to $4 of a statement for a page: the earliest second, the place, and how
// many rows to read, one more than asked for.
SqlRow page_params(const AuditFilter& filter, const PageCursor& place);

// Cuts the row that was read to see whether there is more, and gives the next page's cursor
// if there is.
std::optional<std::string> cut_page(std::vector<SqlRow>& rows, std::int64_t limit,
                                    std::size_t time_column, std::size_t id_column);

}  // namespace clawdforge
