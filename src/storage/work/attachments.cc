#include "storage/work/attachments.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr mode_t kReadOnly = 0400;
constexpr std::size_t kCopyBlockBytes = 256 * 1024;

bool is_safe_extension(const std::string& extension) {
  constexpr std::size_t kExtensionBytesMax = 17;
  return extension.size() >= 2 && extension.size() <= kExtensionBytesMax && extension[0] == '.' &&
         std::all_of(extension.begin() + 1, extension.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

std::unexpected<Failure> gone() {
  return fail(Errc::not_found, "file_not_found", "There is no such file, or it has expired.",
              "the upload has a row and no file");
}

Result<void> write_all(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure(errno, "copying an attachment");
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

Result<void> copy_all(int source, int target) {
  std::string block(kCopyBlockBytes, '\0');
  for (;;) {
    const ssize_t count = ::read(source, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failure(errno, "reading an upload");
    if (count == 0) return {};
    auto written = write_all(target, block.data(), static_cast<std::size_t>(count));
    if (!written) return written;
  }
}

Result<bool> copy_file(const std::string& from, int directory, const std::string& name) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!source.is_open() && errno == ENOENT) return gone();
  if (!source.is_open()) return file_failure(errno, "opening an upload");
  const Descriptor target(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReadOnly));
  if (!target.is_open() && errno == EEXIST) return false;
  if (!target.is_open()) return file_failure(errno, "making an attachment");
  auto copied = copy_all(source.number(), target.number());
  if (copied) return true;
  ::unlinkat(directory, name.c_str(), 0);
  return std::unexpected(std::move(copied.error()));
}

}  // namespace

std::string safe_extension(const Attachment& attachment) {
  return is_safe_extension(attachment.extension) ? attachment.extension : std::string();
}

Result<bool> attach_file(const Attachment& attachment, int directory, const std::string& name) {
  const std::string& from = attachment.path;
  if (::linkat(AT_FDCWD, from.c_str(), directory, name.c_str(), 0) == 0) return true;
  switch (errno) {
    case EEXIST:
      return false;
    case ENOENT:
      return gone();
    case EXDEV:       // uploads and agents' directories lie on different file systems
    case EPERM:       // this one has no links, or forbids them
    case EOPNOTSUPP:  // the same
    case EMLINK:      // too many have it already
      return copy_file(from, directory, name);
    default:
      return file_failure(errno, "linking an attachment");
  }
}

}  // namespace clawdforge
