// SqlDriver is one connection to one SQL database, and the seam between what the ledger
// asks and which database answers. It belongs to the ledger's worker: one thread at a
// time, every call blocks. The connection ends with the object.
//
// Statements are written once, for SQLite and PostgreSQL alike: parameters $1, $2, …,
// types BIGINT, TEXT and DOUBLE PRECISION, ON CONFLICT and RETURNING. Each is prepared at
// its first use and kept.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ledger/core/foreign_changes.h"

namespace clawdforge {

// A text of some size that another part of the program has too: bound without a copy, and never
// in a result.
using SharedText = std::shared_ptr<const std::string>;
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string, SharedText>;
using SqlRow = std::vector<SqlValue>;

struct SqlResult {
  std::vector<SqlRow> rows;
  std::int64_t changed = 0;  // rows inserted, updated or deleted
};

enum class Access { read, write };
// When tidy() is called: between two groups of work, with nothing left to do, at the end.
enum class Moment { busy, idle, closing };

// Every call fails with Errc::unavailable, code "ledger_unavailable", where the database
// or its file is the reason, and with Errc::internal where the statement is.
class SqlDriver {
 public:
  virtual ~SqlDriver() = default;

  // `statement` must be one of a fixed set: what is prepared for it is never dropped.
  virtual Result<SqlResult> execute(std::string_view statement,
                                    std::span<const SqlValue> params) = 0;
  Result<SqlResult> execute(std::string_view statement,
                            std::initializer_list<SqlValue> params = {}) {
    return execute(statement, std::span(params.begin(), params.size()));
  }
  // Several statements without parameters or rows: a migration.
  virtual Result<void> run_script(std::string_view script) = 0;
  // This database's type for a primary key that counts by itself.
  virtual std::string_view auto_id_type() const = 0;

  // Waits for another program's write lock, up to a limit, if it is for writing.
  virtual Result<void> begin(Access access) = 0;
  // After an error the transaction is still to be rolled back.
  virtual Result<void> commit() = 0;
  // Leaves no transaction open, also when the database has ended it already.
  virtual void rollback() = 0;

  // Inside a transaction: until its end no other connection holds the lock `name`, which is one of
  // a fixed set. Here, nothing to do: a database whose write transactions exclude each other
  // needs no more.
  virtual Result<void> lock(std::string_view name);

  // Differs from the last one when another connection has committed a change.
  virtual Result<std::int64_t> change_mark() = 0;

  // The same without asking the database, for any thread; null: this database has no such count.
  virtual std::shared_ptr<const ForeignChanges> foreign_changes() const { return nullptr; }

  // Upkeep for which no caller waits; may do nothing.
  virtual Result<void> tidy(Moment moment) = 0;
};

inline Result<void> SqlDriver::lock(std::string_view) { return {}; }

// For statements whose rows are not needed.
inline Result<void> without_rows(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  return {};
}

// For statements of which only the number of changed rows matters.
inline Result<std::int64_t> changed_by(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  return result->changed;
}

}  // namespace clawdforge
