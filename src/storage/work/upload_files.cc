#include "storage/work/upload_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "storage/disk/file_error.h"
#include "storage/work/incoming_file.h"

namespace clawdforge {
namespace {

Result<Descriptor> open_root(const std::string& root) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor opened(::open(root.c_str(), kFlags));
  if (!opened.is_open() && errno == ENOENT) {
    if (::mkdir(root.c_str(), 0700) != 0 && errno != EEXIST) {
      return file_failure(errno, "making the directory of the uploads");
    }
    opened = Descriptor(::open(root.c_str(), kFlags));
  }
  if (!opened.is_open()) return file_failure(errno, "opening the directory of the uploads");
  return opened;
}

using FilePtr = std::shared_ptr<IncomingFile::File>;

Result<FilePtr> begin_file(const std::string& root, std::int64_t free_bytes_min) {
  auto directory = open_root(root);
  if (!directory) return std::unexpected(std::move(directory.error()));
  if (auto checked = check_floor(directory->number(), free_bytes_min); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  Descriptor file(
      ::openat(directory->number(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, kUploadMode));
  if (file.is_open()) {
    return std::make_shared<IncomingFile::File>(std::move(*directory), std::move(file), "");
  }
  // Old kernels and file systems without it take the flag for O_DIRECTORY.
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT) {
    return begin_named(std::move(*directory));
  }
  return file_failure(errno, "making an upload's file");
}

bool is_plain(const std::string& name) {
  return !name.empty() && name.find('/') == name.npos && name != "." && name != "..";
}

Result<void> remove_names(const std::string& root, const std::vector<std::string>& names) {
  const auto directory = open_root(root);
  if (!directory) return std::unexpected(directory.error());
  Result<void> removed;
  for (const std::string& name : names) {
    if (!is_plain(name) || ::unlinkat(directory->number(), name.c_str(), 0) == 0) continue;
    if (errno != ENOENT) removed = file_failure(errno, "removing a file that no row knows");
  }
  return removed;
}

Result<UploadFiles::Removal> remove_digests(const std::string& root,
                                            const std::vector<Digest>& digests) {
  const auto directory = open_root(root);
  if (!directory) return std::unexpected(directory.error());
  UploadFiles::Removal removal;
  for (const Digest& digest : digests) {
    if (::unlinkat(directory->number(), to_hex(digest).c_str(), 0) == 0 || errno == ENOENT) {
      removal.gone.push_back(digest);
    } else {
      removal.why_not = std::generic_category().message(errno);
    }
  }
  return removal;
}

Result<std::vector<std::string>> list_uploads(const std::string& root) {
  if (auto opened = open_root(root); !opened) return std::unexpected(opened.error());
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return file_failure(error.value(), "reading the directory of the uploads");
  return names;
}

}  // namespace

UploadFiles::UploadFiles(std::string data_dir, Disk& disk, std::int64_t free_bytes_min)
    : root_(std::move(data_dir) + "/uploads"), disk_(disk), free_bytes_min_(free_bytes_min) {}

Async<std::unique_ptr<IncomingFile>> UploadFiles::begin(Lane lane) {
  auto file = co_await disk_.call(
      lane, [root = root_, floor = free_bytes_min_] { return begin_file(root, floor); });
  if (!file) co_return std::unexpected(std::move(file.error()));
  (*file)->free_bytes_min = free_bytes_min_;
  co_return std::make_unique<IncomingFile>(std::move(*file), std::move(lane), disk_);
}

std::string UploadFiles::path_of(const Digest& token_digest) const {
  return root_ + "/" + to_hex(token_digest);
}

void UploadFiles::remove(std::vector<Digest> token_digests, Lane lane) {
  std::vector<std::string> names;
  for (const Digest& digest : token_digests) names.push_back(to_hex(digest));
  disk_.post(std::move(lane), [root = root_, names = std::move(names), unremoved = unremoved_] {
    if (remove_names(root, names)) return;
    for (const std::string& name : names) unremoved->add(name);
  });
}

void UploadFiles::remove_again() {
  disk_.post(Lane(), [root = root_, unremoved = unremoved_] {
    const std::vector<std::string> names = unremoved->names();
    if (!remove_names(root, names)) return;
    for (const std::string& name : names) unremoved->remove(name);
  });
}

Async<UploadFiles::Removal> UploadFiles::remove_and_tell(std::vector<Digest> token_digests) {
  return disk_.call(Lane(), [root = root_, digests = std::move(token_digests)] {
    return remove_digests(root, digests);
  });
}

Async<std::vector<std::string>> UploadFiles::names() {
  return disk_.call(Lane(), [root = root_] { return list_uploads(root); });
}

Async<void> UploadFiles::remove_named(std::vector<std::string> names) {
  return disk_.call(Lane(),
                    [root = root_, names = std::move(names)] { return remove_names(root, names); });
}

}  // namespace clawdforge
