#include "storage/work/session_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "storage/disk/file_error.h"
#include "storage/work/dirs_removal.h"
#include "storage/work/trash.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> unsafe_session_id() {
  auto refused = file_failure(EINVAL, "making a session's directory");
  refused.error().detail = "the id of a session cannot be the name of a directory";
  return refused;
}

Result<void> make_session(const NamedDirs& dirs, const std::string& id) {
  if (auto made = dirs.make(id); !made) return std::unexpected(std::move(made.error()));
  const Descriptor directory = dirs.open(id);
  if (!directory.is_open()) return file_failure(errno, "opening a session's directory");
  for (const char* inside : {"work", "tmp", "home"}) {
    if (::mkdirat(directory.number(), inside, 0700) == 0) continue;
    if (errno != EEXIST) return file_failure(errno, "making a session's directory");
    // What is there may be a link that the agent has put in its place.
    const Descriptor found(
        ::openat(directory.number(), inside, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!found.is_open()) return file_failure(errno, "using a session's directory");
  }
  return {};
}

// What lies there under this name may be a link of the agent's: it is removed, not followed.
Result<void> write_temp_file(int temp, const std::string& name, std::string_view content) {
  if (::unlinkat(temp, name.c_str(), 0) != 0 && errno != ENOENT) {
    return file_failure(errno, "removing an old file of a session");
  }
  const Descriptor file(
      ::openat(temp, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_failure(errno, "making a file of a session");
  while (!content.empty()) {
    const ssize_t count = ::write(file.number(), content.data(), content.size());
    if (count < 0 && errno != EINTR) return file_failure(errno, "writing a file of a session");
    if (count > 0) content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> make_session_with(const NamedDirs& dirs, const std::string& id,
                               const std::map<std::string, std::string>& temp_files) {
  auto made = make_session(dirs, id);
  if (!made || temp_files.empty()) return made;
  const Descriptor temp = dirs.open_inside(id, "tmp");
  if (!temp.is_open()) return file_failure(errno, "opening a session's directory");
  for (const auto& [name, content] : temp_files) {
    auto written = write_temp_file(temp.number(), name, content);
    if (!written) return written;
  }
  return {};
}

// True: all are there. After a failure nothing of them is left.
std::string attachment_prefix(std::int64_t turn_index) {
  return fmt::format("attachment-{}", turn_index);
}

Result<bool> attach_on(AttachmentCopies& copies, Log& log) {
  auto stepped = copies.step();
  if (!stepped) copies.undo(log);
  return stepped;
}

Result<bool> attach_first(const NamedDirs& dirs, const std::string& id, AttachmentCopies& copies,
                          Log& log) {
  Descriptor work = dirs.open_inside(id, "work");
  if (!work.is_open()) return file_failure(errno, "opening a session's directory");
  copies.begin(std::move(work));
  return attach_on(copies, log);
}

}  // namespace

SessionDirs::SessionDirs(const std::string& data_dir, Disk& disk, Log& log)
    : dirs_{data_dir + "/sessions", "session_id",
            "a session's directory cannot be removed; the next sweep tries again"},
      trash_(trash_in(data_dir)),
      disk_(disk),
      log_(log) {}

SessionDir SessionDirs::of(const std::string& session_id) const {
  if (!is_dir_name(session_id)) return {};
  const std::string path = dirs_.root + "/" + session_id;
  return {.own = path, .work = path + "/work", .temp = path + "/tmp", .home = path + "/home"};
}

Async<SessionDir> SessionDirs::make(std::string session_id, Lane lane,
                                    std::map<std::string, std::string> temp_files) {
  if (!is_dir_name(session_id)) co_return unsafe_session_id();
  SessionDir made = of(session_id);
  auto done = co_await disk_.call(
      std::move(lane), [dirs = dirs_, id = std::move(session_id), files = std::move(temp_files)] {
        return make_session_with(dirs, id, files);
      });
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return made;
}

std::vector<std::string> SessionDirs::attachment_names(std::int64_t turn_index,
                                                       const std::vector<Attachment>& attachments) {
  return clawdforge::attachment_names(attachments, attachment_prefix(turn_index),
                                      AttachmentNames::own);
}

Async<std::vector<std::string>> SessionDirs::attach(std::string session_id, std::int64_t turn_index,
                                                    std::vector<Attachment> attachments,
                                                    Lane lane) {
  if (!is_dir_name(session_id)) co_return unsafe_session_id();
  if (attachments.empty()) co_return std::vector<std::string>();
  const std::string work = of(session_id).work;
  const auto copies = std::make_shared<AttachmentCopies>(
      std::move(attachments), attachment_prefix(turn_index), AttachmentNames::own);
  auto attached =
      co_await disk_.call(lane, [dirs = dirs_, id = std::move(session_id), copies, log = &log_] {
        return attach_first(dirs, id, *copies, *log);
      });
  while (attached && !*attached) {
    attached =
        co_await disk_.call(lane, [copies, log = &log_] { return attach_on(*copies, *log); });
    if (!attached && !was_begun(attached.error())) {
      disk_.post(lane, [copies, log = &log_] { copies->undo(*log); });
    }
  }
  if (!attached) co_return std::unexpected(std::move(attached.error()));
  std::vector<std::string> paths;
  for (const std::string& name : copies->names()) paths.push_back(work + "/" + name);
  co_return paths;
}

void SessionDirs::remove(std::string session_id, Lane lane) {
  if (!is_dir_name(session_id)) return;  // make() has made none
  remove_dir(dirs_, std::move(session_id), std::move(lane), disk_, log_);
}

void SessionDirs::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

Async<std::int64_t> SessionDirs::keep_only(std::vector<SessionId> session_ids) {
  std::set<std::string> kept;
  for (SessionId& id : session_ids) kept.insert(std::move(id).str());
  return keep_only_dirs({dirs_, trash_, std::move(kept)}, &disk_, &log_);
}

}  // namespace clawdforge
