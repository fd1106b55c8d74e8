#include "storage/work/run_dirs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/ids.h"
#include "storage/disk/file_error.h"
#include "storage/work/dirs_removal.h"
#include "storage/work/trash.h"

namespace clawdforge {

// What lies in DATA_DIR/spare. All calls: the disk's thread.
struct SpareDirs {
  explicit SpareDirs(const std::string& data_dir)
      : dirs{data_dir + "/spare", "name", "a directory made ahead cannot be removed"} {}

  const NamedDirs dirs;
  std::vector<std::string> names;
};

namespace {

constexpr const char* kSystemFile = "system-prompt.txt";

std::unexpected<Failure> unsafe_run_id() {
  return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
              "the id of a run cannot be the name of a directory");
}

// Only the agent's user can read it, and it goes with the run's directory.
Result<void> write_temp_file(const NamedDirs& dirs, const std::string& id, const std::string& name,
                             std::string_view content) {
  const Descriptor temp = dirs.open_inside(id, "tmp");
  const Descriptor file(::openat(temp.number(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_failure(errno, "making a file of a run");
  while (!content.empty()) {
    const ssize_t count = ::write(file.number(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failure(errno, "writing a file of a run");
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> make_places(const NamedDirs& dirs, const std::string& id) {
  const Descriptor directory = dirs.open(id);
  if (!directory.is_open()) return file_failure(errno, "opening a run's directory");
  for (const char* inside : {"work", "tmp", "home"}) {
    if (::mkdirat(directory.number(), inside, 0700) != 0) {
      return file_failure(errno, "making a run's directory");
    }
  }
  return {};
}

Result<void> fill(const NamedDirs& dirs, const std::string& id,
                  const std::map<std::string, std::string>& temp_files, AttachmentCopies& copies) {
  for (const auto& [name, content] : temp_files) {
    if (auto written = write_temp_file(dirs, id, name, content); !written) return written;
  }
  if (copies.is_empty()) return {};
  Descriptor work = dirs.open_inside(id, "work");
  if (!work.is_open()) return file_failure(errno, "opening a run's directory");
  copies.begin(std::move(work));
  return {};
}

// False: there is none, or it cannot be moved.
bool take_spare(SpareDirs& spares, const NamedDirs& dirs, const std::string& id) {
  if (spares.names.empty()) return false;
  const std::string from = spares.dirs.root + "/" + spares.names.back();
  const std::string to = dirs.root + "/" + id;
  spares.names.pop_back();
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0;
}

// One that cannot be made is not reported: the next run makes its own, and says what is wrong.
void make_spare(SpareDirs& spares, Log& log) {
  if (spares.names.size() >= kSpareRunDirsMax) return;
  std::uint64_t random = 0;
  fill_random(&random, sizeof(random));
  std::string name = std::to_string(random);
  if (const auto made = spares.dirs.make(name); !made || !*made) return;
  if (make_places(spares.dirs, name)) {
    spares.names.push_back(std::move(name));
  } else {
    spares.dirs.remove(name, log);
  }
}

// True: all attachments are there.
Result<bool> copy_on(const NamedDirs& dirs, const std::string& id, AttachmentCopies& copies,
                     Log& log) {
  auto stepped = copies.step();
  if (!stepped) dirs.remove(id, log);  // there is only what we have put there
  return stepped;
}

Result<void> make_own(const NamedDirs& dirs, const std::string& id, Log& log) {
  auto made = dirs.make(id);
  if (!made) return std::unexpected(std::move(made.error()));
  if (!*made) return file_failure(EEXIST, "making a run's directory");
  auto placed = make_places(dirs, id);
  if (!placed) dirs.remove(id, log);
  return placed;
}

}  // namespace

RunDirs::RunDirs(const std::string& data_dir, Disk& disk, Log& log)
    : dirs_{data_dir + "/runs", "run_id",
            "a run's directory cannot be removed; the next sweep tries again"},
      spares_(std::make_shared<SpareDirs>(data_dir)),
      trash_(trash_in(data_dir)),
      disk_(disk),
      log_(log) {}

Async<RunDir> RunDirs::make(std::string run_id, RunFiles files, Lane lane) {
  if (!is_dir_name(run_id)) co_return unsafe_run_id();
  RunDir run;
  run.own = dirs_.root + "/" + run_id;
  run.work = run.own + "/work";
  run.temp = run.own + "/tmp";
  run.home = run.own + "/home";
  const auto copies =
      std::make_shared<AttachmentCopies>(std::move(files.attachments), "attachment");
  if (!files.system_prompt.empty()) {
    run.system_file = run.temp + "/" + kSystemFile;
    files.temp_files[kSystemFile] = std::move(files.system_prompt);
  }
  auto made = co_await disk_.call(
      lane,
      [dirs = dirs_, spares = spares_, run_id, temp_files = std::move(files.temp_files), copies,
       has_dir = files.has_dir, log = &log_]() -> Result<bool> {
        if (!has_dir && !take_spare(*spares, dirs, run_id)) {
          if (auto own = make_own(dirs, run_id, *log); !own) return std::unexpected(own.error());
        }
        auto filled = fill(dirs, run_id, temp_files, *copies);
        if (filled) return copy_on(dirs, run_id, *copies, *log);
        dirs.remove(run_id, *log);
        return std::unexpected(std::move(filled.error()));
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

Async<void> RunDirs::move_attachments(std::string run_id, std::string inside,
                                      std::vector<std::string> names, Lane lane) {
  if (names.empty()) co_return Result<void>{};
  co_return co_await disk_.call(std::move(lane),
                                [dirs = dirs_, id = std::move(run_id), inside = std::move(inside),
                                 names = std::move(names)]() -> Result<void> {
                                  const Descriptor from = dirs.open_inside(id, "work");
                                  const Descriptor into = dirs.open_inside(id, inside.c_str());
                                  for (const std::string& name : names) {
                                    if (::renameat2(from.number(), name.c_str(), into.number(),
                                                    name.c_str(), RENAME_NOREPLACE) != 0) {
                                      return file_failure(errno,
                                                          "moving an attachment into a workspace");
                                    }
                                  }
                                  return {};
                                });
}

void RunDirs::remove(std::string run_id, Lane lane) {
  if (!is_dir_name(run_id)) return;  // make() has made none
  remove_dir(dirs_, std::move(run_id), std::move(lane), disk_, log_);
  // Now, when no caller waits for it.
  disk_.post(Lane(), [spares = spares_, log = &log_] { make_spare(*spares, *log); });
}

void RunDirs::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

Async<std::int64_t> RunDirs::clear() {
  // They are empty: only a run puts something into its directory.
  disk_.post(Lane(), [spares = spares_, log = &log_] {
    const auto left = spares->dirs.strays({});
    if (!left) return;  // there is none of them yet
    for (const std::string& name : *left) spares->dirs.remove(name, *log);
  });
  return keep_only_dirs({dirs_, trash_, {}}, &disk_, &log_);
}

}  // namespace clawdforge
