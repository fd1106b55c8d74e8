#include "cli/core/env_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"

namespace clawdforge {
namespace {

constexpr std::size_t kEnvFileBytesMax = 64 * 1024;
constexpr std::size_t kProfileNameMax = 64;

std::string config_dir() {
  const char* const base = std::getenv("XDG_CONFIG_HOME");
  if (base != nullptr && *base == '/') return std::string(base) + "/clawdforge";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return std::string(home) + "/.config/clawdforge";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && text.front() == text.back() &&
                         (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

void read_line(std::string_view line, EnvFile& content) {
  line = trimmed(line);
  if (line.starts_with("export ")) line = trimmed(line.substr(7));
  const std::size_t equals = line.find('=');
  if (line.starts_with('#') || equals == line.npos) return;
  const std::string_view name = trimmed(line.substr(0, equals));
  std::string value(unquoted(trimmed(line.substr(equals + 1))));
  if (name == "CLAWDFORGE_URL") {
    content.url = std::move(value);
  } else if (name == "CLAWDFORGE_CA") {
    content.ca_file = std::move(value);
  } else if (name == "CLAWDFORGE_TOKEN") {
    content.token = Secret(std::move(value));
  } else if (name == "CLAWDFORGE_ADMIN_TOKEN") {
    content.admin_token = Secret(std::move(value));
  }
}

std::unexpected<Complaint> cannot(const std::string& path, std::string_view what) {
  return complain(kExitUsage,
                  fmt::format("{} cannot be {}: {}.", path, what, std::strerror(errno)));
}

std::string env_text(const EnvFile& content) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) text.append(name).append("=").append(value).append("\n");
  };
  add("CLAWDFORGE_URL", content.url);
  add("CLAWDFORGE_CA", content.ca_file);
  add("CLAWDFORGE_TOKEN", content.token.reveal());
  add("CLAWDFORGE_ADMIN_TOKEN", content.admin_token.reveal());
  return text;
}

}  // namespace

std::string env_file_path(const std::string& profile) {
  const std::string directory = config_dir();
  if (directory.empty()) return {};
  return directory + (profile.empty() ? "/cf.env" : "/profiles/" + profile + ".env");
}

bool is_profile_name(std::string_view name) {
  const auto is_good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kProfileNameMax && std::ranges::all_of(name, is_good);
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(config_dir() + "/profiles", error)) {
    const auto& path = entry.path();
    if (path.extension() == ".env" && is_profile_name(path.stem().string())) {
      names.push_back(path.stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

Asked<std::optional<EnvFile>> read_env_file(const std::string& path) {
  const Descriptor file(path.empty() ? -1
                                     : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (path.empty() || errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return cannot(path, "read");
  }
  struct stat found{};
  if (::fstat(file.number(), &found) != 0) return cannot(path, "read");
  const mode_t mode = found.st_mode & 07777U;
  if (!S_ISREG(found.st_mode) || (mode != 0600 && mode != 0400)) {
    return complain(kExitUsage, fmt::format("other users may read {}, which holds tokens; run "
                                            "chmod 600 {}.",
                                            path, path));
  }
  if (found.st_uid != ::geteuid()) {
    return complain(kExitUsage,
                    fmt::format("{} belongs to another user; remove it, or make it yours.", path));
  }
  std::string text(kEnvFileBytesMax + 1, '\0');
  const ssize_t bytes = ::read(file.number(), text.data(), text.size());
  if (bytes < 0) return cannot(path, "read");
  text.resize(static_cast<std::size_t>(bytes));
  if (text.size() > kEnvFileBytesMax) {
    return complain(kExitUsage, fmt::format("{} is larger than {} bytes; it has a few lines of "
                                            "NAME=VALUE.",
                                            path, kEnvFileBytesMax));
  }
  EnvFile content;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    read_line(std::string_view(text).substr(at, end - at), content);
    at = end + 1;
  }
  const Secret wiped(std::move(text));
  return content;
}

Asked<void> write_env_file(const std::string& path, const EnvFile& content) {
  if (path.empty()) {
    return complain(kExitUsage, "there is no home directory to store it in; set HOME.");
  }
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  ::chmod(directory.c_str(), 0700);
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const Descriptor file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return cannot(path, "written");
  std::string text = env_text(content);
  const bool is_written =
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.number()) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  const int reason = errno;
  const Secret wiped(std::move(text));
  if (is_written) return {};
  ::unlink(beside.c_str());
  errno = reason;
  return cannot(path, "written");
}

}  // namespace clawdforge
