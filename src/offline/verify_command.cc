#include "offline/verify_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "base/exit_codes.h"
#include "config/effective_config.h"
#include "ledger/sqlite/sqlite_driver.h"
#include "offline/ledger_file.h"
#include "offline/verify.h"
#include "offline/verify_files.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

constexpr int kExitFindings = 1;
constexpr int kDamageLinesMax = 5;

constexpr Check kDamage{"ledger-damaged",
                        "SQLite finds the file damaged; nothing else was looked at"};

int print_verify_help() {
  std::puts(
      "clawdforge verify [FILE] [--config FILE] [--data-dir DIR] [--ledger sqlite:PATH]\n\n"
      "Checks what the ledger promises, beside a running gateway or without one, and the files\n"
      "of the data directory with it; with FILE, a copy of a ledger alone. Changes nothing.\n"
      "Prints a line for each finding. Exit code: 0 no finding, 1 findings, 2 wrong usage,\n"
      "5 the ledger could not be read.");
  return 0;
}

bool is_process_there(std::int64_t pid) {
  std::error_code error;
  return pid > 0 && std::filesystem::exists(fmt::format("/proc/{}", pid), error);
}

// The lives of the gateway that may have work under way. Of a running gateway that is the one
// whose process is there: the times of rows tell too little, for two lives may begin within
// one second, and clocks are set back. Of a copy it is the newest that had not ended.
std::set<std::string> owners_among(const std::vector<InstanceRow>& instances, bool is_copy) {
  std::set<std::string> owners;
  for (const InstanceRow& instance : instances) {
    if (!is_copy && is_process_there(instance.pid)) owners.insert(instance.id);
  }
  if (!owners.empty() || instances.empty()) return owners;
  // Also where the gateway's processes cannot be seen from here.
  const std::int64_t newest = std::ranges::max(instances, {}, &InstanceRow::started_at).started_at;
  for (const InstanceRow& instance : instances) {
    if (instance.started_at != newest || (is_copy && instance.has_ended)) continue;
    owners.insert(instance.id);
  }
  return owners;
}

struct Asked {
  std::string ledger;    // a path
  std::string data_dir;  // empty: a copy alone
};

// The file of a database that lies in one. False: it is damaged, and its rows say nothing.
Result<bool> verify_file(SqliteDriver& driver, Findings& findings) {
  findings.begin(kDamage);
  const auto damage = driver.damage(kDamageLinesMax);
  if (!damage) return std::unexpected(damage.error());
  for (const std::string& line : *damage) findings.note(kDamage, line);
  return damage->empty();
}

// In the transaction that the caller has begun, on any database.
Result<void> verify_all(SqlDriver& driver, const Asked& asked, bool is_running,
                        Findings& findings) {
  const bool is_copy = asked.data_dir.empty();
  if (auto known = check_schema(driver, asked.ledger); !known) return known;
  // The gateway may have started since the first look, and the state read here be its own.
  is_running = is_running || (!is_copy && is_data_dir_in_use(asked.data_dir));
  const auto instances = select_instances(driver);
  if (!instances) return std::unexpected(instances.error());
  std::set<std::string> owners;
  if (is_copy || is_running) owners = owners_among(*instances, is_copy);
  if (auto done = verify_rows(driver, owners, findings); !done) return done;
  if (auto done = verify_journals(driver, findings); !done) return done;
  driver.rollback();
  if (is_copy) return {};
  return verify_files(driver, asked.data_dir, is_running, SystemClock(), findings);
}

Result<void> verify_ledger(SqliteDriver& driver, const Asked& asked, Findings& findings) {
  const bool is_running = !asked.data_dir.empty() && is_data_dir_in_use(asked.data_dir);
  if (auto begun = driver.begin(Access::read); !begun) return begun;
  const auto is_whole = verify_file(driver, findings);
  if (!is_whole) return std::unexpected(is_whole.error());
  if (!*is_whole) return {};
  return verify_all(driver, asked, is_running, findings);
}

int print(const Findings& findings) {
  for (const Finding& finding : findings.all()) fmt::print("{}\n", line_of(finding));
  fmt::print("verify: {} checks, {} findings\n", findings.checks(), findings.all().size());
  return findings.all().empty() ? 0 : kExitFindings;
}

// The copy that is named, or the ledger of the configuration.
Result<Asked> verify_asked(const std::vector<std::string>& arguments) {
  auto split = split_arguments(arguments);
  if (!split) return std::unexpected(split.error());
  const std::optional<std::string>& file = split->file;
  if (file && !split->flags.empty()) {
    return fail(Errc::invalid, "usage",
                "verify takes a FILE, or the flags that say where the gateway's ledger is.");
  }
  if (file) return Asked{*file, ""};
  auto config = effective_config(std::move(split->flags));
  if (!config) return std::unexpected(config.error());
  auto path = sqlite_path(config->ledger);
  if (!path) return std::unexpected(path.error());
  return Asked{std::move(*path), config->data_dir};
}

}  // namespace

int verify(std::vector<std::string> arguments) {
  if (wants_help(arguments)) return print_verify_help();
  const auto asked = verify_asked(arguments);
  if (!asked) return refuse(kExitUsage, asked.error());
  auto driver = SqliteDriver::open_to_read(asked->ledger, {});
  if (!driver) return refuse(kExitFailed, driver.error());
  Findings findings;
  auto done = verify_ledger(**driver, *asked, findings);
  if (done) return print(findings);
  Failure error = std::move(done.error());
  if (!error.detail.empty()) {
    error.message = fmt::format("The ledger {} cannot be read: {}.", asked->ledger, error.detail);
  }
  return refuse(kExitFailed, error);
}

}  // namespace clawdforge
