#include "storage/work/attachments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/ids.h"
#include "base/json_text.h"
#include "base/text.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr mode_t kReadOnly = 0400;  // so that an agent does not change its copy by mistake
constexpr std::size_t kCopyBlockBytes = 256 * 1024;

bool is_safe_extension(const std::string& extension) {
  constexpr std::size_t kExtensionBytesMax = 17;
  return extension.size() >= 2 && extension.size() <= kExtensionBytesMax && extension[0] == '.' &&
         std::all_of(extension.begin() + 1, extension.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

// Characters that change how a line is shown, or cannot be seen: C1 controls, the general
// punctuation with its spaces and directions, and the byte order mark. Gives how many bytes at
// `text` to replace.
std::size_t unseen_bytes(std::string_view text) {
  if (text.starts_with("\xe2\x80") || text.starts_with("\xe2\x81") ||
      text.starts_with("\xef\xbb\xbf")) {
    return std::min<std::size_t>(3, text.size());
  }
  const bool is_control =
      text.starts_with('\xc2') && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xa0;
  return is_control ? 2 : 0;
}

bool is_harmless(char c) {
  constexpr std::string_view kSpecial = "\"'`$&|;<>*?:\\/!%{}";
  return !kSpecial.contains(c);
}

// The dot of the extension; the end where there is none.
std::size_t end_of_stem(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? name.size() : dot;
}

std::string with_mark(std::string_view name, std::string_view mark) {
  const std::size_t end = end_of_stem(name);
  return fmt::format("{}-{}{}", name.substr(0, end), mark, name.substr(end));
}

// The extension, or nothing where it could lead elsewhere: the ledger's row may have been
// written by another program.
std::string safe_extension(const Attachment& attachment) {
  return is_safe_extension(attachment.extension) ? attachment.extension : std::string();
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

Result<std::size_t> copy_block(int source, int target, std::size_t bytes_max) {
  std::string block(std::min(bytes_max, kCopyBlockBytes), '\0');
  ssize_t count = -1;
  do {
    count = ::read(source, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return file_failure(errno, "reading an upload");
  const auto size = static_cast<std::size_t>(count);
  auto written = write_all(target, block.data(), size);
  if (!written) return std::unexpected(std::move(written.error()));
  return size;
}

// How many bytes; zero: the end.
Result<std::size_t> copy_some(int source, int target, std::size_t bytes_max) {
  for (;;) {
    const ssize_t count = ::copy_file_range(source, nullptr, target, nullptr, bytes_max, 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    switch (errno) {
      case EINTR:
        continue;
      case EXDEV:  // uploads and agents' directories lie on different file systems
      case EINVAL:
      case ENOSYS:
      case EOPNOTSUPP:
      case EPERM:
        return copy_block(source, target, bytes_max);
      default:
        return file_failure(errno, "copying an attachment");
    }
  }
}

}  // namespace

std::string safe_file_name(std::string_view foreign) {
  std::string printable;  // and valid UTF-8
  append_printable(printable, foreign.substr(foreign.find_last_of("/\\") + 1));
  std::string name;
  for (std::string_view rest = printable; !rest.empty();) {
    const std::size_t unseen = unseen_bytes(rest);
    name += unseen > 0 || !is_harmless(rest.front()) ? '_' : rest.front();
    rest.remove_prefix(std::max<std::size_t>(unseen, 1));
  }
  const auto trim = [](std::string& text) { text.resize(text.find_last_not_of(" .") + 1); };
  trim(name);
  if (name.size() > kFileNameBytesMax) {
    std::string extension = name.substr(end_of_stem(name));
    if (extension.size() > kFileNameBytesMax / 2) extension.clear();
    name = cut_to(name, kFileNameBytesMax - extension.size());
    name += extension;
    trim(name);
  }
  if (!name.empty() && std::string_view(" .-~").contains(name.front())) name.front() = '_';
  return name;
}

std::vector<std::string> attachment_names(const std::vector<Attachment>& attachments,
                                          std::string_view prefix, AttachmentNames naming) {
  std::vector<std::string> names;
  for (const Attachment& attachment : attachments) {
    // Checked once more: the ledger's row may have been written by another program.
    const bool is_own = naming == AttachmentNames::own && !attachment.name.empty() &&
                        safe_file_name(attachment.name) == attachment.name;
    const std::string wanted =
        is_own ? attachment.name
               : fmt::format("{}-{}{}", prefix, names.size() + 1, safe_extension(attachment));
    std::string name = wanted;
    for (int i = 2; std::ranges::find(names, name) != names.end(); ++i)
      name = with_mark(wanted, fmt::to_string(i));
    names.push_back(std::move(name));
  }
  return names;
}

AttachmentCopies::AttachmentCopies(std::vector<Attachment> attachments, std::string prefix,
                                   AttachmentNames naming)
    : attachments_(std::move(attachments)),
      wanted_names_(attachment_names(attachments_, prefix, naming)) {}

Result<bool> AttachmentCopies::step() {
  for (std::size_t room = kAttachmentStepBytesMax; room > 0;) {
    if (!target_.is_open()) {
      if (names_.size() == attachments_.size()) return true;
      auto begun = begin_next();
      if (!begun) return std::unexpected(std::move(begun.error()));
    }
    auto copied = copy_some(source_.number(), target_.number(), room);
    if (!copied) return std::unexpected(std::move(copied.error()));
    if (*copied == 0) {
      source_.close();
      target_.close();
    }
    room -= *copied;
  }
  return false;
}

Result<void> AttachmentCopies::begin_next() {
  constexpr int kNamesTried = 8;
  constexpr int kNumbersTried = 4;
  const Attachment& attachment = attachments_[names_.size()];
  source_ = Descriptor(::open(attachment.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!source_.is_open() && errno == ENOENT) return gone();
  if (!source_.is_open()) return file_failure(errno, "opening an upload");
  const std::string& wanted = wanted_names_[names_.size()];
  std::string name = wanted;
  for (int i = 0; i < kNamesTried && !target_.is_open(); ++i) {
    target_ = Descriptor(::openat(directory_.number(), name.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadOnly));
    if (target_.is_open()) break;
    if (errno != EEXIST) return file_failure(errno, "making an attachment");
    std::uint64_t random = 0;
    fill_random(&random, sizeof(random));
    name = with_mark(wanted,
                     i < kNumbersTried ? fmt::to_string(i + 2) : fmt::format("{:016x}", random));
  }
  if (!target_.is_open()) return file_failure(EEXIST, "naming an attachment");
  names_.push_back(std::move(name));
  // Where the file system can share the blocks of the two until one is written, nothing has to be
  // copied.
  if (::ioctl(target_.number(), FICLONE, source_.number()) == 0) {
    ::lseek(source_.number(), 0, SEEK_END);
  }
  return {};
}

void AttachmentCopies::undo(Log& log) {
  source_.close();
  target_.close();
  for (const std::string& name : std::exchange(names_, {})) {
    if (::unlinkat(directory_.number(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    log.warn("an attachment of a turn that does not begin cannot be removed",
             {{"name", std::string_view(name)},
              {"why", std::string_view(std::generic_category().message(errno))}});
  }
}

}  // namespace clawdforge
