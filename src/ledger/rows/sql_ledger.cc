#include "ledger/rows/sql_ledger.h"

#include <fmt/format.h>

#include <system_error>

#include "ledger/core/migrations.h"

namespace clawdforge {
namespace {

constexpr std::string_view kBeginInstance =
    "INSERT INTO instances (instance_id, version, pid, started_at, seen_at) "
    "VALUES ($1, $2, $3, $4, $4)";
constexpr std::string_view kEndInstance =
    "UPDATE instances SET seen_at = $2, ended_at = $2 WHERE instance_id = $1";
// The count makes every beat a change: SQLite does not write a page that stays the same.
constexpr std::string_view kBeat =
    "INSERT INTO instances (instance_id, started_at, seen_at, beats) VALUES ($1, $2, $2, 1) "
    "ON CONFLICT (instance_id) DO UPDATE "
    "SET seen_at = excluded.seen_at, beats = instances.beats + 1";
constexpr std::string_view kOpenSessions = "SELECT COUNT(*) FROM sessions WHERE closed_at IS NULL";

// How long the rows of earlier lives are kept.
constexpr std::chrono::days kInstanceRetention{30};
// A life that was killed has no end; when it was last seen counts instead.
constexpr std::string_view kForgetInstances =
    "DELETE FROM instances WHERE COALESCE(ended_at, seen_at) < $1";

Result<void> add_instance(SqlDriver& driver, const Instance& instance) {
  const std::int64_t now = unix_seconds(instance.started_at);
  auto added = driver.execute(kBeginInstance, {instance.id, instance.version, instance.pid, now});
  if (!added) return std::unexpected(std::move(added.error()));
  const std::int64_t oldest = unix_seconds(instance.started_at - kInstanceRetention);
  return without_rows(driver.execute(kForgetInstances, {oldest}));
}

}  // namespace

Async<std::int64_t> SqlLedger::open_session_count() {
  return worker_.call<std::int64_t>(Access::read, [](SqlDriver& driver) -> Result<std::int64_t> {
    auto result = driver.execute(kOpenSessions);
    if (!result) return std::unexpected(std::move(result.error()));
    return std::get<std::int64_t>(result->rows.at(0).at(0));
  });
}

Async<std::int64_t> SqlLedger::foreign_change_mark() {
  return worker_.call<std::int64_t>(Access::read,
                                    [](SqlDriver& driver) { return driver.change_mark(); });
}

Async<void> SqlLedger::begin_instance(Instance instance) {
  return worker_.call<void>(Access::write, [instance = std::move(instance)](SqlDriver& driver) {
    return add_instance(driver, instance);
  });
}

Async<void> SqlLedger::end_instance(std::string id, TimePoint at) {
  return worker_.call<void>(Access::write, [id = std::move(id), at](SqlDriver& driver) {
    return without_rows(driver.execute(kEndInstance, {id, unix_seconds(at)}));
  });
}

Async<void> SqlLedger::beat(std::string instance_id, TimePoint at) {
  return worker_.call<void>(Access::write, [id = std::move(instance_id), at](SqlDriver& driver) {
    return without_rows(driver.execute(kBeat, {id, unix_seconds(at)}));
  });
}

Result<std::unique_ptr<SqlLedger>> open_ledger(IoExecutor executor, std::string url, Log& log,
                                               Metrics& metrics, LedgerOptions options) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with("postgresql:") || url.starts_with("postgres:")) {
    return fail(Errc::invalid, "ledger_unsupported",
                "This build has no PostgreSQL driver yet; use sqlite:PATH for the ledger.");
  }
  if (!url.starts_with(kSqlite)) {
    return fail(Errc::invalid, "ledger_unsupported",
                "The ledger must be sqlite:PATH or postgresql://….");
  }
  const std::string path = url.substr(kSqlite.size());
  auto driver = SqliteDriver::open(path, options.sqlite);
  if (!driver) return std::unexpected(std::move(driver.error()));
  auto migrated = migrate(**driver, kSchemaFiles, path, SystemClock().now());
  if (!migrated) return std::unexpected(std::move(migrated.error()));
  if (*migrated > 0) {
    log.info("the ledger's schema was brought up to date",
             {{"migrations", std::int64_t{*migrated}}, {"ledger", std::string_view(path)}});
  }
  try {
    return std::make_unique<SqlLedger>(std::move(*driver), executor, options.worker, log, metrics);
  } catch (const std::system_error& thrown) {
    return fail(Errc::unavailable, "ledger_unavailable",
                fmt::format("The ledger's thread cannot be started: {}.", thrown.what()));
  }
}

}  // namespace clawdforge
