#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "doctor/checks.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUnitFilesMax = 4'096;  // in one directory of units
constexpr std::size_t kUnitFileBytesMax = 64 * 1024;

struct Unit {
  bool starts_gateway = false;
  bool has_user = false;
  bool has_admin_token = false;
};

// Blanks around the equals sign are allowed there.
std::string_view value_after(std::string_view line, std::string_view key) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || !line.substr(begin).starts_with(key)) return {};
  line.remove_prefix(begin + key.size());
  const auto equals = line.find_first_not_of(" \t");
  if (equals == std::string_view::npos || line[equals] != '=') return {};
  return line.substr(equals + 1);
}

Unit read_unit(const fs::path& file) {
  Unit unit;
  std::ifstream in(file);
  std::size_t bytes = 0;
  for (std::string line; bytes < kUnitFileBytesMax && std::getline(in, line);) {
    bytes += line.size() + 1;
    unit.starts_gateway =
        unit.starts_gateway ||
        (value_after(line, "ExecStart").contains("clawdforge") && line.contains(" serve"));
    unit.has_user = unit.has_user || !value_after(line, "User").empty();
    unit.has_admin_token = unit.has_admin_token ||
                           value_after(line, "Environment").contains("CLAWDFORGE_ADMIN_TOKEN=");
  }
  return unit;
}

// With the files of its folder NAME.service.d, which say what the unit itself does not.
Unit read_with_additions(const fs::path& file) {
  Unit unit = read_unit(file);
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(file.string() + ".d", error)) {
    if (++count > kUnitFilesMax) break;
    const Unit addition = read_unit(entry.path());
    unit.has_user = unit.has_user || addition.has_user;
    unit.has_admin_token = unit.has_admin_token || addition.has_admin_token;
  }
  return unit;
}

void tell_unit(const fs::path& file, const Unit& unit, bool is_of_user, Diagnosis& diagnosis) {
  const std::string name = file.filename();
  const std::string edit =
      fmt::format("systemctl {}edit --full {}", is_of_user ? "--user " : "", name);
  if (!is_of_user && !unit.has_user) {
    diagnosis.warn("systemd", file.string() + " runs the gateway as root",
                   edit + "   # add User= with a user of its own");
  } else {
    diagnosis.good("systemd", file.string());
  }
  if (unit.has_admin_token) {
    diagnosis.bad("service-environment",
                  name + " has the admin token in its environment: every user can read that",
                  edit + "   # remove CLAWDFORGE_ADMIN_TOKEN, then replace the token");
  } else {
    diagnosis.good("service-environment", name + " does not hold the admin token");
  }
}

// How many units of it start a gateway.
int look_into(const fs::path& folder, bool is_of_user, Diagnosis& diagnosis) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (files.size() >= kUnitFilesMax) break;
    if (entry.path().extension() == ".service") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  int found = 0;
  for (const fs::path& file : files) {
    const Unit unit = read_with_additions(file);
    if (!unit.starts_gateway) continue;
    tell_unit(file, unit, is_of_user, diagnosis);
    ++found;
  }
  return found;
}

}  // namespace

void check_services(const Variables& environment, Diagnosis& diagnosis) {
  int found = 0;
  for (const char* folder :
       {"/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}) {
    found += look_into(folder, false, diagnosis);
  }
  found += look_into("/etc/systemd/user", true, diagnosis);
  const auto config = environment.find("XDG_CONFIG_HOME");
  const auto home = environment.find("HOME");
  if (config != environment.end()) {
    found += look_into(config->second + "/systemd/user", true, diagnosis);
  } else if (home != environment.end()) {
    found += look_into(home->second + "/.config/systemd/user", true, diagnosis);
  }
  if (found == 0) {
    diagnosis.good("systemd", "no unit starts a gateway; docs/operations.md has one to copy");
  }
}

}  // namespace clawdforge
