#include "offline/verify.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "ledger/core/row_values.h"
#include "ledger/core/schema_files.h"
#include "ledger/rows/app_row.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kVerifyPageRowsMax = 500;

constexpr std::array kRowChecks = {
    RowCheck{{"session-times", "a session has a time that is none"},
             "SELECT session_id AS id FROM sessions "
             "WHERE NOT (created_at BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(last_turn_at, 0) BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(closed_at, 0) BETWEEN 0 AND 253402300799)"},
    RowCheck{{"session-closed", "an open session has a reason for its end"},
             "SELECT session_id AS id FROM sessions "
             "WHERE closed_at IS NULL AND close_reason IS NOT NULL"},
    RowCheck{{"session-process", "a session has half of a process mark"},
             "SELECT session_id AS id FROM sessions "
             "WHERE (process_pid IS NULL) <> (process_start IS NULL) "
             "OR (process_pid IS NULL) <> (process_boot_id IS NULL)"},
    RowCheck{{"session-turns", "a session's count of turns is not that of its turns"},
             "SELECT session_id AS id FROM sessions "
             "WHERE turn_count <> (SELECT COUNT(*) FROM turns "
             "WHERE turns.session_id = sessions.session_id) "
             "OR turn_count <> (SELECT COALESCE(MAX(turn_index), 0) FROM turns "
             "WHERE turns.session_id = sessions.session_id)"},
    RowCheck{{"session-usage", "a session's tokens are not the sum of its turns'"},
             "SELECT session_id AS id FROM sessions "
             "WHERE input_tokens <> (SELECT COALESCE(SUM(turns.input_tokens), 0) FROM turns "
             "WHERE turns.session_id = sessions.session_id) "
             "OR output_tokens <> (SELECT COALESCE(SUM(turns.output_tokens), 0) FROM turns "
             "WHERE turns.session_id = sessions.session_id) "
             "OR cache_read_tokens <> (SELECT COALESCE(SUM(turns.cache_read_tokens), 0) FROM turns "
             "WHERE turns.session_id = sessions.session_id) "
             "OR cache_write_tokens <> (SELECT COALESCE(SUM(turns.cache_write_tokens), 0) "
             "FROM turns WHERE turns.session_id = sessions.session_id)"},
    // Sums of the same numbers in another order differ in their last digits.
    RowCheck{{"session-cost", "a session's cost is not the sum of its turns'"},
             "SELECT session_id AS id FROM sessions WHERE ABS(COALESCE(cost_usd, 0) - "
             "(SELECT COALESCE(SUM(turns.cost_usd), 0) FROM turns "
             "WHERE turns.session_id = sessions.session_id AND ABS(turns.cost_usd) < 1e300)) "
             "> 0.000001 * (1 + ABS(COALESCE(cost_usd, 0)))"},
    RowCheck{{"session-journal-bytes", "a session's count of journal bytes is not their sum"},
             "SELECT session_id AS id FROM sessions "
             "WHERE journal_bytes <> (SELECT COALESCE(SUM(bytes), 0) FROM journal "
             "WHERE journal.session_id = sessions.session_id)"},
    RowCheck{{"session-last-event", "a session's last event is not the last of its journal"},
             "SELECT session_id AS id FROM sessions "
             "WHERE last_event_id <> (SELECT MAX(last_event_id) FROM journal "
             "WHERE journal.session_id = sessions.session_id)"},
    RowCheck{{"turn-session", "turns of a session that is not there"},
             "SELECT DISTINCT session_id AS id FROM turns WHERE NOT EXISTS "
             "(SELECT 1 FROM sessions WHERE sessions.session_id = turns.session_id)"},
    RowCheck{{"turn-state", "a turn has a state or a time that is none"},
             "SELECT session_id || '/' || turn_index AS id FROM turns "
             "WHERE state NOT IN ('accepted', 'done', 'failed', 'cancelled', 'interrupted') "
             "OR NOT (started_at BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(ended_at, 0) BETWEEN 0 AND 253402300799)"},
    RowCheck{{"turn-end", "a turn's end and its state do not fit each other"},
             "SELECT session_id || '/' || turn_index AS id FROM turns "
             "WHERE (state = 'accepted') <> (ended_at IS NULL) "
             "OR (stop_reason IS NULL) <> (ended_at IS NULL) "
             "OR (state IN ('failed', 'interrupted')) <> (code IS NOT NULL)"},
    RowCheck{{"run-state", "a run has a state or a time that is none"},
             "SELECT run_id AS id FROM runs "
             "WHERE state NOT IN ('running', 'succeeded', 'failed', 'cancelled', 'interrupted') "
             "OR NOT (started_at BETWEEN 0 AND 253402300799) "
             "OR NOT (COALESCE(ended_at, 0) BETWEEN 0 AND 253402300799)"},
    RowCheck{{"run-end", "a run's end and its state do not fit each other"},
             "SELECT run_id AS id FROM runs WHERE (state = 'running') <> (ended_at IS NULL) "
             "OR (outcome IS NULL) <> (ended_at IS NULL) "
             "OR (state = 'succeeded') <> (COALESCE(outcome, '') = 'ok') "
             "OR (process_pid IS NULL) <> (process_start IS NULL) "
             "OR (process_pid IS NULL) <> (process_boot_id IS NULL)"},
    RowCheck{{"upload-row", "an upload has a key, a size or a time that is none"},
             "SELECT file_token_sha256 AS id FROM uploads "
             "WHERE length(file_token_sha256) <> 64 "
             "OR ltrim(file_token_sha256, '0123456789abcdef') <> '' "
             "OR NOT (size BETWEEN 0 AND 9223372036854775807) "
             "OR NOT (created_at BETWEEN 0 AND 253402300799) "
             "OR NOT (expires_at BETWEEN 0 AND 253402300799)"},
    RowCheck{
        {"audit-row", "a line of the audit has an event or a time that is none"},
        "SELECT CAST(event_id AS TEXT) AS id FROM session_events "
        "WHERE event NOT IN ('create', 'create_failed', 'turn', 'close', 'sweep_close', "
        "'hard_delete', "
        "'cancel', 'permission', 'interrupted', 'token_mint', 'token_change', "
        "'token_rotate', 'token_revoke', 'webhook_secret') OR NOT (at BETWEEN 0 AND 253402300799)"},
    RowCheck{{"journal-session", "events of a session that is not there"},
             "SELECT DISTINCT session_id AS id FROM journal WHERE NOT EXISTS "
             "(SELECT 1 FROM sessions WHERE sessions.session_id = journal.session_id)"},
    RowCheck{{"journal-turn", "events of a turn that is not there"},
             "SELECT session_id || '/' || turn_index AS id FROM journal WHERE turn_index <> 0 "
             "AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = journal.session_id "
             "AND turns.turn_index = journal.turn_index)"},
};

constexpr std::array kOwnerChecks = {
    OwnerCheck{{"run-owner", "a run is under way without a gateway"},
               "SELECT run_id, instance_id FROM runs "
               "WHERE ended_at IS NULL AND run_id > $1 ORDER BY run_id LIMIT $2"},
    OwnerCheck{{"turn-owner", "a turn is under way without a gateway"},
               "SELECT session_id || '/' || turn_index AS id, instance_id FROM turns "
               "WHERE ended_at IS NULL AND session_id || '/' || turn_index > $1 "
               "ORDER BY session_id || '/' || turn_index LIMIT $2"},
    OwnerCheck{{"session-owner", "a session has a process without a gateway"},
               "SELECT session_id, instance_id FROM sessions "
               "WHERE process_pid IS NOT NULL AND session_id > $1 ORDER BY session_id LIMIT $2"},
};

constexpr Check kTokenRow{"token-row",
                          "an app's row cannot be understood, so its token does "
                          "not work"};
constexpr std::string_view kTokens =
    "SELECT name, token_sha256, ip_cidrs, event_format, max_sessions, max_runs, created_at, "
    "last_used_at, policy, limits FROM tokens WHERE name > $1 ORDER BY name LIMIT $2";
constexpr std::string_view kInstances =
    "SELECT instance_id, pid, started_at, ended_at FROM instances ORDER BY started_at DESC";
constexpr std::string_view kSchemaNumber = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";

std::string first_text_in(const SqlRow& row) { return text_in(row.at(0)).value_or("(no text)"); }

Result<void> make_row_check(SqlDriver& driver, const RowCheck& check, Findings& findings) {
  findings.begin(check.check);
  const auto examples = driver.execute(
      fmt::format("SELECT id FROM ({}) AS found LIMIT {}", check.wrong, kFindingExamplesMax));
  if (!examples && examples.error().kind == Errc::internal) {
    // What is in the rows makes the statement fail: a sum that overflows, for one.
    findings.note(check.check, "it cannot be computed");
    return {};
  }
  if (!examples) return std::unexpected(examples.error());
  if (examples->rows.empty()) return {};
  const auto count = driver.execute(fmt::format("SELECT COUNT(*) FROM ({}) AS found", check.wrong));
  if (!count) return std::unexpected(count.error());
  const auto shown = static_cast<std::int64_t>(examples->rows.size());
  std::int64_t unseen = whole_in(count->rows.at(0).at(0)).value_or(shown) - shown;
  for (const SqlRow& row : examples->rows) {
    findings.note(check.check, first_text_in(row), 1 + std::exchange(unseen, 0));
  }
  return {};
}

// Calls `see` with every row of a statement that takes the name to go on after and a limit.
template <class See>
Result<void> for_each_row(SqlDriver& driver, std::string_view statement, const See& see) {
  for (std::string last;;) {
    const auto page = driver.execute(statement, {last, kVerifyPageRowsMax});
    if (!page) return std::unexpected(page.error());
    for (const SqlRow& row : page->rows) see(row);
    if (std::cmp_less(page->rows.size(), kVerifyPageRowsMax)) return {};
    std::string next = first_text_in(page->rows.back());
    if (next <= last) return {};  // a name that is not text sorts last
    last = std::move(next);
  }
}

Result<void> make_owner_check(SqlDriver& driver, const OwnerCheck& check,
                              const std::set<std::string>& owners, Findings& findings) {
  findings.begin(check.check);
  return for_each_row(driver, check.unfinished, [&](const SqlRow& row) {
    if (!owners.contains(text_in(row.at(1)).value_or(""))) {
      findings.note(check.check, first_text_in(row));
    }
  });
}

Result<void> verify_tokens(SqlDriver& driver, Findings& findings) {
  findings.begin(kTokenRow);
  return for_each_row(driver, kTokens, [&](const SqlRow& row) {
    if (!app_from(row)) findings.note(kTokenRow, name_in(row));
  });
}

}  // namespace

Result<std::vector<InstanceRow>> select_instances(SqlDriver& driver) {
  const auto result = driver.execute(kInstances);
  if (!result) return std::unexpected(result.error());
  std::vector<InstanceRow> instances;
  for (const SqlRow& row : result->rows) {
    instances.push_back({.id = first_text_in(row),
                         .pid = whole_in(row.at(1)).value_or(0),
                         .started_at = whole_in(row.at(2)).value_or(0),
                         .has_ended = !std::holds_alternative<std::monostate>(row.at(3))});
  }
  return instances;
}

Result<void> check_schema(SqlDriver& driver, std::string_view place) {
  const auto result = driver.execute(kSchemaNumber);
  if (!result) return std::unexpected(result.error());
  const std::int64_t number = whole_in(result->rows.at(0).at(0)).value_or(0);
  const auto known = static_cast<std::int64_t>(std::size(kSchemaFiles));
  if (number == known) return {};
  return fail(Errc::unavailable, "ledger_schema",
              fmt::format("The ledger {} has schema {}, and this program knows {}; {}.", place,
                          number, known,
                          number > known ? "use the newer program"
                                         : "start the gateway once to bring it up to date"));
}

Result<void> verify_rows(SqlDriver& driver, const std::set<std::string>& owners,
                         Findings& findings) {
  if (auto done = verify_tokens(driver, findings); !done) return done;
  for (const std::span<const RowCheck> checks :
       {std::span<const RowCheck>(kRowChecks), ask_row_checks()}) {
    for (const RowCheck& check : checks) {
      if (auto done = make_row_check(driver, check, findings); !done) return done;
    }
  }
  for (const std::span<const OwnerCheck> checks :
       {std::span<const OwnerCheck>(kOwnerChecks), ask_owner_checks()}) {
    for (const OwnerCheck& check : checks) {
      if (auto done = make_owner_check(driver, check, owners, findings); !done) return done;
    }
  }
  return {};
}

}  // namespace clawdforge
