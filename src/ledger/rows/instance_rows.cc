#include "ledger/rows/instance_rows.h"

#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"

namespace clawdforge {
namespace {

constexpr std::string_view kBeginInstance =
    "INSERT INTO instances (instance_id, version, pid, started_at, seen_at) "
    "VALUES ($1, $2, $3, $4, $4)";
constexpr std::string_view kEndInstance =
    "UPDATE instances SET seen_at = $2, ended_at = $2 WHERE instance_id = $1";
constexpr std::string_view kEndOthers =
    "UPDATE instances SET ended_at = $2 WHERE instance_id <> $1 AND ended_at IS NULL";
// The count makes every beat a change: SQLite does not write a page that stays the same.
constexpr std::string_view kBeat =
    "INSERT INTO instances (instance_id, started_at, seen_at, beats) VALUES ($1, $2, $2, 1) "
    "ON CONFLICT (instance_id) DO UPDATE "
    "SET seen_at = excluded.seen_at, beats = instances.beats + 1";

// How long the rows of earlier lives are kept.
constexpr std::chrono::days kInstanceRetention{30};
// A life that was killed has no end; when it was last seen counts instead.
constexpr std::string_view kForgetInstances =
    "DELETE FROM instances WHERE COALESCE(ended_at, seen_at) < $1";

}  // namespace

Async<void> InstanceRows::begin(std::string version, std::int64_t pid, TimePoint at) {
  return worker_.call<void>(
      Lane(), Access::write,
      [self = self_, version = std::move(version), pid, at](SqlDriver& driver) -> Result<void> {
        auto added = driver.execute(kBeginInstance, {self.str(), version, pid, unix_seconds(at)});
        if (!added) return std::unexpected(std::move(added.error()));
        return without_rows(
            driver.execute(kForgetInstances, {unix_seconds(at - kInstanceRetention)}));
      });
}

Async<void> InstanceRows::end(TimePoint at) {
  return worker_.call<void>(Lane(), Access::write, [self = self_, at](SqlDriver& driver) {
    return without_rows(driver.execute(kEndInstance, {self.str(), unix_seconds(at)}));
  });
}

Async<std::int64_t> InstanceRows::end_others(TimePoint at) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [self = self_, at](SqlDriver& driver) {
    return changed_by(driver.execute(kEndOthers, {self.str(), unix_seconds(at)}));
  });
}

std::string owner_has_ended(std::string_view table) {
  return fmt::format(
      "NOT EXISTS (SELECT 1 FROM instances WHERE instances.instance_id = {}.instance_id "
      "AND instances.ended_at IS NULL)",
      table);
}

std::string may_be_written_by(std::string_view table, std::string_view self) {
  return fmt::format("({}.instance_id = {} OR {})", table, self, owner_has_ended(table));
}

Async<void> InstanceRows::beat(TimePoint at) {
  return worker_.call<void>(Lane(), Access::write, [self = self_, at](SqlDriver& driver) {
    return without_rows(driver.execute(kBeat, {self.str(), unix_seconds(at)}));
  });
}

}  // namespace clawdforge
