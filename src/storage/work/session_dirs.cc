#include "storage/work/session_dirs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <iterator>
#include <set>
#include <system_error>

#include "base/ids.h"
#include "storage/disk/file_error.h"
#include "storage/work/dirs_removal.h"

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

// Where the agent has put something under this name, another name is taken: what lies there may be
// a tree of any size, so it is not removed. Gives the name.
Result<std::string> attach_under_free_name(const Attachment& attachment, int work,
                                           const std::string& stem) {
  constexpr int kNamesTried = 8;
  const std::string extension = safe_extension(attachment);
  std::string name = stem + extension;
  for (int i = 0; i < kNamesTried; ++i) {
    auto attached = attach_file(attachment, work, name);
    if (!attached) return std::unexpected(std::move(attached.error()));
    if (*attached) return name;
    std::uint64_t random = 0;
    fill_random(&random, sizeof(random));
    name = fmt::format("{}-{:016x}{}", stem, random, extension);
  }
  return file_failure(EEXIST, "naming an attachment");
}

// Gives the names in `work`. After a failure none of them is left.
Result<std::vector<std::string>> attach_to(const NamedDirs& dirs, const std::string& id,
                                           std::int64_t turn_index,
                                           const std::vector<Attachment>& attachments, Log& log) {
  const Descriptor work = dirs.open_inside(id, "work");
  if (!work.is_open()) return file_failure(errno, "opening a session's directory");
  std::vector<std::string> names;
  for (const Attachment& attachment : attachments) {
    const std::string stem = fmt::format("attachment-{}-{}", turn_index, names.size() + 1);
    auto attached = attach_under_free_name(attachment, work.number(), stem);
    if (attached) {
      names.push_back(std::move(*attached));
      continue;
    }
    for (const std::string& name : names) {
      if (::unlinkat(work.number(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
      log.warn("an attachment of a turn that does not begin cannot be removed",
               {{"session_id", std::string_view(id)},
                {"why", std::string_view(std::generic_category().message(errno))}});
    }
    return std::unexpected(std::move(attached.error()));
  }
  return names;
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
  if (attachments.empty()) co_return std::vector<std::string>();
  const std::string work = of(session_id).work;
  auto attached = co_await disk_.call(
      [dirs = dirs_, id = std::move(session_id), turn_index, attachments = std::move(attachments),
       log = &log_] { return attach_to(dirs, id, turn_index, attachments, *log); });
  if (!attached) co_return std::unexpected(std::move(attached.error()));
  for (std::string& name : *attached) name = work + "/" + name;
  co_return std::move(*attached);
}

void SessionDirs::remove(std::string session_id) {
  if (!is_dir_name(session_id)) return;  // make() has made none
  remove_dir(dirs_, std::move(session_id), disk_, log_);
}

void SessionDirs::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

Async<std::int64_t> SessionDirs::keep_only(std::vector<std::string> session_ids) {
  std::set<std::string> kept(std::make_move_iterator(session_ids.begin()),
                             std::make_move_iterator(session_ids.end()));
  return keep_only_dirs(dirs_, std::move(kept), &disk_, &log_);
}

}  // namespace clawdforge
