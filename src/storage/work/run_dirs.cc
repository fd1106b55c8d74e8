#include "storage/work/run_dirs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "storage/disk/file_error.h"
#include "storage/work/dirs_removal.h"
#include "storage/work/trash.h"

namespace clawdforge {
namespace {

constexpr const char* kSystemFile = "system-prompt.txt";

std::unexpected<Failure> unsafe_run_id() {
  return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
              "the id of a run cannot be the name of a directory");
}

// Only the agent's user can read it, and it goes with the run's directory.
Result<void> write_system_prompt(const NamedDirs& dirs, const std::string& id,
                                 std::string_view system) {
  const Descriptor temp = dirs.open_inside(id, "tmp");
  const Descriptor file(::openat(temp.number(), kSystemFile,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_failure(errno, "making the file of a system prompt");
  while (!system.empty()) {
    const ssize_t count = ::write(file.number(), system.data(), system.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failure(errno, "writing a system prompt");
    system.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> fill(const NamedDirs& dirs, const std::string& id, std::string_view system,
                  AttachmentCopies& copies) {
  const Descriptor directory = dirs.open(id);
  if (!directory.is_open()) return file_failure(errno, "opening a run's directory");
  for (const char* inside : {"work", "tmp"}) {
    if (::mkdirat(directory.number(), inside, 0700) != 0) {
      return file_failure(errno, "making a run's directory");
    }
  }
  if (!system.empty()) {
    if (auto written = write_system_prompt(dirs, id, system); !written) return written;
  }
  Descriptor work(
      ::openat(directory.number(), "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!work.is_open()) return file_failure(errno, "opening a run's directory");
  copies.begin(std::move(work));
  return {};
}

// True: all attachments are there.
Result<bool> copy_on(const NamedDirs& dirs, const std::string& id, AttachmentCopies& copies,
                     Log& log) {
  auto stepped = copies.step();
  if (!stepped) dirs.remove(id, log);  // there is only what we have put there
  return stepped;
}

Result<bool> make_run(const NamedDirs& dirs, const std::string& id, std::string_view system,
                      AttachmentCopies& copies, Log& log) {
  auto made = dirs.make(id);
  if (!made) return std::unexpected(std::move(made.error()));
  if (!*made) return file_failure(EEXIST, "making a run's directory");
  auto filled = fill(dirs, id, system, copies);
  if (filled) return copy_on(dirs, id, copies, log);
  dirs.remove(id, log);
  return std::unexpected(std::move(filled.error()));
}

}  // namespace

RunDirs::RunDirs(const std::string& data_dir, Disk& disk, Log& log)
    : dirs_{data_dir + "/runs", "run_id",
            "a run's directory cannot be removed; the next sweep tries again"},
      trash_(trash_in(data_dir)),
      disk_(disk),
      log_(log) {}

Async<RunDir> RunDirs::make(std::string run_id, RunFiles files, Lane lane) {
  if (!is_dir_name(run_id)) co_return unsafe_run_id();
  RunDir run;
  run.own = dirs_.root + "/" + run_id;
  run.work = run.own + "/work";
  run.temp = run.own + "/tmp";
  const auto copies =
      std::make_shared<AttachmentCopies>(std::move(files.attachments), "attachment");
  if (!files.system_prompt.empty()) run.system_file = run.temp + "/" + kSystemFile;
  auto made = co_await disk_.call(
      lane, [dirs = dirs_, run_id, system = std::move(files.system_prompt), copies, log = &log_] {
        return make_run(dirs, run_id, system, *copies, *log);
      });
  while (made && !*made) {
    made = co_await disk_.call(lane, [dirs = dirs_, run_id, copies, log = &log_] {
      return copy_on(dirs, run_id, *copies, *log);
    });
    if (!made && !was_begun(made.error())) remove(run_id, lane);
  }
  if (!made) co_return std::unexpected(std::move(made.error()));
  run.attachments = copies->names();
  co_return run;
}

void RunDirs::remove(std::string run_id, Lane lane) {
  if (!is_dir_name(run_id)) return;  // make() has made none
  remove_dir(dirs_, std::move(run_id), std::move(lane), disk_, log_);
}

void RunDirs::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

Async<std::int64_t> RunDirs::clear() { return keep_only_dirs({dirs_, trash_, {}}, &disk_, &log_); }

}  // namespace clawdforge
