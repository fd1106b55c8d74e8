#include "storage/disk/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

bool is_dots(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

// Opened so that it can be read and changed, whatever its owner has made of its mode. Not open
// and with errno if it is not a directory, or cannot be opened.
Directory open_directory(int parent, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor opened(::openat(parent, name, kFlags));
  if (!opened.is_open() && errno == EACCES &&
      ::fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) == 0) {
    opened = Descriptor(::openat(parent, name, kFlags));
  }
  if (!opened.is_open()) return {};
  // One that may be read but not written. If it belongs to another user, unlinking will tell.
  static_cast<void>(::fchmod(opened.number(), 0700));
  return Directory(std::move(opened));
}

// A name that no other removal gives to a directory that it moves up.
std::string fresh_name() {
  static std::atomic<std::uint64_t> next = 1;
  return fmt::format(".removed-{}", next.fetch_add(1, std::memory_order_relaxed));
}

class Removal {
 public:
  Removal(int parent, const std::string& name, std::size_t entries_max)
      : parent_(parent), name_(name.c_str()), entries_left_(entries_max) {}

  Result<TreeStep> run() {
    const Fate fate = unlink(parent_, name_);
    if (fate == Fate::gone) return TreeStep::done;
    if (fate == Fate::stuck) return failed();
    top_ = open_directory(parent_, name_);
    if (!top_.is_open() && errno == ENOENT) return TreeStep::done;
    if (!top_.is_open()) return failed(errno);
    while (entries_left_ > 0) {
      --entries_left_;  // so that this ends, also where nothing is seen and nothing goes
      const std::size_t changes_before = changes_;
      if (!empty_top()) {
        if (::unlinkat(parent_, name_, AT_REMOVEDIR) == 0 || errno == ENOENT) return TreeStep::done;
        // Something has come in since: a process that is being ended.
        if (errno != ENOTEMPTY && errno != EEXIST) return failed(errno);
      } else if (changes_ == changes_before && failure_ != 0) {
        return failed();
      }
    }
    if (changes_ == 0) return failed();
    return TreeStep::more;
  }

 private:
  enum class Fate { gone, directory, stuck };

  Fate unlink(int directory, const char* name) {
    if (::unlinkat(directory, name, 0) == 0) {
      ++changes_;
      return Fate::gone;
    }
    if (errno == ENOENT) return Fate::gone;
    if (errno == EISDIR) return Fate::directory;
    // Where nothing may be removed, the system does not say of what kind it is.
    const int reason = errno;
    struct stat found{};
    if (::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode)) {
      return Fate::directory;
    }
    failure_ = reason;
    return Fate::stuck;
  }

  // One look at all entries of the top. False if there were none.
  bool empty_top() {
    bool has_seen = false;
    top_.rewind();
    while (const dirent* entry = entries_left_ > 0 ? top_.next() : nullptr) {
      if (is_dots(entry->d_name)) continue;
      has_seen = true;
      --entries_left_;
      if (unlink(top_.number(), entry->d_name) == Fate::directory) remove_directory(entry->d_name);
    }
    return has_seen || entries_left_ == 0;
  }

  // A directory of the top.
  void remove_directory(const char* name) {
    Directory directory = open_directory(top_.number(), name);
    if (!directory.is_open()) {
      if (errno != ENOENT) failure_ = errno;
      return;
    }
    const int inside = directory.number();
    while (const dirent* entry = entries_left_ > 0 ? directory.next() : nullptr) {
      if (is_dots(entry->d_name)) continue;
      --entries_left_;
      if (unlink(inside, entry->d_name) == Fate::directory) move_up(inside, entry->d_name);
    }
    if (::unlinkat(top_.number(), name, AT_REMOVEDIR) == 0) {
      ++changes_;
    } else if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT) {
      failure_ = errno;
    }
  }

  void move_up(int directory, const char* name) {
    const int top = top_.number();
    for (;;) {
      const std::string fresh = fresh_name();
      bool is_moved = ::renameat(directory, name, top, fresh.c_str()) == 0;
      // A directory changes its parent only if it may be written itself.
      if (!is_moved && errno == EACCES &&
          ::fchmodat(directory, name, 0700, AT_SYMLINK_NOFOLLOW) == 0) {
        is_moved = ::renameat(directory, name, top, fresh.c_str()) == 0;
      }
      if (is_moved) ++changes_;
      if (is_moved || errno == ENOENT) return;
      if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) continue;  // name is taken
      failure_ = errno;
      return;
    }
  }

  std::unexpected<Failure> failed(int reason) const { return file_failure(reason, "removing"); }
  std::unexpected<Failure> failed() const { return failed(failure_ == 0 ? ENOTEMPTY : failure_); }

  const int parent_;
  const char* const name_;
  std::size_t entries_left_;
  Directory top_;
  std::size_t changes_ = 0;  // entries removed or moved
  int failure_ = 0;          // the last one, as errno
};

}  // namespace

Result<TreeStep> remove_tree_step(int parent, const std::string& name, std::size_t entries_max) {
  return Removal(parent, name, entries_max).run();
}

}  // namespace clawdforge
