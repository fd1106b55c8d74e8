#include "storage/trees/tree_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPlainBlockBytes = 256 * 1024;
constexpr mode_t kModeBits = 0777;  // none that lends the rights of another user
constexpr mode_t kOwnBits = 0700;   // of a directory: so that it can be filled, and removed

std::unexpected<Failure> tree_too_large() {
  return fail(Errc::too_large, "workspace_too_large",
              "The workspace is larger, or deeper, than a copy may be.");
}

std::unexpected<Failure> copy_failure(int error_number) {
  return file_failure(error_number, "copying a workspace");
}

std::array<timespec, 2> times_of(const struct stat& found) {
  return {found.st_atim, found.st_mtim};
}

Result<std::size_t> copy_plain(int source, int target, std::size_t bytes_max) {
  std::string block(std::min(bytes_max, kPlainBlockBytes), '\0');
  ssize_t count = -1;
  do {
    count = ::read(source, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return copy_failure(errno);
  std::string_view left(block.data(), static_cast<std::size_t>(count));
  while (!left.empty()) {
    const ssize_t written = ::write(target, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return copy_failure(errno);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return static_cast<std::size_t>(count);
}

// How many bytes; zero: the end.
Result<std::size_t> copy_range(int source, int target, std::size_t bytes_max) {
  for (;;) {
    const ssize_t count = ::copy_file_range(source, nullptr, target, nullptr, bytes_max, 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    // The two lie on different file systems, or theirs cannot do this.
    if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ||
        errno == EPERM) {
      return copy_plain(source, target, bytes_max);
    }
    return copy_failure(errno);
  }
}

}  // namespace

TreeCopy::TreeCopy(std::string from, std::string into, std::string left_out)
    : from_(std::move(from)), into_(std::move(into)), left_out_(std::move(left_out)) {}

Result<void> TreeCopy::begin() {
  has_begun_ = true;
  Level top{
      .source = Directory(
          Descriptor(::open(from_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))),
      .target = Descriptor(::open(into_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))};
  if (!top.source.is_open() || !top.target.is_open()) return copy_failure(errno);
  if (::fstat(top.source.number(), &top.found) != 0) return copy_failure(errno);
  levels_.push_back(std::move(top));
  return {};
}

Result<bool> TreeCopy::step() {
  if (!has_begun_) {
    if (auto begun = begin(); !begun) return std::unexpected(std::move(begun.error()));
  }
  std::size_t bytes_left = kCopyStepBytesMax;
  for (std::size_t entries = 0; entries < kCopyStepEntriesMax && bytes_left > 0;) {
    if (source_.is_open()) {
      auto copied = continue_file(bytes_left);
      if (!copied) return std::unexpected(std::move(copied.error()));
      bytes_left -= *copied;
      continue;
    }
    if (levels_.empty()) return true;
    auto moved_on = next_entry();
    if (!moved_on) return std::unexpected(std::move(moved_on.error()));
    ++entries;
  }
  return levels_.empty() && !source_.is_open();
}

Result<bool> TreeCopy::next_entry() {
  errno = 0;
  const dirent* const entry = levels_.back().source.next();
  if (entry == nullptr) {
    if (errno != 0) return copy_failure(errno);
    auto ended = end_level();
    if (!ended) return std::unexpected(std::move(ended.error()));
    return false;
  }
  const std::string name(static_cast<const char*>(entry->d_name));
  if (name == "." || name == ".." || (levels_.size() == 1 && name == left_out_)) return true;
  if (++entries_ > kCopiedEntriesMax) return tree_too_large();
  auto copied = copy_entry(name);
  if (!copied) return std::unexpected(std::move(copied.error()));
  return true;
}

Result<void> TreeCopy::copy_entry(const std::string& name) {
  struct stat found{};
  const int source = levels_.back().source.number();
  if (::fstatat(source, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<void>{} : copy_failure(errno);  // removed a moment ago
  }
  if (S_ISDIR(found.st_mode)) return enter(name, found);
  if (S_ISREG(found.st_mode)) return begin_file(name, found);
  if (S_ISLNK(found.st_mode)) return copy_link(name);
  return {};
}

Result<void> TreeCopy::enter(const std::string& name, const struct stat& found) {
  if (levels_.size() >= kCopiedDepthMax) return tree_too_large();
  Level& above = levels_.back();
  Level level{
      .source = Directory(Descriptor(::openat(above.source.number(), name.c_str(),
                                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))),
      .target = {},
      .found = found};
  if (!level.source.is_open()) return errno == ENOENT ? Result<void>{} : copy_failure(errno);
  if (::mkdirat(above.target.number(), name.c_str(), kOwnBits) != 0) return copy_failure(errno);
  level.target = Descriptor(::openat(above.target.number(), name.c_str(),
                                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!level.target.is_open()) return copy_failure(errno);
  levels_.push_back(std::move(level));
  return {};
}

Result<void> TreeCopy::end_level() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  if (levels_.empty()) return {};  // its own directory keeps its mode
  if (::fchmod(level.target.number(), (level.found.st_mode & kModeBits) | kOwnBits) != 0) {
    return copy_failure(errno);
  }
  ::futimens(level.target.number(), times_of(level.found).data());
  return {};
}

Result<void> TreeCopy::begin_file(const std::string& name, const struct stat& found) {
  const Level& level = levels_.back();
  bytes_ += found.st_size;
  if (bytes_ > kCopiedBytesMax) return tree_too_large();
  source_ = Descriptor(::openat(level.source.number(), name.c_str(),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!source_.is_open()) return errno == ENOENT ? Result<void>{} : copy_failure(errno);
  found_ = found;
  target_ = Descriptor(::openat(level.target.number(), name.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!target_.is_open()) return copy_failure(errno);
  if (::ioctl(target_.number(), FICLONE, source_.number()) == 0) {
    ::lseek(source_.number(), 0, SEEK_END);
  }
  return {};
}

Result<std::size_t> TreeCopy::continue_file(std::size_t bytes_max) {
  auto copied = copy_range(source_.number(), target_.number(), bytes_max);
  if (!copied || *copied > 0) return copied;
  if (::fchmod(target_.number(), found_.st_mode & kModeBits) != 0) return copy_failure(errno);
  ::futimens(target_.number(), times_of(found_).data());
  source_.close();
  target_.close();
  return copied;
}

Result<void> TreeCopy::copy_link(const std::string& name) {
  const Level& level = levels_.back();
  std::string target(PATH_MAX, '\0');
  const ssize_t size =
      ::readlinkat(level.source.number(), name.c_str(), target.data(), target.size());
  if (size < 0) return errno == ENOENT ? Result<void>{} : copy_failure(errno);
  target.resize(static_cast<std::size_t>(size));
  if (::symlinkat(target.c_str(), level.target.number(), name.c_str()) != 0) {
    return copy_failure(errno);
  }
  return {};
}

}  // namespace clawdforge
