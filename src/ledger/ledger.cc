#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "ledger/core/migrations.h"
#include "ledger/open_ledger.h"

namespace clawdforge {

Ledger::Ledger(std::unique_ptr<SqlDriver> driver, InstanceId self, IoExecutor executor,
               LedgerWorkerOptions options, Log& log, Metrics& metrics,
               std::unique_ptr<SqlDriver> reader)
    : instance_id(std::move(self)),
      worker(std::move(driver), executor, options, log, metrics, std::move(reader)),
      apps(worker),
      runs(worker, instance_id),
      sessions(worker, instance_id),
      journal(worker, instance_id),
      audit(worker),
      uploads(worker),
      instances(worker, instance_id),
      usage(worker),
      budgets(worker, instance_id),
      deliveries(worker),
      jobs(worker, instance_id),
      keys(worker, instance_id),
      worktrees(worker),
      browsers(worker) {}

Async<std::int64_t> Ledger::foreign_change_mark() {
  return worker.call<std::int64_t>(Lane(), Access::read,
                                   [](SqlDriver& driver) { return driver.change_mark(); });
}

Result<std::unique_ptr<Ledger>> open_ledger(IoExecutor executor, std::string url, InstanceId self,
                                            Log& log, Metrics& metrics, LedgerOptions options) {
  constexpr std::string_view kSqlite = "sqlite:";
  constexpr std::string_view kInMemory = ":memory:";  // each connection would have its own
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
  std::unique_ptr<SqlDriver> reader;
  if (path != kInMemory) {
    auto opened = SqliteDriver::open_to_read(path, options.sqlite);
    if (!opened) return std::unexpected(std::move(opened.error()));
    reader = std::move(*opened);
  }
  try {
    return std::make_unique<Ledger>(std::move(*driver), std::move(self), executor, options.worker,
                                    log, metrics, std::move(reader));
  } catch (const std::system_error& thrown) {
    return fail(Errc::unavailable, "ledger_unavailable",
                fmt::format("The ledger's thread cannot be started: {}.", thrown.what()));
  }
}

}  // namespace clawdforge
