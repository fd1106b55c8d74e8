#include "storage/disk/named_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/ids.h"
#include "storage/disk/file_error.h"
#include "storage/disk/tree.h"

namespace clawdforge {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

bool is_dir_name(const std::string& id) {
  constexpr std::size_t kDirNameBytesMax = 64;
  return !id.empty() && id.size() <= kDirNameBytesMax && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

Descriptor NamedDirs::open_root() const {
  return Descriptor(::open(root.c_str(), kDirectoryFlags));
}

Descriptor NamedDirs::open(const std::string& id) const {
  const Descriptor parent = open_root();
  if (!parent.is_open()) return {};
  return Descriptor(::openat(parent.number(), id.c_str(), kDirectoryFlags));
}

Descriptor NamedDirs::open_inside(const std::string& id, const char* inside) const {
  const Descriptor directory = open(id);
  if (!directory.is_open()) return {};
  return Descriptor(::openat(directory.number(), inside, kDirectoryFlags));
}

Result<void> NamedDirs::make_root() const {
  if (::mkdir(root.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_failure(errno, "making the directory above");
}

Result<bool> NamedDirs::make(const std::string& id) const {
  const std::string path = root + "/" + id;
  int made = ::mkdir(path.c_str(), 0700);
  if (made != 0 && errno == ENOENT) {  // the root has been removed
    if (auto rooted = make_root(); !rooted) return std::unexpected(std::move(rooted.error()));
    made = ::mkdir(path.c_str(), 0700);
  }
  if (made == 0) return true;
  if (errno == EEXIST) return false;
  return file_failure(errno, "making a directory");
}

NamedDirs::Removal NamedDirs::remove_step(const std::string& id, Log& log) const {
  const Descriptor parent = open_root();
  if (!parent.is_open() && errno == ENOENT) {
    unremoved_->remove(id);
    return Removal::done;
  }
  auto step = parent.is_open() ? remove_tree_step(parent.number(), id, kTreeStepEntriesMax)
                               : file_failure(errno, "opening the directory above");
  if (!step) {
    report(log, id, step.error());
    unremoved_->add(id);
    return Removal::stuck;
  }
  if (*step == TreeStep::more) return Removal::more;
  unremoved_->remove(id);
  return Removal::done;
}

void NamedDirs::remove(const std::string& id, Log& log) const {
  while (remove_step(id, log) == Removal::more) {
  }
}

Result<std::vector<std::string>> NamedDirs::strays(const std::set<std::string>& ids) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    if (!ids.contains(name)) names.push_back(std::move(name));
  }
  if (error) return file_failure(error.value(), "reading the directory above");
  return names;
}

Result<void> NamedDirs::move_to(const NamedDirs& others, const std::string& name) const {
  const Descriptor from = open_root();
  const Descriptor to = others.open_root();
  if (!from.is_open() || !to.is_open()) return file_failure(errno, "opening the directory above");
  std::uint64_t random = 0;
  fill_random(&random, sizeof(random));
  const std::string fresh = fmt::format("{:016x}", random);
  const auto rename = [&] {
    return ::renameat2(from.number(), name.c_str(), to.number(), fresh.c_str(), RENAME_NOREPLACE);
  };
  if (rename() == 0) return {};
  // A directory changes its parent only if it may be written itself.
  if (errno == EACCES && ::fchmodat(from.number(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0 &&
      rename() == 0) {
    return {};
  }
  return file_failure(errno, "moving a directory away");
}

void NamedDirs::report(Log& log, const std::string& id, const Failure& error) const {
  log.warn(stuck, {{id_key, std::string_view(id)}, {"why", std::string_view(error.detail)}});
}

}  // namespace clawdforge
