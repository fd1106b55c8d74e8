#include "ledger/sessions/journal_parts.h"

#include "ledger/core/row_values.h"
#include "ledger/core/sql_driver.h"

namespace clawdforge {
namespace {

constexpr std::string_view kIsThere =
    "SELECT 1 FROM journal WHERE session_id = $1 AND first_event_id = $2";
constexpr std::string_view kDropLeft =
    "DELETE FROM journal_parts WHERE session_id = $1 AND first_event_id >= $2";
constexpr std::string_view kAddPart =
    "INSERT INTO journal_parts (session_id, first_event_id, part, lines) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (session_id, first_event_id, part) DO UPDATE SET lines = excluded.lines";
constexpr std::string_view kOnePart =
    "SELECT lines FROM journal_parts WHERE session_id = $1 AND first_event_id = $2 AND part = $3";
// A journal without a block has lost all that its session has told.
constexpr std::string_view kLoneParts =
    "SELECT first_event_id, part FROM journal_parts WHERE session_id = $1 AND first_event_id < "
    "COALESCE((SELECT MIN(first_event_id) FROM journal WHERE session_id = $1), "
    "(SELECT last_event_id + 1 FROM sessions WHERE session_id = $1), 9223372036854775807) "
    "AND first_event_id < $2 ORDER BY first_event_id, part LIMIT $3";
constexpr std::string_view kDropPart =
    "DELETE FROM journal_parts WHERE session_id = $1 AND first_event_id = $2 AND part = $3";

}  // namespace

Result<void> add_part(SqlDriver& driver, const SessionId& session_id, std::int64_t first_event_id,
                      std::int64_t part, std::string lines) {
  const auto there = driver.execute(kIsThere, {session_id.str(), first_event_id});
  if (!there) return std::unexpected(there.error());
  if (!there->rows.empty()) return {};
  if (part == 0) {
    auto dropped = without_rows(driver.execute(kDropLeft, {session_id.str(), first_event_id}));
    if (!dropped) return dropped;
  }
  const auto removed = remove_lone_parts(driver, session_id, first_event_id);
  if (!removed) return std::unexpected(removed.error());
  return without_rows(
      driver.execute(kAddPart, {session_id.str(), first_event_id, part, std::move(lines)}));
}

Result<void> append_parts(SqlDriver& driver, const std::string& session_id,
                          std::int64_t first_event_id, std::string& lines) {
  for (std::int64_t part = 0;; ++part) {
    const auto found = driver.execute(kOnePart, {session_id, first_event_id, part});
    if (!found) return std::unexpected(found.error());
    const auto* const text =
        found->rows.empty() ? nullptr : std::get_if<std::string>(&found->rows[0].at(0));
    if (text == nullptr) return {};
    lines += *text;
  }
}

Result<std::int64_t> remove_lone_parts(SqlDriver& driver, const SessionId& session_id,
                                       std::int64_t before) {
  const auto lone = driver.execute(kLoneParts, {session_id.str(), before, kLonePartsMax});
  if (!lone) return std::unexpected(lone.error());
  for (const SqlRow& row : lone->rows) {
    const auto dropped = driver.execute(kDropPart, {session_id.str(), row.at(0), row.at(1)});
    if (!dropped) return std::unexpected(dropped.error());
  }
  return static_cast<std::int64_t>(lone->rows.size());
}

}  // namespace clawdforge
