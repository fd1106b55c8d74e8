// What is in a session's working directory, for callers. An agent, or what it has started, may
// change everything there while we look: no path is resolved but beneath the directory, and
// nothing is believed about a name before it is open.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/json_text.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"
#include "storage/work/session_dirs.h"

namespace clawdforge {
namespace {

bool is_utf8(const std::string& text) {
  std::string repaired;
  append_printable(repaired, text);  // a byte that has to be repaired becomes three
  return repaired.size() == text.size();
}

// Reasons that lie with us and not with the path.
bool is_our_trouble(int error_number) {
  switch (error_number) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EIO:
    case ENOSYS:
      return true;
    default:
      return false;
  }
}

// An agent can give a file any time at all.
TimePoint time_of(const timespec& time) {
  constexpr std::int64_t kLastSecond = 253'402'300'799;  // of the year 9999
  const std::int64_t second = std::clamp<std::int64_t>(time.tv_sec, 0, kLastSecond);
  return TimePoint(std::chrono::seconds(second)) +
         std::chrono::milliseconds(time.tv_nsec / 1'000'000);
}

// A directory's files come before what is below it, so that a limit cuts what lies deep.
class Walk {
 public:
  explicit Walk(WorkListing& listing) : listing_(listing) {}

  Result<void> run(Descriptor opened, const std::string& prefix, std::size_t depth) {
    Directory directory(std::move(opened));
    if (!directory.is_open()) return file_failure(errno, "reading a session's directory");
    const int inside = directory.number();
    std::vector<std::string> below;
    while (const dirent* entry = directory.next()) {
      if (is_full_) return {};
      note(inside, *entry, prefix, below);
    }
    for (const std::string& name : below) {
      if (is_full_) return {};
      if (depth == kListedDepthMax) {
        listing_.is_truncated = true;
        return {};
      }
      constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
      Descriptor next(::openat(inside, name.c_str(), kFlags));
      if (!next.is_open() && is_our_trouble(errno)) {
        return file_failure(errno, "opening a session's directory");
      }
      if (!next.is_open()) continue;  // gone, swapped for something else, or not to be entered
      auto walked = run(std::move(next), prefix + name + "/", depth + 1);
      if (!walked) return walked;
    }
    return {};
  }

 private:
  void note(int inside, const dirent& entry, const std::string& prefix,
            std::vector<std::string>& below) {
    const std::string name = entry.d_name;
    if (name == "." || name == "..") return;
    if (++entries_ > kListedEntriesMax) return fill();
    const bool may_be_listed = entry.d_type == DT_REG || entry.d_type == DT_UNKNOWN;
    if ((!may_be_listed && entry.d_type != DT_DIR) || !is_utf8(name)) return;
    struct stat found{};
    if (may_be_listed) {
      if (::fstatat(inside, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
    }
    if (entry.d_type == DT_DIR || S_ISDIR(found.st_mode)) return below.push_back(name);
    if (S_ISREG(found.st_mode)) add(prefix + name, found);
  }

  void add(std::string path, const struct stat& found) {
    if (path.size() >= PATH_MAX) {  // could not be asked for
      listing_.is_truncated = true;
      return;
    }
    path_bytes_ += path.size();
    if (listing_.files.size() >= kListedFilesMax || path_bytes_ > kListedPathBytesMax) {
      return fill();
    }
    listing_.files.push_back({.path = std::move(path),
                              .size = static_cast<std::int64_t>(found.st_size),
                              .modified_at = time_of(found.st_mtim)});
  }

  void fill() {
    listing_.is_truncated = true;
    is_full_ = true;
  }

  WorkListing& listing_;
  std::size_t entries_ = 0;
  std::size_t path_bytes_ = 0;
  bool is_full_ = false;
};

Descriptor open_work(const NamedDirs& dirs, const std::string& id, const std::string& elsewhere) {
  if (elsewhere.empty()) return dirs.open_inside(id, "work");
  return Descriptor(::open(elsewhere.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Result<WorkListing> list_work(const NamedDirs& dirs, const std::string& id,
                              const std::string& elsewhere) {
  WorkListing listing;
  Descriptor work = open_work(dirs, id, elsewhere);
  if (!work.is_open() && is_our_trouble(errno)) {
    return file_failure(errno, "opening a session's directory");
  }
  if (!work.is_open()) return listing;
  auto walked = Walk(listing).run(std::move(work), "", 0);
  if (!walked) return std::unexpected(std::move(walked.error()));
  std::ranges::sort(listing.files, {}, &WorkFile::path);
  return listing;
}

std::unexpected<Failure> no_such_file() {
  return fail(Errc::not_found, "file_not_found", "There is no such file in this session.");
}

std::unexpected<Failure> not_opened(int error_number) {
  if (is_our_trouble(error_number)) return file_failure(error_number, "opening a session's file");
  return no_such_file();
}

// Links may be followed as long as they stay beneath. Opened as a mere place: whatever it is,
// opening it so does nothing to it.
Descriptor open_place(int work, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // While something beneath is being renamed, the kernel cannot always tell, and says so.
  constexpr int kAttempts = 16;
  for (int i = 0; i < kAttempts; ++i) {
    const long opened = ::syscall(SYS_openat2, work, path.c_str(), &how, sizeof(how));
    if (opened >= 0 || errno != EAGAIN) return Descriptor(static_cast<int>(opened));
  }
  return {};
}

}  // namespace

struct WorkFileReader::File {
  explicit File(Descriptor opened) : content(std::move(opened)) {}

  // The disk's thread.
  Result<std::string> read(std::size_t bytes_max) {
    std::string bytes(bytes_max, '\0');
    for (;;) {
      const ssize_t count = ::pread(content.number(), bytes.data(), bytes.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_failure(errno, "reading a session's file");
      bytes.resize(static_cast<std::size_t>(count));
      offset += count;
      return bytes;
    }
  }

  Descriptor content;
  off_t offset = 0;
};

namespace {

struct OpenedFile {
  std::shared_ptr<WorkFileReader::File> file;
  std::int64_t size = 0;
};

Result<OpenedFile> open_work_file(const NamedDirs& dirs, const std::string& id,
                                  const std::string& path, const std::string& elsewhere) {
  const Descriptor work = open_work(dirs, id, elsewhere);
  if (!work.is_open()) return not_opened(errno);
  const Descriptor place = open_place(work.number(), path);
  if (!place.is_open()) return not_opened(errno);
  struct stat found{};
  if (::fstat(place.number(), &found) != 0) return not_opened(errno);
  if (!S_ISREG(found.st_mode)) return no_such_file();
  // Opened with O_NONBLOCK: the agent may hold a lease on this file, and open() would wait for it.
  Descriptor content(::open(fmt::format("/proc/self/fd/{}", place.number()).c_str(),
                            O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!content.is_open()) return not_opened(errno);
  return OpenedFile{.file = std::make_shared<WorkFileReader::File>(std::move(content)),
                    .size = static_cast<std::int64_t>(found.st_size)};
}

}  // namespace

WorkFileReader::WorkFileReader(std::shared_ptr<File> file, std::int64_t size, Lane lane, Disk& disk)
    : file_(std::move(file)), size_(size), lane_(std::move(lane)), disk_(disk) {}

WorkFileReader::~WorkFileReader() {
  // The last descriptor of a removed file frees its blocks, which may take its time.
  disk_.post(lane_, [file = std::move(file_)] {});
}

Async<std::string> WorkFileReader::read(std::size_t bytes_max) {
  const auto left = static_cast<std::size_t>(size_ - file_->offset);
  const std::size_t wanted = std::min(left, bytes_max);
  if (wanted == 0) co_return std::string();
  co_return co_await disk_.call(lane_, [file = file_, wanted] { return file->read(wanted); });
}

Async<WorkListing> SessionDirs::list(std::string session_id, Lane lane, std::string elsewhere) {
  if (!is_dir_name(session_id)) co_return WorkListing();
  co_return co_await disk_.call(
      std::move(lane), [dirs = dirs_, id = std::move(session_id), other = std::move(elsewhere)] {
        return list_work(dirs, id, other);
      });
}

Async<std::unique_ptr<WorkFileReader>> SessionDirs::open(std::string session_id, std::string path,
                                                         Lane lane, std::string elsewhere) {
  if (!is_dir_name(session_id) || path.empty() || path.front() == '/' ||
      path.find('\0') != path.npos) {
    co_return no_such_file();
  }
  auto opened = co_await disk_.call(
      lane, [dirs = dirs_, id = std::move(session_id), path = std::move(path),
             other = std::move(elsewhere)] { return open_work_file(dirs, id, path, other); });
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  co_return std::make_unique<WorkFileReader>(std::move(opened->file), opened->size, std::move(lane),
                                             disk_);
}

}  // namespace clawdforge
