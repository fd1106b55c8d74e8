#include "storage/trees/tree_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <numeric>
#include <string_view>
#include <utility>

#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarNameBytes = 100;  // longer ones stand in a pax head
constexpr std::int64_t kTarLargest = (std::int64_t{1} << 33) - 1;  // eleven octal digits

std::unexpected<Failure> archive_failure(int error_number) {
  return file_failure(error_number, "archiving a session's directory");
}

std::unexpected<Failure> archive_too_large() {
  return fail(Errc::too_large, "workspace_too_large",
              "The session's directory is larger, or deeper, than an archive may be.");
}

void pad(std::string& out, std::int64_t size) {
  const auto over = static_cast<std::size_t>(size) % kTarBlock;
  if (over != 0) out.append(kTarBlock - over, '\0');
}

// One line of a pax head: its length, which counts itself, a key and a value.
std::string pax_line(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t size = rest + 1;
  while (fmt::formatted_size("{}", size) + rest != size) ++size;
  return fmt::format("{} {}={}\n", size, key, value);
}

struct TarHead {
  std::string name;
  std::string link;
  char type = '0';
  mode_t mode = 0;
  std::int64_t size = 0;
  std::int64_t modified_at = 0;
};

void add_block(std::string& out, const TarHead& head) {
  std::string block(kTarBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  put(0, std::string_view(head.name).substr(0, kTarNameBytes));
  put(100, fmt::format("{:07o}", head.mode & 0777));
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", head.size));
  put(136, fmt::format("{:011o}", std::clamp<std::int64_t>(head.modified_at, 0, kTarLargest)));
  put(148, "        ");
  block[156] = head.type;
  put(157, std::string_view(head.link).substr(0, kTarNameBytes));
  put(257, std::string_view("ustar\0", 6));
  put(263, "00");
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  out += block;
}

}  // namespace

TreeArchive::TreeArchive(std::string root, std::string left_out)
    : root_(std::move(root)), left_out_(std::move(left_out)) {}

Result<void> TreeArchive::begin() {
  Directory top(Descriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!top.is_open()) return archive_failure(errno);
  levels_.push_back({.source = std::move(top), .path = {}});
  return {};
}

Result<std::string> TreeArchive::next(std::size_t bytes_wanted) {
  std::string out;
  while (out.size() < bytes_wanted && !is_ended_) {
    Result<void> added;
    if (file_.is_open()) {
      added = add_file_bytes(out, bytes_wanted);
    } else if (levels_.empty()) {
      out.append(2 * kTarBlock, '\0');
      is_ended_ = true;
    } else {
      added = add_entry(out);
    }
    if (!added) return std::unexpected(std::move(added.error()));
  }
  return out;
}

Result<void> TreeArchive::add_entry(std::string& out) {
  errno = 0;
  const dirent* const entry = levels_.back().source.next();
  if (entry == nullptr) {
    if (errno != 0) return archive_failure(errno);
    levels_.pop_back();
    return {};
  }
  const std::string name(static_cast<const char*>(entry->d_name));
  if (name == "." || name == ".." || (levels_.size() == 1 && name == left_out_)) return {};
  if (++entries_ > kArchivedEntriesMax) return archive_too_large();
  return add_named(out, name);
}

Result<void> TreeArchive::add_named(std::string& out, const std::string& name) {
  struct stat found{};
  const int source = levels_.back().source.number();
  const std::string path = levels_.back().path + name;
  // What is removed at this moment is left out.
  if (::fstatat(source, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (S_ISLNK(found.st_mode)) {
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(source, name.c_str(), target.data(), target.size());
    if (size < 0) return {};
    target.resize(static_cast<std::size_t>(size));
    found.st_size = 0;
    return add_head(out, path, found, '2', target);
  }
  if (S_ISDIR(found.st_mode)) {
    Directory below(Descriptor(
        ::openat(source, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
    if (!below.is_open()) return {};
    if (levels_.size() >= kArchivedDepthMax) return archive_too_large();
    found.st_size = 0;
    auto added = add_head(out, path + "/", found, '5', {});
    levels_.push_back({.source = std::move(below), .path = path + "/"});
    return added;
  }
  if (!S_ISREG(found.st_mode)) return {};
  // Opened with O_NONBLOCK: the agent may hold a lease on this file, and open() would wait for it.
  file_ = Descriptor(
      ::openat(source, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file_.is_open()) return {};
  if (::fstat(file_.number(), &found) != 0 || !S_ISREG(found.st_mode)) {
    file_.close();
    return {};
  }
  bytes_ += found.st_size;
  if (bytes_ > kArchivedBytesMax) return archive_too_large();
  file_left_ = file_size_ = found.st_size;
  auto added = add_head(out, path, found, '0', {});
  if (file_left_ == 0) file_.close();
  return added;
}

Result<void> TreeArchive::add_head(std::string& out, const std::string& path,
                                   const struct stat& found, char type, const std::string& link) {
  std::string pax;
  if (path.size() > kTarNameBytes) pax += pax_line("path", path);
  if (link.size() > kTarNameBytes) pax += pax_line("linkpath", link);
  if (found.st_size > kTarLargest) pax += pax_line("size", fmt::to_string(found.st_size));
  if (!pax.empty()) {
    const auto size = static_cast<std::int64_t>(pax.size());
    add_block(out, {.name = "pax", .link = {}, .type = 'x', .mode = 0600, .size = size});
    out += pax;
    pad(out, size);
  }
  add_block(out, {.name = path,
                  .link = link,
                  .type = type,
                  .mode = found.st_mode,
                  .size = std::min<std::int64_t>(found.st_size, kTarLargest),
                  .modified_at = found.st_mtim.tv_sec});
  return {};
}

// Exactly as many bytes as the head has said: a file that grows is cut, one that shrinks ends the
// archive, which else would look whole.
Result<void> TreeArchive::add_file_bytes(std::string& out, std::size_t bytes_wanted) {
  const std::size_t wanted =
      std::min<std::size_t>(static_cast<std::size_t>(file_left_), bytes_wanted);
  const std::size_t before = out.size();
  out.resize(before + wanted);
  const ssize_t count = ::read(file_.number(), out.data() + before, wanted);
  if (count < 0 && errno != EINTR) return archive_failure(errno);
  if (count == 0) {
    return fail(Errc::unavailable, "file_changed", "A file has become shorter meanwhile.");
  }
  out.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  file_left_ -= std::max<ssize_t>(count, 0);
  if (file_left_ > 0) return {};
  pad(out, file_size_);
  file_.close();
  return {};
}

}  // namespace clawdforge
