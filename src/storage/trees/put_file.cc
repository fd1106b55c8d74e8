#include "storage/trees/put_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPutting = "putting a file into a session's directory";
constexpr std::size_t kPutNameBytesMax = 255;

std::unexpected<Failure> path_taken() {
  return fail(Errc::conflict, "path_taken",
              "Something else than a file, or than a directory on the way to it, is at this path.");
}

std::unexpected<Failure> bad_path(std::string message) {
  auto wrong = fail(Errc::invalid, "validation_failed", "The path cannot be used: it " + message);
  wrong.error().fields = {{"path", std::move(message)}};
  return wrong;
}

// Below `in`, made where it is not there.
Result<Descriptor> enter_or_make(int in, const std::string& name) {
  for (const bool is_made : {false, true}) {
    Descriptor found(::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (found.is_open()) return found;
    if (errno == ELOOP || errno == ENOTDIR) return path_taken();
    if (errno != ENOENT || is_made) return file_failure(errno, kPutting);
    if (::mkdirat(in, name.c_str(), 0755) != 0 && errno != EEXIST) {
      return file_failure(errno, kPutting);
    }
  }
  return file_failure(ENOENT, kPutting);
}

}  // namespace

Result<void> check_put_path(const std::string& path) {
  if (path.empty() || path.size() > kPutPathBytesMax) {
    return bad_path(fmt::format("must have 1 to {} bytes", kPutPathBytesMax));
  }
  std::size_t depth = 0;
  for (std::string_view rest = path;; ++depth) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.size() > kPutNameBytesMax ||
        part.contains('\0')) {
      return bad_path("must be relative, and have no part that is empty, . or ..");
    }
    if (equals_ignoring_case(part, ".git")) return bad_path("must not have a part .git");
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (depth >= kPutDepthMax)
    return bad_path(fmt::format("must have at most {} parts", kPutDepthMax));
  return {};
}

PutFile::PutFile(std::string root, std::string path)
    : root_(std::move(root)), path_(std::move(path)) {}

PutFile::~PutFile() {
  if (!temporary_.empty()) ::unlinkat(directory_.number(), temporary_.c_str(), 0);
}

Result<void> PutFile::begin() {
  directory_ = Descriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_.is_open()) return file_failure(errno, kPutting);
  std::string_view rest = path_;
  for (std::size_t end = rest.find('/'); end != rest.npos; end = rest.find('/')) {
    auto below = enter_or_make(directory_.number(), std::string(rest.substr(0, end)));
    if (!below) return std::unexpected(std::move(below.error()));
    directory_ = std::move(*below);
    rest.remove_prefix(end + 1);
  }
  name_ = rest;
  struct stat found{};
  if (::fstatat(directory_.number(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(found.st_mode)) {
    return path_taken();
  }
  std::uint64_t random = 0;
  fill_random(&random, sizeof(random));
  const std::string temporary = fmt::format(".clawdforge-put-{:016x}", random);
  file_ = Descriptor(::openat(directory_.number(), temporary.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file_.is_open()) return file_failure(errno, kPutting);
  temporary_ = temporary;
  return {};
}

Result<void> PutFile::append(const std::string& bytes) {
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t written = ::write(file_.number(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure(errno, kPutting);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<bool> PutFile::keep() {
  if (::fsync(file_.number()) != 0) return file_failure(errno, kPutting);
  struct stat found{};
  const bool was_there =
      ::fstatat(directory_.number(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (was_there && !S_ISREG(found.st_mode)) return path_taken();
  if (::renameat(directory_.number(), temporary_.c_str(), directory_.number(), name_.c_str()) !=
      0) {
    return file_failure(errno, kPutting);
  }
  temporary_.clear();
  ::fsync(directory_.number());
  return was_there;
}

}  // namespace clawdforge
