#include "storage/disk/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/descriptor.h"

namespace clawdforge {
namespace {

constexpr std::size_t kSmallFileBytesMax = 64 * 1024;
constexpr std::chrono::seconds kDirLockWaitMax{1};
constexpr int kLockLookMilliseconds = 10;

std::unexpected<Failure> unusable(const std::string& path, const char* what) {
  return fail(Errc::unavailable, "data_dir",
              fmt::format("{} cannot be {}: {}.", path, what, std::strerror(errno)));
}

Result<void> make_directories(const std::string& path) {
  std::error_code error;
  const auto parent = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(parent, error);
  if (!error && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    error.assign(errno, std::generic_category());
  }
  struct stat found{};
  if (!error && ::stat(path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error) return {};
  return fail(Errc::unavailable, "data_dir",
              fmt::format("The data directory {} cannot be made: {}.", path, error.message()));
}

Result<std::string> read_small_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.number() < 0) {
    if (errno == ENOENT)
      return fail(Errc::not_found, "no_file", fmt::format("There is no {}.", path));
    return unusable(path, "read");
  }
  std::string text(kSmallFileBytesMax, '\0');
  const ssize_t size = ::read(file.number(), text.data(), text.size());
  if (size < 0) return unusable(path, "read");
  text.resize(static_cast<std::size_t>(size));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// Written beside, flushed, then renamed: a reader sees the old file or the new one.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const Descriptor file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (file.number() < 0) return unusable(path, "written");
  const bool written =
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.number()) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  if (!written) {
    const int reason = errno;
    ::unlink(beside.c_str());
    errno = reason;
    return unusable(path, "written");
  }
  const std::string directory = std::filesystem::path(path).parent_path();
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() < 0 || ::fsync(opened.number()) != 0) return unusable(path, "made durable");
  return {};
}

// A gateway that was killed while it started a child has left one that holds copies of all
// its descriptors until its exec, this lock and the listening socket among them. A
// gateway that is started right after it must not be refused for that.
bool take_lock(int descriptor) {
  const auto end = std::chrono::steady_clock::now() + kDirLockWaitMax;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= end) {
      errno = EWOULDBLOCK;
      return false;
    }
    ::poll(nullptr, 0, kLockLookMilliseconds);
  }
  return true;
}

std::string lock_path_in(const std::string& directory) { return directory + "/lock"; }
std::string token_path(const std::string& directory) { return directory + "/admin-token"; }
std::string port_path(const std::string& directory) { return directory + "/port"; }
std::string address_path(const std::string& directory) { return directory + "/address"; }
std::string socket_path(const std::string& directory) { return directory + "/admin.sock"; }

}  // namespace

Result<DataDir> DataDir::open(std::string path) {
  if (auto made = make_directories(path); !made) return std::unexpected(made.error());
  const std::string lock_path = lock_path_in(path);
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.number() < 0) return unusable(lock_path, "opened");
  if (!take_lock(lock.number())) {
    if (errno != EWOULDBLOCK) return unusable(lock_path, "locked");
    return fail(Errc::conflict, "data_dir_in_use",
                fmt::format("Another gateway is running on the data directory {}; stop it, or "
                            "give this one its own with --data-dir.",
                            path));
  }
  return DataDir(std::move(path), lock.release());
}

DataDir::DataDir(DataDir&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

DataDir::~DataDir() {
  if (lock_ >= 0) ::close(lock_);
}

bool DataDir::is_private() const {
  struct stat found{};
  return ::stat(path_.c_str(), &found) == 0 && (found.st_mode & 077) == 0;
}

std::string DataDir::admin_token_path() const { return token_path(path_); }

std::string DataDir::admin_socket_path() const { return socket_path(path_); }

bool DataDir::close_admin_token() const {
  const Descriptor file(::open(admin_token_path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat found{};
  if (!file.is_open() || ::fstat(file.number(), &found) != 0) return false;
  if ((found.st_mode & 077) == 0) return false;
  ::fchmod(file.number(), 0600);
  return true;
}

Result<Secret> DataDir::read_admin_token() const { return read_admin_token_in(path_); }

Result<void> DataDir::write_admin_token(const Secret& token) const {
  std::string text(token.reveal());
  text += '\n';
  auto written = replace_file(admin_token_path(), text, 0600);
  const Secret wiped(std::move(text));
  return written;
}

Result<void> DataDir::write_port(std::uint16_t port) const {
  return replace_file(port_path(path_), fmt::format("{}\n", port), 0644);
}

Result<void> DataDir::write_address(std::string_view url, std::string_view certificate) const {
  return replace_file(address_path(path_), fmt::format("{}\n{}", url, certificate), 0644);
}

void DataDir::remove_port_and_address() const {
  ::unlink(port_path(path_).c_str());
  ::unlink(address_path(path_).c_str());
}

bool is_data_dir_in_use(const std::string& data_dir) {
  const Descriptor lock(::open(lock_path_in(data_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock.number() >= 0 && ::flock(lock.number(), LOCK_SH | LOCK_NB) != 0;
}

std::string find_admin_socket_in(const std::string& data_dir) {
  std::string path = socket_path(data_dir);
  struct stat found{};
  const bool is_there = ::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
  return is_there ? path : std::string();
}

Result<Secret> read_admin_token_in(const std::string& data_dir) {
  auto text = read_small_file(token_path(data_dir));
  if (!text) return std::unexpected(text.error());
  return Secret(std::move(*text));
}

Result<WrittenAddress> read_address_in(const std::string& data_dir) {
  auto text = read_small_file(address_path(data_dir));
  if (!text) return std::unexpected(text.error());
  const std::size_t end = std::min(text->find('\n'), text->size());
  WrittenAddress written{text->substr(0, end), text->substr(std::min(end + 1, text->size()))};
  if (!written.certificate.empty()) written.certificate += '\n';
  return written;
}

}  // namespace clawdforge
