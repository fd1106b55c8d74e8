#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/clock.h"
#include "base/version.h"
#include "doctor/checks.h"
#include "ledger/sqlite/sqlite_driver.h"
#include "offline/backup_note.h"
#include "offline/ledger_file.h"
#include "offline/verify_run.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBriefLedgerBytesMax = 1'073'741'824;  // a larger one is not read whole
constexpr std::int64_t kBackupAgeSecsMax = 7 * 86'400;
constexpr std::int64_t kClockBehindSecsMax = 60;
constexpr std::size_t kTokenFilesMax = 256;  // profiles that are looked at

std::string user_name(uid_t uid) {
  const struct passwd* const found = ::getpwuid(uid);
  return found == nullptr ? std::to_string(uid) : std::string(found->pw_name);
}

std::string size_words(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.1f} {}", amount, kUnits.at(unit));
}

void check_space(const Config& config, const std::string& folder, Diagnosis& diagnosis) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return;
  const auto free =
      static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  const std::string said = fmt::format("{} free for {}", size_words(free), folder);
  if (free < config.free_disk_bytes_min) {
    diagnosis.bad("disk-space", said + ": uploads are refused", "df -h " + folder);
  } else if (free < 4 * config.free_disk_bytes_min) {
    diagnosis.warn("disk-space", said, "df -h " + folder);
  } else {
    diagnosis.good("disk-space", said);
  }
}

// False: there is none yet, so nothing of it can be looked at.
bool check_directory(const Config& config, Diagnosis& diagnosis) {
  const std::string& path = config.data_dir;
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    diagnosis.good("data-dir", path + " is not there yet; the first start makes it");
    return false;
  }
  if (!S_ISDIR(found.st_mode)) {
    diagnosis.bad("data-dir", path + " is not a directory", "mv " + path + " " + path + ".old");
    return false;
  }
  if (found.st_uid != ::geteuid()) {
    const std::string owner = user_name(found.st_uid);
    diagnosis.warn(
        "data-dir",
        fmt::format("{} belongs to {}, and this is {}", path, owner, user_name(::geteuid())),
        fmt::format("sudo -u {} clawdforge doctor --data-dir {}", owner, path));
  } else if ((found.st_mode & 077) != 0) {
    diagnosis.warn("data-dir", path + " can be looked into by other users", "chmod 700 " + path);
  } else {
    diagnosis.good("data-dir", fmt::format("{}, owned by {}, mode {:o}", path,
                                           user_name(found.st_uid), found.st_mode & 07777));
  }
  return true;
}

// Gives whether it is there and only its owner can read it.
bool check_token_file(const std::string& path, Diagnosis& diagnosis) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return false;
  const auto mode = found.st_mode & 07777;
  if ((mode & 077) != 0) {
    diagnosis.bad("token-files", fmt::format("{} has mode {:o}: others may read it", path, mode),
                  "chmod 600 " + path);
    return false;
  }
  return true;
}

void check_token_files(const Config& config, const Variables& environment, Diagnosis& diagnosis) {
  std::vector<std::string> files = {config.data_dir + "/admin-token"};
  const auto set = environment.find("XDG_CONFIG_HOME");
  const auto home = environment.find("HOME");
  if (set != environment.end() || home != environment.end()) {
    const std::string folder =
        (set != environment.end() ? set->second : home->second + "/.config") + "/clawdforge";
    files.push_back(folder + "/cf.env");
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder + "/profiles", error)) {
      if (files.size() >= kTokenFilesMax) break;
      files.push_back(entry.path().string());
    }
  }
  const auto closed = std::ranges::count_if(
      files, [&](const std::string& file) { return check_token_file(file, diagnosis); });
  diagnosis.good("token-files", fmt::format("{} that only their owner can read", closed));
}

std::int64_t seconds_now() { return unix_seconds(SystemClock().now()); }

void check_backup(const std::string& data_dir, Diagnosis& diagnosis) {
  const std::string remedy = "clawdforge backup ~/clawdforge-$(date +%F).db --data-dir " + data_dir;
  const auto at = last_backup(data_dir);
  if (!at) {
    diagnosis.warn("backup", "none was made yet", remedy);
    return;
  }
  const std::int64_t age = seconds_now() - *at;
  const std::string said = fmt::format("the last one is {} days old", age / 86'400);
  if (age > kBackupAgeSecsMax) {
    diagnosis.warn("backup", said, remedy);
  } else {
    diagnosis.good("backup", said);
  }
}

std::optional<SqlValue> first_value(SqlDriver& driver, std::string_view statement) {
  const auto found = driver.execute(statement);
  if (!found || found->rows.empty() || found->rows.front().empty()) return std::nullopt;
  return found->rows.front().front();
}

void check_clock(SqlDriver& driver, Diagnosis& diagnosis) {
  constexpr std::string_view kNewest =
      "SELECT MAX(at) FROM (SELECT MAX(seen_at) AS at FROM instances UNION ALL "
      "SELECT MAX(started_at) FROM runs UNION ALL SELECT MAX(created_at) FROM sessions UNION ALL "
      "SELECT MAX(last_used_at) FROM tokens) AS newest";
  const auto value = first_value(driver, kNewest);
  const auto* const newest = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (newest == nullptr) return;
  const std::int64_t behind = *newest - seconds_now();
  if (behind > kClockBehindSecsMax) {
    diagnosis.bad("clock", fmt::format("it is {} s behind the newest row of the ledger", behind),
                  "timedatectl status   # then: sudo timedatectl set-ntp true");
  } else {
    diagnosis.good("clock", "not behind the newest row of the ledger");
  }
}

// Beside a running gateway: whether that is this program.
void check_running_version(SqlDriver& driver, const Config& config, Diagnosis& diagnosis) {
  if (!is_data_dir_in_use(config.data_dir)) return;
  const auto value =
      first_value(driver, "SELECT version FROM instances ORDER BY started_at DESC LIMIT 1");
  const auto* const version = value ? std::get_if<std::string>(&*value) : nullptr;
  if (version == nullptr) return;
  if (*version == kVersion) {
    diagnosis.good("gateway-version", *version);
  } else {
    diagnosis.warn("gateway-version",
                   fmt::format("the gateway that runs is {}, this program {}", *version, kVersion),
                   "systemctl restart clawdforge   # or end it and start it again");
  }
}

void check_rows(const std::string& ledger, const Config& config, std::int64_t bytes,
                Diagnosis& diagnosis) {
  const bool is_brief = bytes > kBriefLedgerBytesMax;
  const auto findings = run_verify({ledger, config.data_dir, is_brief});
  const std::string place = fmt::format("{}, {}", ledger, size_words(bytes));
  if (!findings) {
    diagnosis.bad("ledger", findings.error().message,
                  "clawdforge verify --data-dir " + config.data_dir);
  } else if (!findings->all().empty()) {
    diagnosis.bad("ledger",
                  fmt::format("{}: {} findings, the first is {}", place, findings->all().size(),
                              findings->all().front().check.name),
                  "clawdforge verify --data-dir " + config.data_dir);
  } else {
    diagnosis.good("ledger", fmt::format("{}, {} checks found nothing{}", place, findings->checks(),
                                         is_brief ? "; clawdforge verify reads all of it" : ""));
  }
}

void check_ledger(const Config& config, Diagnosis& diagnosis) {
  const auto ledger = sqlite_path(config.ledger);
  if (!ledger) {
    diagnosis.bad("ledger", ledger.error().message, "clawdforge config");
    return;
  }
  std::error_code error;
  const auto bytes = fs::file_size(*ledger, error);
  if (error) {
    diagnosis.good("ledger", *ledger + " is not there yet; the first start makes it");
    return;
  }
  check_rows(*ledger, config, static_cast<std::int64_t>(bytes), diagnosis);
  check_backup(config.data_dir, diagnosis);
  auto driver = SqliteDriver::open_to_read(*ledger, {});
  if (!driver) return;  // said above
  check_clock(**driver, diagnosis);
  check_running_version(**driver, config, diagnosis);
}

}  // namespace

void check_data(const Config& config, const Variables& environment, Diagnosis& diagnosis) {
  const bool is_there = check_directory(config, diagnosis);
  if (is_there) check_space(config, config.data_dir, diagnosis);
  check_token_files(config, environment, diagnosis);
  if (is_there) check_ledger(config, diagnosis);
}

}  // namespace clawdforge
