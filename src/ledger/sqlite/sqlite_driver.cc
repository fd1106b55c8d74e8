#include "ledger/sqlite/sqlite_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/refusals.h"
#include "ledger/sqlite/sqlite_error.h"

namespace clawdforge {
namespace {

constexpr std::string_view kInMemory = ":memory:";
// Marks the file as ours ("cflg"), and is the write that shows at start whether it takes any.
constexpr std::int64_t kApplicationId = 0x63666c67;
// A reader of another program may delay the end of this one by no more.
constexpr int kClosingWaitMillisecondsMax = 100;

std::unexpected<Failure> start_failure(std::string message) {
  return fail(Errc::unavailable, "ledger_unavailable", std::move(message));
}

// A new file is made here and not by SQLite, so that no other user can read it, from its
// first moment on. An existing one is not opened: closing it would drop the locks of any
// other connection of this process.
Result<void> make_file(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISREG(status.st_mode)) return {};
    return start_failure(fmt::format("The ledger {} is not a plain file.", path));
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return start_failure(
        fmt::format("The ledger {} cannot be made: {}.", path, std::strerror(errno)));
  }
  close(file);
  return {};
}

SqlValue column_value(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return bytes == nullptr ? std::string() : std::string(bytes, size);
    }
    default:
      return std::monostate();
  }
}

// The value must stay where it is until the statement is reset.
int bind_text(sqlite3_stmt* statement, int place, const std::string& text) {
  return sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_STATIC,
                             SQLITE_UTF8);
}

int bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, place, *number);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return sqlite3_bind_double(statement, place, *real);
  }
  if (const auto* text = std::get_if<std::string>(&value))
    return bind_text(statement, place, *text);
  if (const auto* text = std::get_if<SharedText>(&value))
    return bind_text(statement, place, **text);
  return sqlite3_bind_null(statement, place);
}

// Where the system's own error says more than SQLite's code: the file that the log's index
// lies in cannot grow, for one, is reported as an I/O error.
int refined(int code, sqlite3* connection) {
  if ((code & 0xff) != SQLITE_IOERR && (code & 0xff) != SQLITE_CANTOPEN) return code;
  switch (sqlite3_system_errno(connection)) {
    case ENOSPC:
    case EDQUOT:
      return SQLITE_FULL;
    case EROFS:
      return SQLITE_READONLY;
    default:
      return code;
  }
}

// Makes a statement ready for its next use, whichever way this one ended.
class Use {
 public:
  explicit Use(sqlite3_stmt* statement) : statement_(statement) {}
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  sqlite3_stmt* statement_;
};

}  // namespace

void SqliteDriver::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }
void SqliteDriver::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Result<std::unique_ptr<SqliteDriver>> SqliteDriver::open(std::string path, SqliteOptions options) {
  if (path.empty()) return start_failure("The ledger sqlite: names no file.");
  if (path != kInMemory) {
    if (auto made = make_file(path); !made) return std::unexpected(std::move(made.error()));
  }
  auto driver = connect(std::move(path), options);
  if (!driver) return driver;
  if (auto ready = (*driver)->set_up(); !ready) return std::unexpected(std::move(ready.error()));
  return driver;
}

Result<std::unique_ptr<SqliteDriver>> SqliteDriver::open_to_read(std::string path,
                                                                 SqliteOptions options) {
  struct stat status{};
  if (path.empty()) return start_failure("The ledger sqlite: names no file.");
  if (stat(path.c_str(), &status) != 0) {
    return start_failure(
        fmt::format("The ledger {} cannot be opened: {}.", path, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return start_failure(fmt::format("The ledger {} is not a plain file.", path));
  }
  auto driver = connect(std::move(path), options);
  if (!driver) return driver;
  auto ready = (*driver)->set_up_to_read();
  if (!ready) return std::unexpected(std::move(ready.error()));
  return driver;
}

// Also to read: the log and its index, which every connection to such a file shares, may have
// to be made, and the last one to close tidies them away. Without the right to write SQLite
// opens it for reading alone.
Result<std::unique_ptr<SqliteDriver>> SqliteDriver::connect(std::string path,
                                                            SqliteOptions options) {
  // SQLite would take a lock at each allocation, to count its memory: nothing here asks for that.
  [[maybe_unused]] static const int kUncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Connection connection(opened);
  if (code != SQLITE_OK)
    return sqlite_start_failure(refined(code, opened), sqlite3_errmsg(opened), path);
  return std::unique_ptr<SqliteDriver>(
      new SqliteDriver(std::move(path), options, std::move(connection)));
}

SqliteDriver::SqliteDriver(std::string path, SqliteOptions options, Connection connection)
    : path_(std::move(path)), options_(options), connection_(std::move(connection)) {
  sqlite3_wal_hook(
      connection_.get(),
      [](void* self, sqlite3*, const char*, int pages) {
        auto* const driver = static_cast<SqliteDriver*>(self);
        driver->wal_pages_ = pages;
        driver->changes_->note_committed();
        return SQLITE_OK;
      },
      this);
}

// The first value that it gives.
Result<SqlValue> SqliteDriver::set(const std::string& pragma) {
  SqlValue first;
  const int code = sqlite3_exec(
      connection_.get(), pragma.c_str(),
      [](void* value, int, char** columns, char**) {
        if (columns[0] != nullptr) *static_cast<SqlValue*>(value) = std::string(columns[0]);
        return 0;
      },
      &first, nullptr);
  if (code == SQLITE_OK) return first;
  return sqlite_start_failure(refined(code, connection_.get()), sqlite3_errmsg(connection_.get()),
                              path_);
}

Result<void> SqliteDriver::set_up() {
  sqlite3* connection = connection_.get();
  sqlite3_busy_timeout(connection, static_cast<int>(options_.lock_wait_max.count()));
  auto sized =
      set(fmt::format("PRAGMA cache_size = -{}; PRAGMA mmap_size = 0", options_.cache_kib_max));
  if (!sized) return std::unexpected(std::move(sized.error()));
  if (path_ == kInMemory) return {};
  if (sqlite3_db_readonly(connection, "main") != 0) {
    return sqlite_start_failure(SQLITE_READONLY, "opened for reading only", path_);
  }
  auto mode = set("PRAGMA journal_mode = WAL");
  if (!mode) return std::unexpected(std::move(mode.error()));
  if (*mode != SqlValue("wal")) {
    return start_failure(
        fmt::format("The ledger {} lies on a file system without shared memory between programs, "
                    "which SQLite's write-ahead log needs; put it on a local disk.",
                    path_));
  }
  const auto owner = set("PRAGMA application_id");
  if (!owner) return std::unexpected(owner.error());
  if (*owner != SqlValue("0") && *owner != SqlValue(std::to_string(kApplicationId))) {
    return start_failure(fmt::format("The ledger {} is the database of another program.", path_));
  }
  auto taken =
      set(fmt::format("PRAGMA synchronous = FULL; PRAGMA application_id = {}", kApplicationId));
  if (!taken) return std::unexpected(std::move(taken.error()));
  watch_commits();
  return {};
}

// All programs that have the file open share the index of its log in memory. The header of that
// index counts commits (https://sqlite.org/walformat.html, 2.1: iChange). The count is read through
// the connection's own mapping: a second descriptor of the file would drop SQLite's locks when it
// is closed.
void SqliteDriver::watch_commits() {
  constexpr int kIndexBytes = 32 * 1024;
  constexpr std::size_t kVersionField = 0;
  constexpr std::size_t kCountField = 2;
  constexpr std::uint32_t kKnownVersion = 3'007'000;
  sqlite3_file* file = nullptr;
  void volatile* index = nullptr;
  if (sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_FILE_POINTER,
                           static_cast<void*>(&file)) != SQLITE_OK ||
      file == nullptr || file->pMethods == nullptr || file->pMethods->iVersion < 2 ||
      file->pMethods->xShmMap(file, 0, kIndexBytes, 0, &index) != SQLITE_OK || index == nullptr) {
    return;  // without it rows are read
  }
  auto* const fields = static_cast<std::uint32_t volatile*>(index);
  if (fields[kVersionField] != kKnownVersion) return;
  changes_->begin([fields] { return __atomic_load_n(fields + kCountField, __ATOMIC_ACQUIRE); });
}

Result<void> SqliteDriver::set_up_to_read() {
  sqlite3_busy_timeout(connection_.get(), static_cast<int>(options_.lock_wait_max.count()));
  auto sized =
      set(fmt::format("PRAGMA cache_size = -{}; PRAGMA mmap_size = 0; "
                      "PRAGMA query_only = ON",
                      options_.cache_kib_max));
  if (!sized) return std::unexpected(std::move(sized.error()));
  const auto owner = set("PRAGMA application_id");
  if (!owner) return std::unexpected(owner.error());
  if (*owner == SqlValue(std::to_string(kApplicationId))) return {};
  return start_failure(fmt::format("{} is not a ledger of clawdforge.", path_));
}

Result<SqliteDriver::Prepared*> SqliteDriver::prepare(std::string_view text) {
  if (const auto found = prepared_.find(text); found != prepared_.end()) return &found->second;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), text.data(), static_cast<int>(text.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  Prepared prepared{std::unique_ptr<sqlite3_stmt, Finalize>(statement), {}};
  if (code != SQLITE_OK) return failure(code, text);
  const int count = sqlite3_bind_parameter_count(statement);
  for (int number = 1; number <= count; ++number) {
    const std::string name = fmt::format("${}", number);
    prepared.places.push_back(sqlite3_bind_parameter_index(statement, name.c_str()));
  }
  return &prepared_.emplace(text, std::move(prepared)).first->second;
}

Result<SqlResult> SqliteDriver::execute(std::string_view text, std::span<const SqlValue> params) {
  auto prepared = prepare(text);
  if (!prepared) return std::unexpected(std::move(prepared.error()));
  sqlite3_stmt* statement = (*prepared)->statement.get();
  const std::vector<int>& places = (*prepared)->places;
  if (places.size() != params.size()) return failure(SQLITE_RANGE, text);

  const Use use(statement);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const int code = bind(statement, places[i], params[i]);
    if (code != SQLITE_OK) return failure(code, text);
  }
  SqlResult result;
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
    SqlRow& row = result.rows.emplace_back();
    const int columns = sqlite3_column_count(statement);
    row.reserve(static_cast<std::size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      row.push_back(column_value(statement, column));
    }
  }
  if (code != SQLITE_DONE) return failure(code, text);
  if (sqlite3_stmt_readonly(statement) == 0) result.changed = sqlite3_changes64(connection_.get());
  return result;
}

Result<void> SqliteDriver::run_script(std::string_view script) {
  const int code =
      sqlite3_exec(connection_.get(), std::string(script).c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code, "a migration");
  return {};
}

Result<void> SqliteDriver::begin(Access access) {
  rollback();
  if (auto placed = check_place(); !placed) return placed;
  // A write takes the lock now: SQLite cannot wait for it later without risking that what
  // was read in between is stale.
  auto begun = run(access == Access::write ? "BEGIN IMMEDIATE" : "BEGIN");
  if (begun && access == Access::write) changes_->note_begun();
  return begun;
}

Result<void> SqliteDriver::commit() {
  if (auto committed = run("COMMIT"); !committed) return committed;
  return check_place();
}

void SqliteDriver::rollback() {
  if (sqlite3_get_autocommit(connection_.get()) != 0) return;
  // A failure is not reported here: begin() tries again, and reports it if it lasts.
  sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<std::int64_t> SqliteDriver::change_mark() {
  constexpr std::string_view kDataVersion = "PRAGMA data_version";
  auto result = execute(kDataVersion);
  if (!result) return std::unexpected(std::move(result.error()));
  if (result->rows.empty() || !std::holds_alternative<std::int64_t>(result->rows[0][0])) {
    return failure(SQLITE_MISMATCH, kDataVersion);
  }
  return std::get<std::int64_t>(result->rows[0][0]);
}

Result<std::vector<std::string>> SqliteDriver::damage(int count_max) {
  auto result = execute(fmt::format("PRAGMA integrity_check({})", count_max));
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<std::string> lines;
  for (SqlRow& row : result->rows) {
    auto* line = row.empty() ? nullptr : std::get_if<std::string>(&row[0]);
    if (line != nullptr && *line != "ok") lines.push_back(std::move(*line));
  }
  return lines;
}

Result<void> SqliteDriver::tidy(Moment moment) {
  if (path_ == kInMemory) return {};
  int mode = SQLITE_CHECKPOINT_PASSIVE;
  if (moment == Moment::closing) {
    sqlite3_busy_timeout(connection_.get(), kClosingWaitMillisecondsMax);
    mode = SQLITE_CHECKPOINT_TRUNCATE;
  } else {
    const int pages_max =
        moment == Moment::idle ? options_.wal_pages_idle_max : options_.wal_pages_max;
    if (wal_pages_ < wal_pages_copied_) wal_pages_copied_ = 0;  // the log has started over
    if (wal_pages_ - wal_pages_copied_ < pages_max) return {};
    wal_pages_copied_ = wal_pages_;
  }
  if (has_moved()) return {};
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, mode, nullptr, nullptr);
  // SQLITE_BUSY: another program still reads the log. The next checkpoint will copy the rest.
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) return failure(code, "a checkpoint");
  return {};
}

Result<void> SqliteDriver::run(const char* text) {
  auto result = execute(text);
  if (!result) return std::unexpected(std::move(result.error()));
  return {};
}

Result<void> SqliteDriver::check_place() const {
  if (!has_moved()) return {};
  return ledger_unavailable(
      fmt::format("{} was moved, deleted or replaced while it was in use; put it back or "
                  "restart",
                  path_));
}

bool SqliteDriver::has_moved() const {
  if (path_ == kInMemory) return false;
  int moved = 0;
  const int code = sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

std::unexpected<Failure> SqliteDriver::failure(int code, std::string_view during) const {
  // The connection's own message is about the last call, which a code of ours is not.
  const bool ours = sqlite3_extended_errcode(connection_.get()) != code;
  return sqlite_failure(ours ? code : refined(code, connection_.get()),
                        ours ? sqlite3_errstr(code) : sqlite3_errmsg(connection_.get()), during);
}

}  // namespace clawdforge
