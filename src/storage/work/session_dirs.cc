#include "storage/work/session_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "storage/disk/file_error.h"
#include "storage/disk/tree.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> unsafe_session_id() {
  auto refused = file_failure(EINVAL, "making a session's directory");
  refused.error().detail = "the id of a session is no name for a directory";
  return refused;
}

Result<void> make_session(const NamedDirs& dirs, const std::string& id) {
  if (auto made = dirs.make(id); !made) return std::unexpected(std::move(made.error()));
  const Descriptor directory = dirs.open(id);
  if (!directory.is_open()) return file_failure(errno, "opening a session's directory");
  for (const char* inside : {"work", "tmp"}) {
    if (::mkdirat(directory.number(), inside, 0700) == 0) continue;
    if (errno != EEXIST) return file_failure(errno, "making a session's directory");
    // What is there may be a link that the agent has put in its place.
    const Descriptor found(
        ::openat(directory.number(), inside, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!found.is_open()) return file_failure(errno, "using a session's directory");
  }
  return {};
}

Result<void> attach_all(int work, const std::vector<Attachment>& attachments,
                        const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    if (auto removed = remove_tree(work, names[i]); !removed) return removed;
    auto attached = attach_file(attachments[i], work, names[i]);
    if (!attached) return attached;
  }
  return {};
}

Result<void> attach_to(const NamedDirs& dirs, const std::string& id,
                       const std::vector<Attachment>& attachments,
                       const std::vector<std::string>& names, Log& log) {
  const Descriptor work = dirs.open_inside(id, "work");
  if (!work.is_open()) return file_failure(errno, "opening a session's directory");
  auto attached = attach_all(work.number(), attachments, names);
  if (attached) return attached;
  for (const std::string& name : names) {
    if (auto removed = remove_tree(work.number(), name); !removed) {
      log.warn("an attachment of a turn that does not begin cannot be removed",
               {{"session_id", std::string_view(id)},
                {"why", std::string_view(removed.error().detail)}});
    }
  }
  return attached;
}

}  // namespace

SessionDirs::SessionDirs(std::string data_dir, Disk& disk, Log& log)
    : dirs_{std::move(data_dir) + "/sessions", "session_id",
            "a session's directory cannot be removed; the next sweep tries again"},
      disk_(disk),
      log_(log) {}

SessionDir SessionDirs::of(const std::string& session_id) const {
  if (!is_dir_name(session_id)) return {};
  const std::string path = dirs_.root + "/" + session_id;
  return {.work = path + "/work", .temp = path + "/tmp"};
}

Async<SessionDir> SessionDirs::make(std::string session_id) {
  if (!is_dir_name(session_id)) co_return unsafe_session_id();
  SessionDir made = of(session_id);
  auto done = co_await disk_.call(
      [dirs = dirs_, id = std::move(session_id)] { return make_session(dirs, id); });
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return made;
}

Async<std::vector<std::string>> SessionDirs::attach(std::string session_id, std::int64_t turn_index,
                                                    std::vector<Attachment> attachments) {
  if (!is_dir_name(session_id)) co_return unsafe_session_id();
  std::vector<std::string> names;
  std::vector<std::string> paths;
  const std::string work = of(session_id).work;
  for (std::size_t i = 0; i < attachments.size(); ++i) {
    names.push_back(
        fmt::format("attachment-{}-{}{}", turn_index, i + 1, safe_extension(attachments[i])));
    paths.push_back(work + "/" + names.back());
  }
  if (names.empty()) co_return paths;
  auto attached =
      co_await disk_.call([dirs = dirs_, id = std::move(session_id),
                           attachments = std::move(attachments), names = std::move(names),
                           log = &log_] { return attach_to(dirs, id, attachments, names, *log); });
  if (!attached) co_return std::unexpected(std::move(attached.error()));
  co_return paths;
}

void SessionDirs::remove(std::string session_id) {
  if (!is_dir_name(session_id)) return;  // make() has made none
  disk_.post_in_steps([dirs = dirs_, id = std::move(session_id), log = &log_] {
    return dirs.remove_step(id, *log);
  });
}

void SessionDirs::remove_again() {
  disk_.post([dirs = dirs_, log = &log_] { dirs.remove_again(*log); });
}

Async<std::int64_t> SessionDirs::keep_only(std::vector<std::string> session_ids) {
  std::set<std::string> kept(std::make_move_iterator(session_ids.begin()),
                             std::make_move_iterator(session_ids.end()));
  auto removed = std::make_shared<std::int64_t>(0);
  auto keeping = disk_.call([dirs = dirs_, kept = std::move(kept), log = &log_, removed] {
    return dirs.keep_only(kept, *log, *removed);
  });
  auto done = co_await std::move(keeping);
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return *removed;
}

}  // namespace clawdforge
