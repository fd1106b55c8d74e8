#include "storage/disk/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace clawdforge {
namespace {

std::unexpected<Failure> taken(const std::string& path) {
  return fail(Errc::conflict, "file_exists",
              fmt::format("{} is there already; choose another name.", path));
}

std::unexpected<Failure> unwritable(const std::string& path, int reason) {
  return fail(Errc::unavailable, "file_unwritable",
              fmt::format("{} cannot be written: {}.", path, std::strerror(reason)));
}

}  // namespace

Result<NewFile> NewFile::make(std::string path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) return taken(path);
  if (errno != ENOENT) return unwritable(path, errno);
  std::string unfinished = path + ".unfinished-XXXXXX";
  Descriptor file(::mkostemp(unfinished.data(), O_CLOEXEC));
  if (!file.is_open()) return unwritable(path, errno);
  return NewFile(std::move(path), std::move(unfinished), std::move(file));
}

NewFile::~NewFile() {
  if (unfinished_.empty()) return;
  ::unlink(unfinished_.c_str());
  for (const char* beside : {"-journal", "-wal", "-shm"}) {
    ::unlink((unfinished_ + beside).c_str());
  }
}

Result<std::int64_t> NewFile::keep() {
  struct stat written{};
  if (::fsync(file_.number()) != 0 || ::fstat(file_.number(), &written) != 0) {
    return unwritable(path_, errno);
  }
  int renamed =
      ::renameat2(AT_FDCWD, unfinished_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (renamed != 0 && (errno == EINVAL || errno == ENOSYS)) {
    // A file system without it: a second name instead, which replaces nothing either.
    renamed = ::link(unfinished_.c_str(), path_.c_str());
    if (renamed == 0) ::unlink(unfinished_.c_str());
  }
  if (renamed != 0 && errno == EEXIST) return taken(path_);
  if (renamed != 0) return unwritable(path_, errno);
  unfinished_.clear();
  std::string directory = std::filesystem::path(path_).parent_path();
  if (directory.empty()) directory = ".";
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() || ::fsync(opened.number()) != 0) {
    return fail(Errc::unavailable, "file_unwritable",
                fmt::format("{} is written, but whether it survives a power cut is not known: {}.",
                            path_, std::strerror(errno)));
  }
  return written.st_size;
}

}  // namespace clawdforge
