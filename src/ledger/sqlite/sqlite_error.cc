#include "ledger/sqlite/sqlite_error.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/refusals.h"

namespace clawdforge {
namespace {

// Empty where the database or its file is not the reason.
std::string_view reason_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return "another program holds its lock";
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "it is read-only";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "it is damaged";
    case SQLITE_IOERR:
      return "reading or writing failed";
    case SQLITE_CANTOPEN:
      return "it cannot be opened";
    case SQLITE_NOMEM:
      return "memory has run out";
    default:
      return {};
  }
}

}  // namespace

std::unexpected<Failure> sqlite_failure(int code, std::string_view text, std::string_view during) {
  const std::string_view reason = reason_of(code);
  if (reason.empty()) {
    return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
                fmt::format("ledger: {} ({}) during: {}", text, code, during));
  }
  return ledger_unavailable(fmt::format("{}: {} ({}) during: {}", reason, text, code, during));
}

std::unexpected<Failure> sqlite_start_failure(int code, std::string_view text,
                                              std::string_view path) {
  std::string message;
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      message = fmt::format(
          "The ledger {} is not a SQLite database or is damaged; restore it from a backup or move "
          "it away.",
          path);
      break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      message = fmt::format(
          "The ledger {} is read-only: this user needs to write the file and its directory.", path);
      break;
    case SQLITE_FULL:
      message = fmt::format("The ledger {} cannot be written: the disk is full.", path);
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      message = fmt::format(
          "The ledger {} is locked by another program; end that program or wait for it.", path);
      break;
    case SQLITE_CANTOPEN:
      message = fmt::format(
          "The ledger {} cannot be opened: it must be a plain file in a directory that this user "
          "may write.",
          path);
      break;
    case SQLITE_IOERR:
      message =
          fmt::format("The ledger {} cannot be read or written: the disk reports an error.", path);
      break;
    default:
      message = fmt::format("The ledger {} cannot be opened: {}.", path, text);
  }
  return fail(Errc::unavailable, "ledger_unavailable", std::move(message),
              fmt::format("{} ({})", text, code));
}

}  // namespace clawdforge
