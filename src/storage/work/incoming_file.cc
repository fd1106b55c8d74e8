#include "storage/work/incoming_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <atomic>
#include <cerrno>

#include "base/refusals.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

// How much is written before the disk is asked to begin with it, so that the last sync
// has little left to wait for: 3 ms instead of 40 for 100 MB.
constexpr std::int64_t kWritebackBytes = 8 * 1024 * 1024;
constexpr std::chrono::seconds kLowRetryAfter{60};

// A file without a name is given one through the descriptor's own.
std::string place_of(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

}  // namespace

IncomingFile::File::~File() {
  if (!partial_name.empty()) ::unlinkat(directory.number(), partial_name.c_str(), 0);
}

Result<void> check_floor(int on_disk, std::int64_t free_bytes_min) {
  if (free_bytes_min == 0) return {};
  struct statvfs found{};
  if (::fstatvfs(on_disk, &found) != 0) return {};
  // More blocks than a number of bytes can say are enough.
  const auto blocks_min = static_cast<std::uint64_t>(free_bytes_min) / found.f_frsize;
  if (found.f_bavail > blocks_min) return {};
  return fail_for_now(Errc::unavailable, "disk_low",
                      "The gateway keeps the rest of its disk for runs and sessions; upload again "
                      "when there is more space.",
                      kLowRetryAfter);
}

Result<void> IncomingFile::File::append(const std::string& bytes) {
  if (auto checked = check_floor(content.number(), free_bytes_min); !checked) {
    is_broken = true;
    return checked;
  }
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 0) {
    const ssize_t count = ::write(content.number(), at, left);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      is_broken = true;
      return file_failure(errno, "writing an upload");
    }
    at += count;
    left -= static_cast<std::size_t>(count);
    written += count;
  }
  if (written - handed_over >= kWritebackBytes) {
    // A hint alone: what matters is the sync at the end.
    ::sync_file_range(content.number(), handed_over, written - handed_over, SYNC_FILE_RANGE_WRITE);
    handed_over = written;
  }
  return {};
}

Result<void> IncomingFile::File::keep(const std::string& name) {
  if (is_broken) return file_failure(EIO, "keeping an upload that could not be written");
  if (::fdatasync(content.number()) != 0) return file_failure(errno, "syncing an upload");
  const int linked =
      partial_name.empty()
          ? ::linkat(AT_FDCWD, place_of(content.number()).c_str(), directory.number(), name.c_str(),
                     AT_SYMLINK_FOLLOW)
          : ::linkat(directory.number(), partial_name.c_str(), directory.number(), name.c_str(), 0);
  if (linked != 0) return file_failure(errno, "naming an upload");
  if (::fsync(directory.number()) == 0) return {};
  const int reason = errno;
  ::unlinkat(directory.number(), name.c_str(), 0);
  return file_failure(reason, "syncing the directory of the uploads");
}

Result<std::shared_ptr<IncomingFile::File>> begin_named(Descriptor directory) {
  static std::atomic<std::uint64_t> next = 1;
  for (;;) {
    std::string name = fmt::format(".arriving-{}", next.fetch_add(1));
    Descriptor file(::openat(directory.number(), name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kUploadMode));
    if (file.is_open()) {
      return std::make_shared<IncomingFile::File>(std::move(directory), std::move(file),
                                                  std::move(name));
    }
    if (errno != EEXIST) return file_failure(errno, "making an upload's file");
  }
}

IncomingFile::IncomingFile(std::shared_ptr<File> file, Lane lane, Disk& disk)
    : file_(std::move(file)), lane_(std::move(lane)), disk_(disk) {}

IncomingFile::~IncomingFile() {
  // The last descriptor frees the file's blocks, which may take its time.
  disk_.post(lane_, [file = std::move(file_)] {});
}

Async<void> IncomingFile::append(std::string bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  auto written = co_await disk_.call(
      lane_, [file = file_, bytes = std::move(bytes)] { return file->append(bytes); });
  if (written) size_ += size;
  co_return written;
}

Async<void> IncomingFile::keep(Digest token_digest) {
  return disk_.call(lane_,
                    [file = file_, name = to_hex(token_digest)] { return file->keep(name); });
}

}  // namespace clawdforge
