#include "workspace/run_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "workspace/descriptor.h"
#include "workspace/file_error.h"
#include "workspace/tree.h"

namespace clawdforge {
namespace {

constexpr mode_t kReadOnly = 0400;
constexpr std::size_t kCopyBlockBytes = 256 * 1024;

// What a run's id may be made of: it becomes a name in the file system.
bool is_safe_id(const std::string& id) {
  constexpr std::size_t kRunIdBytesMax = 64;
  return !id.empty() && id.size() <= kRunIdBytesMax && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

// The ledger's row may have been written by another program.
bool is_safe_extension(const std::string& extension) {
  constexpr std::size_t kExtensionBytesMax = 17;
  return extension.size() >= 2 && extension.size() <= kExtensionBytesMax && extension[0] == '.' &&
         std::all_of(extension.begin() + 1, extension.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

std::unexpected<Error> unsafe_id() {
  return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
              "the id of a run is no name for a directory");
}

std::unexpected<Error> gone() {
  return fail(Errc::not_found, "file_not_found", "There is no such file, or it has expired.",
              "the upload has a row and no file");
}

Descriptor open_path(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
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

Result<void> copy_file(const std::string& from, int directory, const std::string& name) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!source.is_open() && errno == ENOENT) return gone();
  if (!source.is_open()) return file_failure(errno, "opening an upload");
  const Descriptor target(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReadOnly));
  if (!target.is_open()) return file_failure(errno, "making an attachment");
  std::string block(kCopyBlockBytes, '\0');
  for (;;) {
    const ssize_t count = ::read(source.number(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failure(errno, "reading an upload");
    if (count == 0) return {};
    auto written = write_all(target.number(), block.data(), static_cast<std::size_t>(count));
    if (!written) return written;
  }
}

Result<void> attach(const std::string& from, int directory, const std::string& name) {
  if (::linkat(AT_FDCWD, from.c_str(), directory, name.c_str(), 0) == 0) return {};
  switch (errno) {
    case ENOENT:
      return gone();
    case EXDEV:       // uploads and runs lie on different file systems
    case EPERM:       // this one has no links, or forbids them
    case EOPNOTSUPP:  // the same
    case EMLINK:      // too many runs have it already
      return copy_file(from, directory, name);
    default:
      return file_failure(errno, "linking an attachment");
  }
}

Result<void> fill(const std::string& path, const std::vector<Attachment>& attachments,
                  const std::vector<std::string>& names) {
  const Descriptor directory = open_path(path);
  if (!directory.is_open()) return file_failure(errno, "opening a run's directory");
  for (const char* inside : {"work", "tmp"}) {
    if (::mkdirat(directory.number(), inside, 0700) != 0) {
      return file_failure(errno, "making a run's directory");
    }
  }
  if (attachments.empty()) return {};
  const Descriptor work(
      ::openat(directory.number(), "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!work.is_open()) return file_failure(errno, "opening a run's directory");
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    if (auto attached = attach(attachments[i].path, work.number(), names[i]); !attached) {
      return attached;
    }
  }
  return {};
}

Result<void> make_root(const std::string& root) {
  if (::mkdir(root.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_failure(errno, "making the directory of the runs");
}

void report(Log& log, const std::string& name, const Error& error) {
  log.warn("a run's directory cannot be removed; the next start tries again",
           {{"run_id", std::string_view(name)}, {"why", std::string_view(error.detail)}});
}

Result<void> make_run(const std::string& root, const std::string& id,
                      const std::vector<Attachment>& attachments,
                      const std::vector<std::string>& names, Log& log) {
  const std::string path = root + "/" + id;
  int made = ::mkdir(path.c_str(), 0700);
  if (made != 0 && errno == ENOENT) {  // somebody has tidied up
    if (auto rooted = make_root(root); !rooted) return rooted;
    made = ::mkdir(path.c_str(), 0700);
  }
  if (made != 0) return file_failure(errno, "making a run's directory");
  auto filled = fill(path, attachments, names);
  if (filled) return filled;
  const Descriptor parent = open_path(root);
  if (auto removed = remove_tree(parent.number(), id); !removed) report(log, id, removed.error());
  return filled;
}

// One step. True: there is more to do.
bool remove_run(const std::string& root, const std::string& id, Log& log) {
  const Descriptor parent = open_path(root);
  if (!parent.is_open() && errno == ENOENT) return false;
  auto step = parent.is_open() ? remove_tree_step(parent.number(), id, kTreeStepEntriesMax)
                               : file_failure(errno, "opening the directory of the runs");
  if (!step) report(log, id, step.error());
  return step && *step == TreeStep::more;
}

Result<void> clear_root(const std::string& root, Log& log) {
  if (auto made = make_root(root); !made) return made;
  const Descriptor parent = open_path(root);
  if (!parent.is_open()) return file_failure(errno, "opening the directory of the runs");
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return file_failure(error.value(), "reading the directory of the runs");
  for (const std::string& name : names) {
    if (auto removed = remove_tree(parent.number(), name); !removed) {
      report(log, name, removed.error());
    }
  }
  return {};
}

}  // namespace

RunDirs::RunDirs(std::string data_dir, Disk& disk, Log& log)
    : root_(std::move(data_dir) + "/runs"), disk_(disk), log_(log) {}

Async<RunDir> RunDirs::make(std::string run_id, std::vector<Attachment> attachments) {
  if (!is_safe_id(run_id)) co_return unsafe_id();
  RunDir run;
  run.work = root_ + "/" + run_id + "/work";
  run.temp = root_ + "/" + run_id + "/tmp";
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    const std::string& extension = attachments[i].extension;
    run.attachments.push_back(
        fmt::format("attachment-{}{}", i + 1, is_safe_extension(extension) ? extension : ""));
  }
  auto making = disk_.call([root = root_, id = std::move(run_id),
                            attachments = std::move(attachments), names = run.attachments,
                            log = &log_] { return make_run(root, id, attachments, names, *log); });
  auto made = co_await std::move(making);
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return run;
}

void RunDirs::remove(std::string run_id) {
  if (!is_safe_id(run_id)) return;  // make() has made none
  disk_.post_in_steps(
      [root = root_, id = std::move(run_id), log = &log_] { return remove_run(root, id, *log); });
}

Async<void> RunDirs::clear() {
  return disk_.call([root = root_, log = &log_] { return clear_root(root, *log); });
}

}  // namespace clawdforge
