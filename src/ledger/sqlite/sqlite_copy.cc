// SQLite's online copy, of a snapshot: within a read transaction the source does not change
// under the copy, so no write of the gateway makes it start over.
#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

#include "ledger/core/row_values.h"
#include "ledger/sqlite/sqlite_driver.h"

namespace clawdforge {
namespace {

constexpr std::string_view kCounts =
    "SELECT (SELECT COUNT(*) FROM tokens), (SELECT COUNT(*) FROM sessions), "
    "(SELECT COUNT(*) FROM runs)";
constexpr int kStepsPerQuestion = 100'000;  // of SQLite's machine, between two looks at the stop

struct CloseTarget {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
using Target = std::unique_ptr<sqlite3, CloseTarget>;

struct FinishCopy {
  void operator()(sqlite3_backup* copy) const { sqlite3_backup_finish(copy); }
};

std::unexpected<Failure> stopped() {
  auto failed = fail(Errc::gone, "stopped", "The copy was stopped before it was whole.");
  failed.error().cause = Cause::cancelled;
  return failed;
}

std::unexpected<Failure> copy_failure(int code, sqlite3* target) {
  // Of the copy's calls the connection does not keep the system's own error; the file does.
  int number = 0;
  sqlite3_file_control(target, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
  if ((code & 0xff) == SQLITE_IOERR && (number == EDQUOT || number == EFBIG)) code = SQLITE_FULL;
  if ((code & 0xff) == SQLITE_INTERRUPT) return stopped();
  if ((code & 0xff) == SQLITE_FULL) {
    return fail(Errc::unavailable, "disk_full", "The copy cannot be written: the disk is full.");
  }
  return fail(Errc::unavailable, "copy_failed",
              fmt::format("The copy failed: {}.", sqlite3_errstr(code)));
}

Result<void> run(sqlite3* target, const char* text) {
  const int code = sqlite3_exec(target, text, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return copy_failure(code, target);
  return {};
}

// No other program sees the file before it is whole: it needs no journal, and is synced once at
// the end.
Result<Target> open_target(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Target target(opened);
  if (code != SQLITE_OK) return copy_failure(code, opened);
  auto set = run(opened,
                 "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; "
                 "PRAGMA synchronous = OFF");
  if (!set) return std::unexpected(std::move(set.error()));
  return target;
}

Result<void> copy_pages(sqlite3* source, sqlite3* target, const std::function<bool()>& is_stopped) {
  const std::unique_ptr<sqlite3_backup, FinishCopy> copy(
      sqlite3_backup_init(target, "main", source, "main"));
  if (!copy) return copy_failure(sqlite3_extended_errcode(target), target);
  for (;;) {
    if (is_stopped()) return stopped();
    const int code = sqlite3_backup_step(copy.get(), kCopyStepPagesMax);
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_OK) return copy_failure(code, target);
  }
}

// One file without a log beside it, also where it cannot be written; and it is whole.
Result<void> settle(sqlite3* target) {
  if (auto plain = run(target, "PRAGMA journal_mode = DELETE"); !plain) return plain;
  std::string said;
  const int code = sqlite3_exec(
      target, "PRAGMA integrity_check(1)",
      [](void* text, int, char** columns, char**) {
        if (columns[0] != nullptr) *static_cast<std::string*>(text) = columns[0];
        return 0;
      },
      &said, nullptr);
  if (code != SQLITE_OK) return copy_failure(code, target);
  if (said == "ok") return {};
  return fail(Errc::unavailable, "ledger_damaged",
              "The ledger is damaged, and so is every copy of it; clawdforge verify says more.",
              said);
}

Result<LedgerCopy> count_rows(SqliteDriver& driver) {
  const auto result = driver.execute(kCounts);
  if (!result) return std::unexpected(result.error());
  const SqlRow& row = result->rows.at(0);
  return LedgerCopy{.apps = whole_in(row.at(0)).value_or(0),
                    .sessions = whole_in(row.at(1)).value_or(0),
                    .runs = whole_in(row.at(2)).value_or(0)};
}

}  // namespace

Result<LedgerCopy> SqliteDriver::copy_into(const std::string& path,
                                           const std::function<bool()>& is_stopped) {
  auto target = open_target(path);
  if (!target) return std::unexpected(std::move(target.error()));
  sqlite3_progress_handler(
      target->get(), kStepsPerQuestion,
      [](void* asked) { return (*static_cast<const std::function<bool()>*>(asked))() ? 1 : 0; },
      const_cast<std::function<bool()>*>(&is_stopped));
  if (auto begun = begin(Access::read); !begun) return std::unexpected(std::move(begun.error()));
  auto counted = count_rows(*this);  // the first read is the snapshot
  Result<void> copied;
  if (counted) copied = copy_pages(connection_.get(), target->get(), is_stopped);
  rollback();
  if (!counted) return counted;
  if (copied) copied = settle(target->get());
  if (!copied) return std::unexpected(std::move(copied.error()));
  return counted;
}

}  // namespace clawdforge
