#include "storage/disk/data_subdir.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

const char* name_of(DataSubdir subdir) {
  switch (subdir) {
    case DataSubdir::uploads:
      return "/uploads";
    case DataSubdir::runs:
      return "/runs";
    case DataSubdir::sessions:
      return "/sessions";
    case DataSubdir::jobs:
      return "/jobs";
  }
  return "";
}

// Not open, and errno says why.
Descriptor open_subdir(const std::string& data_dir, DataSubdir subdir) {
  const std::string path = data_dir + name_of(subdir);
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Result<std::optional<DataSubdirEntry>> entry_in(int directory, const char* name) {
  struct stat found{};
  if (::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT || errno == ENAMETOOLONG) return std::nullopt;
    return file_failure(errno, "looking at an entry of the data directory");
  }
  const auto since_epoch = std::chrono::seconds(found.st_ctim.tv_sec) +
                           std::chrono::milliseconds(found.st_ctim.tv_nsec / 1'000'000);
  return DataSubdirEntry{.name = name,
                         .is_directory = S_ISDIR(found.st_mode),
                         .size = found.st_size,
                         .changed_at = TimePoint(since_epoch)};
}

}  // namespace

Result<void> visit_subdir(const std::string& data_dir, DataSubdir subdir,
                          const std::function<Result<void>(const DataSubdirEntry&)>& see) {
  Descriptor opened = open_subdir(data_dir, subdir);
  if (!opened.is_open() && errno == ENOENT) return {};
  if (!opened.is_open()) return file_failure(errno, "opening a subdir of the data directory");
  Directory directory(std::move(opened));
  if (!directory.is_open()) return file_failure(errno, "reading a subdir of the data directory");
  for (;;) {
    errno = 0;
    const dirent* next = directory.next();
    if (next == nullptr && errno == 0) return {};
    if (next == nullptr) return file_failure(errno, "reading a subdir of the data directory");
    const std::string name = next->d_name;
    if (name == "." || name == "..") continue;
    const auto look = entry_in(directory.number(), name.c_str());
    if (!look) return std::unexpected(look.error());
    const auto& entry = *look;
    if (!entry) continue;
    if (auto seen = see(*entry); !seen) return seen;
  }
}

Result<std::optional<DataSubdirEntry>> look_at(const std::string& data_dir, DataSubdir subdir,
                                               const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
    return std::nullopt;
  }
  const Descriptor opened = open_subdir(data_dir, subdir);
  if (!opened.is_open() && errno == ENOENT) return std::nullopt;
  if (!opened.is_open()) return file_failure(errno, "opening a subdir of the data directory");
  return entry_in(opened.number(), name.c_str());
}

}  // namespace clawdforge
