// SqliteDriver is the SqlDriver for one SQLite file in WAL mode, every commit synced
// before it is answered. Opened at start, then used by one thread at a time; closing it
// checkpoints. SQLite itself allows other programs to read and write the file meanwhile.
//
// A file that is moved, deleted or replaced while it is open would swallow writes
// silently: every begin() and commit() therefore compares the path with the open file.
// That is one stat(), a microsecond beside the sync of a commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ledger/core/sql_driver.h"

struct sqlite3;
struct sqlite3_stmt;

namespace clawdforge {

struct SqliteOptions {
  // How long another program may hold the write lock before a call fails.
  std::chrono::milliseconds lock_wait_max{5'000};
  // From here on the write-ahead log is copied back when there is nothing else to do …
  int wal_pages_idle_max = 1'000;
  // … and from here on also under load, so that it cannot grow without limit (32 MiB).
  int wal_pages_max = 8'192;
  // Page cache; the whole gateway is to be small when idle.
  int cache_kib_max = 1'024;
};

// How much a step of copy_into() copies: 4 MiB, so that it hears a signal soon.
inline constexpr int kCopyStepPagesMax = 1'024;

// The rows that a copy holds.
struct LedgerCopy {
  std::int64_t apps = 0;
  std::int64_t sessions = 0;
  std::int64_t runs = 0;
};

class SqliteDriver final : public SqlDriver {
 public:
  // Opens `path`, or makes it (0600); ":memory:" is a database of its own. The error's
  // message is a sentence for the operator, with the path and what to do.
  static Result<std::unique_ptr<SqliteDriver>> open(std::string path, SqliteOptions options);
  // For looking at a ledger that is there, beside its gateway or without one: makes no file,
  // and no statement changes anything. Errors as above.
  static Result<std::unique_ptr<SqliteDriver>> open_to_read(std::string path,
                                                            SqliteOptions options);
  ~SqliteDriver() override { changes_->end(); }
  SqliteDriver(const SqliteDriver&) = delete;
  SqliteDriver& operator=(const SqliteDriver&) = delete;

  using SqlDriver::execute;
  Result<SqlResult> execute(std::string_view statement, std::span<const SqlValue> params) override;
  Result<void> run_script(std::string_view script) override;
  std::string_view auto_id_type() const override { return "INTEGER NOT NULL PRIMARY KEY"; }
  Result<void> begin(Access access) override;
  Result<void> commit() override;
  void rollback() override;
  Result<std::int64_t> change_mark() override;
  std::shared_ptr<const ForeignChanges> foreign_changes() const override { return changes_; }
  Result<void> tidy(Moment moment) override;

  // What SQLite finds wrong with the file itself, in its own words, at most `count_max`
  // lines; none: it is whole. Reads all of it.
  Result<std::vector<std::string>> damage(int count_max);

  // Copies one state of the database, what is in the log included, into the empty file
  // `path`, and checks the copy. Writers are not held up: the state is a snapshot, and the log
  // only grows by what they write meanwhile. Between two steps, and while it checks, it asks
  // `is_stopped`. The error's message is a sentence for the operator; Errc::gone when stopped.
  Result<LedgerCopy> copy_into(const std::string& path, const std::function<bool()>& is_stopped);

  // Of the write-ahead log, after the last commit.
  int wal_pages() const { return wal_pages_; }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Connection = std::unique_ptr<sqlite3, Close>;
  struct Prepared {
    std::unique_ptr<sqlite3_stmt, Finalize> statement;
    // SQLite numbers parameters by first appearance: where $1, $2, … ended up.
    std::vector<int> places;
  };

  SqliteDriver(std::string path, SqliteOptions options, Connection connection);
  static Result<std::unique_ptr<SqliteDriver>> connect(std::string path, SqliteOptions options);
  Result<void> set_up();
  Result<void> set_up_to_read();
  void watch_commits();
  Result<SqlValue> set(const std::string& pragma);
  Result<Prepared*> prepare(std::string_view text);
  Result<void> run(const char* text);
  Result<void> check_place() const;
  bool has_moved() const;
  std::unexpected<Failure> failure(int code, std::string_view during) const;

  const std::string path_;
  const SqliteOptions options_;
  Connection connection_;
  std::map<std::string, Prepared, std::less<>> prepared_;  // goes before the connection
  const std::shared_ptr<ForeignChanges> changes_ = std::make_shared<ForeignChanges>();
  int wal_pages_ = 0;
  int wal_pages_copied_ = 0;  // how long the log was when it was last copied back
};

}  // namespace clawdforge
