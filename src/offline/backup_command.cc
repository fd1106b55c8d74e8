#include "offline/backup_command.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "config/effective/effective_config.h"
#include "json/json_members.h"
#include "ledger/sqlite/sqlite_driver.h"
#include "offline/backup_note.h"
#include "offline/ledger_file.h"
#include "storage/disk/new_file.h"

namespace clawdforge {
namespace {

// What the copy asks between its steps. A signal's handler may touch nothing else.
volatile std::sig_atomic_t stop_signal = 0;

void listen_for_signals() {
  struct sigaction action{};
  action.sa_handler = [](int number) { stop_signal = number; };
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(number, &action, nullptr);
  // A pipe without a reader and a file that may not grow become errors of write() instead of
  // ending the process, which then removes the half-written copy.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

struct Copied {
  LedgerCopy rows;
  std::int64_t bytes = 0;
};

Result<Copied> copy(const std::string& ledger, const std::string& file) {
  auto source = SqliteDriver::open_to_read(ledger, {});
  if (!source) return std::unexpected(std::move(source.error()));
  auto target = NewFile::make(file);
  if (!target) return std::unexpected(std::move(target.error()));
  const auto rows = (*source)->copy_into(target->path(), [] { return stop_signal != 0; });
  if (!rows) return std::unexpected(rows.error());
  const auto bytes = target->keep();
  if (!bytes) return std::unexpected(bytes.error());
  return Copied{*rows, *bytes};
}

int refuse_copy(const std::string& ledger, Failure error) {
  if (error.cause == Cause::cancelled) {
    refuse(0, error);
    return 128 + stop_signal;
  }
  if (error.kind == Errc::conflict) return refuse(kExitRefused, error);
  if (error.cause == Cause::ledger_away && !error.detail.empty()) {
    error.message = fmt::format("The ledger {} cannot be read: {}.", ledger, error.detail);
  }
  return refuse(kExitFailed, error);
}

void print(const std::string& file, const Copied& copied) {
  fmt::print("{}: {} bytes, {} apps, {} sessions, {} runs\n", file, copied.bytes, copied.rows.apps,
             copied.rows.sessions, copied.rows.runs);
}

void print_json(const std::string& file, const Copied& copied) {
  std::string out = "{";
  append_member(out, "file", file);
  append_member(out, "bytes", copied.bytes);
  append_member(out, "apps", copied.rows.apps);
  append_member(out, "sessions", copied.rows.sessions);
  append_member(out, "runs", copied.rows.runs);
  fmt::print("{}}}\n", out);
}

struct BackupOrder {
  std::string file;
  std::string ledger;  // a path
  std::string data_dir;
};

Result<BackupOrder> what_is_asked(std::vector<std::string> arguments) {
  auto split = split_arguments(arguments);
  if (!split) return std::unexpected(split.error());
  const std::optional<std::string>& file = split->file;
  if (!file) {
    return fail(Errc::invalid, "usage", "backup needs a FILE, like clawdforge backup FILE.");
  }
  auto config = effective_config(std::move(split->flags));
  if (!config) return std::unexpected(config.error());
  auto path = sqlite_path(config->ledger);
  if (!path) return std::unexpected(path.error());
  return BackupOrder{*file, *path, config->data_dir};
}

}  // namespace

int backup(std::vector<std::string> arguments) {
  const bool as_json = take_flag(arguments, "--json");
  const auto asked = what_is_asked(std::move(arguments));
  if (!asked) return refuse(kExitUsage, asked.error());
  const auto& [file, ledger, data_dir] = *asked;
  listen_for_signals();
  const auto copied = copy(ledger, file);
  if (!copied) return refuse_copy(ledger, copied.error());
  note_backup(data_dir, unix_seconds(SystemClock().now()));
  as_json ? print_json(file, *copied) : print(file, *copied);
  return 0;
}

}  // namespace clawdforge
