#include "storage/work/run_dirs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "storage/disk/file_error.h"
#include "storage/work/dirs_removal.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> unsafe_run_id() {
  return fail(Errc::internal, "internal", "The gateway made a mistake; it is in its log.",
              "the id of a run is no name for a directory");
}

Result<void> fill(const NamedDirs& dirs, const std::string& id,
                  const std::vector<Attachment>& attachments,
                  const std::vector<std::string>& names) {
  const Descriptor directory = dirs.open(id);
  if (!directory.is_open()) return file_failure(errno, "opening a run's directory");
  for (const char* inside : {"work", "tmp"}) {
    if (::mkdirat(directory.number(), inside, 0700) != 0) {
      return file_failure(errno, "making a run's directory");
    }
  }
  if (attachments.empty()) return {};
  const Descriptor work = dirs.open_inside(id, "work");
  if (!work.is_open()) return file_failure(errno, "opening a run's directory");
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    auto attached = attach_file(attachments[i], work.number(), names[i]);
    if (!attached) return std::unexpected(std::move(attached.error()));
    if (!*attached) return file_failure(EEXIST, "linking an attachment");
  }
  return {};
}

Result<void> make_run(const NamedDirs& dirs, const std::string& id,
                      const std::vector<Attachment>& attachments,
                      const std::vector<std::string>& names, Log& log) {
  auto made = dirs.make(id);
  if (!made) return std::unexpected(std::move(made.error()));
  if (!*made) return file_failure(EEXIST, "making a run's directory");
  auto filled = fill(dirs, id, attachments, names);
  if (!filled) dirs.remove(id, log);  // there are only attachments in it
  return filled;
}

}  // namespace

RunDirs::RunDirs(std::string data_dir, Disk& disk, Log& log)
    : dirs_{std::move(data_dir) + "/runs", "run_id",
            "a run's directory cannot be removed; the next sweep tries again"},
      disk_(disk),
      log_(log) {}

Async<RunDir> RunDirs::make(std::string run_id, std::vector<Attachment> attachments) {
  if (!is_dir_name(run_id)) co_return unsafe_run_id();
  RunDir run;
  run.work = dirs_.root + "/" + run_id + "/work";
  run.temp = dirs_.root + "/" + run_id + "/tmp";
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    run.attachments.push_back(
        fmt::format("attachment-{}{}", i + 1, safe_extension(attachments[i])));
  }
  auto made =
      co_await disk_.call([dirs = dirs_, id = std::move(run_id),
                           attachments = std::move(attachments), names = run.attachments,
                           log = &log_] { return make_run(dirs, id, attachments, names, *log); });
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return run;
}

void RunDirs::remove(std::string run_id) {
  if (!is_dir_name(run_id)) return;  // make() has made none
  remove_dir(dirs_, std::move(run_id), disk_, log_);
}

void RunDirs::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

Async<std::int64_t> RunDirs::clear() { return keep_only_dirs(dirs_, {}, &disk_, &log_); }

}  // namespace clawdforge
