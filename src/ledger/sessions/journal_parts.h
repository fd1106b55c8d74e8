// The parts of blocks that are too large for one row. A row of many megabytes would keep the
// ledger's worker, and with it all apps, for as long as its commit and its checkpoint take. Its
// parts are calls of their own, between which the calls of others have their turn. In the
// caller's transaction; worker threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/session.h"

namespace clawdforge {

class SqlDriver;

// How much of a block one row holds, and one call writes.
inline constexpr std::size_t kJournalPartBytesMax = 256 * 1024;
// How many parts that count for nothing any more one call removes.
inline constexpr std::int64_t kLonePartsMax = 4;

constexpr bool is_in_parts(std::size_t block_bytes) { return block_bytes > kJournalPartBytesMax; }

// Adds the part, or puts it in the place of one that is there. What an earlier life has left of
// blocks from this one on goes with the first part. A block whose row is there has all its parts:
// then nothing is done.
Result<void> add_part(SqlDriver& driver, const SessionId& session_id, std::int64_t first_event_id,
                      std::int64_t part, std::string lines);

// Appends the lines of a block that is in parts.
Result<void> append_parts(SqlDriver& driver, const std::string& session_id,
                          std::int64_t first_event_id, std::string& lines);

// Removes parts of blocks that the journal has lost, of those that begin before `before`, the
// oldest first, at most kLonePartsMax; gives how many.
Result<std::int64_t> remove_lone_parts(
    SqlDriver& driver, const SessionId& session_id,
    std::int64_t before = std::numeric_limits<std::int64_t>::max());

}  // namespace clawdforge
