#include "offline/verify_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ledger/sqlite/sqlite_driver.h"
#include "offline/verify.h"
#include "offline/verify_files.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

constexpr int kDamageLinesMax = 5;

constexpr Check kDamage{"ledger-damaged",
                        "SQLite finds the file damaged; nothing else was looked at"};

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

// The file of a database that lies in one. False: it is damaged, and its rows say nothing.
Result<bool> verify_file(SqliteDriver& driver, Findings& findings) {
  findings.begin(kDamage);
  const auto damage = driver.damage(kDamageLinesMax);
  if (!damage) return std::unexpected(damage.error());
  for (const std::string& line : *damage) findings.note(kDamage, line);
  return damage->empty();
}

// In the transaction that the caller has begun, on any database.
Result<void> verify_all(SqlDriver& driver, const VerifyOrder& order, bool is_running,
                        Findings& findings) {
  const bool is_copy = order.data_dir.empty();
  if (auto known = check_schema(driver, order.ledger); !known) return known;
  // The gateway may have started since the first look, and the state read here be its own.
  is_running = is_running || (!is_copy && is_data_dir_in_use(order.data_dir));
  const auto instances = select_instances(driver);
  if (!instances) return std::unexpected(instances.error());
  std::set<std::string> owners;
  if (is_copy || is_running) owners = owners_among(*instances, is_copy);
  if (auto done = verify_rows(driver, owners, findings); !done) return done;
  if (!order.is_brief) {
    if (auto done = verify_journals(driver, findings); !done) return done;
  }
  driver.rollback();
  if (is_copy) return {};
  return verify_files(driver, order.data_dir, is_running, SystemClock(), findings);
}

Result<void> verify_ledger(SqliteDriver& driver, const VerifyOrder& order, Findings& findings) {
  const bool is_running = !order.data_dir.empty() && is_data_dir_in_use(order.data_dir);
  if (auto begun = driver.begin(Access::read); !begun) return begun;
  if (!order.is_brief) {
    const auto is_whole = verify_file(driver, findings);
    if (!is_whole) return std::unexpected(is_whole.error());
    if (!*is_whole) return {};
  }
  return verify_all(driver, order, is_running, findings);
}

}  // namespace

Result<Findings> run_verify(const VerifyOrder& order) {
  auto driver = SqliteDriver::open_to_read(order.ledger, {});
  if (!driver) return std::unexpected(driver.error());
  Findings findings;
  auto done = verify_ledger(**driver, order, findings);
  if (done) return findings;
  Failure error = std::move(done.error());
  if (!error.detail.empty()) {
    error.message = fmt::format("The ledger {} cannot be read: {}.", order.ledger, error.detail);
  }
  return std::unexpected(std::move(error));
}

}  // namespace clawdforge
