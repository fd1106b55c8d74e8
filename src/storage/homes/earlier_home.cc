#include "storage/homes/earlier_home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr std::string_view kAcpxPrefix = "acpx:";  // as agent/acpx_command.h has it
constexpr std::size_t kIdBytesMax = 128;
constexpr std::size_t kCopyBytes = 1024 * 1024;
constexpr const char* kUnfinished = ".brought-unfinished";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// It is the agent's own word, and becomes a name of a file.
bool is_plain_id(std::string_view id) {
  return !id.empty() && id.size() <= kIdBytesMax && id.front() != '.' &&
         std::ranges::all_of(
             id, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

// Agents have written in both homes: no link is followed in either.
Descriptor open_dir_in(int above, const char* name) {
  return Descriptor(::openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Descriptor open_top(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Descriptor made_dir_in(int above, const char* name) {
  if (::mkdirat(above, name, 0700) != 0 && errno != EEXIST) return {};
  return open_dir_in(above, name);
}

Result<void> copy_bytes(int from, int into) {
  std::vector<char> buffer(kCopyBytes);
  std::int64_t copied = 0;
  for (;;) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_failure(errno, "reading an earlier conversation");
    if (got == 0) return {};
    copied += got;
    if (copied > kBroughtFileBytesMax) {
      return file_failure(EFBIG, "bringing an earlier conversation");
    }
    for (ssize_t put = 0; put < got;) {
      const ssize_t written =
          ::write(into, buffer.data() + put, static_cast<std::size_t>(got - put));
      if (written < 0 && errno != EINTR) {
        return file_failure(errno, "writing an earlier conversation");
      }
      if (written > 0) put += written;
    }
  }
}

// It gets its name when it is whole.
Result<void> copy_file(int from, int into, const char* name) {
  struct stat found{};
  if (::fstatat(into, name, &found, AT_SYMLINK_NOFOLLOW) == 0) return {};
  const Descriptor source(::openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!source.is_open() || ::fstat(source.number(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return {};
  }
  if (::unlinkat(into, kUnfinished, 0) != 0 && errno != ENOENT) {
    return file_failure(errno, "bringing an earlier conversation");
  }
  const Descriptor copy(
      ::openat(into, kUnfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy.is_open()) return file_failure(errno, "bringing an earlier conversation");
  auto copied = copy_bytes(source.number(), copy.number());
  if (copied && ::renameat2(into, kUnfinished, into, name, RENAME_NOREPLACE) != 0) {
    copied = file_failure(errno, "bringing an earlier conversation");
  }
  if (!copied) ::unlinkat(into, kUnfinished, 0);
  return copied;
}

// A folder in one home, and the same one in another.
struct Folders {
  Descriptor from;
  Descriptor into;
};

// Not open: there is none to bring from.
Result<Folders> open_folders(const std::string& from_top, const std::string& into_top,
                             std::initializer_list<const char*> from_names,
                             std::initializer_list<const char*> into_names) {
  Folders folders{.from = open_top(from_top), .into = {}};
  for (const char* name : from_names) {
    if (!folders.from.is_open()) return folders;
    folders.from = open_dir_in(folders.from.number(), name);
  }
  if (!folders.from.is_open()) return folders;
  folders.into =
      Descriptor(::open(into_top.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  for (const char* name : into_names) {
    if (!folders.into.is_open()) break;
    folders.into = made_dir_in(folders.into.number(), name);
  }
  if (!folders.into.is_open()) return file_failure(errno, "using the home of a session");
  return folders;
}

template <class Predicate>
Result<void> copy_files(Folders folders, Predicate is_wanted) {
  if (!folders.from.is_open()) return {};
  Directory listed(std::move(folders.from));
  for (std::size_t looked = 0; listed.is_open() && looked < kBroughtEntriesMax; ++looked) {
    const dirent* const entry = listed.next();
    if (entry == nullptr) break;
    if (!is_wanted(std::string_view(entry->d_name))) continue;
    auto copied = copy_file(listed.number(), folders.into.number(), entry->d_name);
    if (!copied) return copied;
  }
  return {};
}

struct Homes {
  std::string home;
  std::string claude_dir;
};

// Of a directory that is the session's alone all is its own; in one that it shares with others
// only the conversation of its name is.
Result<void> bring_transcripts(const Homes& earlier, const EarlierHome::Conversation& wanted) {
  const bool is_own = wanted.working_dir.starts_with(wanted.own_dir + "/");
  const std::string file = wanted.agent_session_id + ".jsonl";
  if (!is_own && !is_plain_id(wanted.agent_session_id)) return {};
  const std::string folder = claude_folder_of(wanted.working_dir);
  auto folders = open_folders(earlier.claude_dir, wanted.home, {"projects", folder.c_str()},
                              {".claude", "projects", folder.c_str()});
  if (!folders) return std::unexpected(std::move(folders.error()));
  return copy_files(std::move(*folders), [&](std::string_view name) {
    return is_own ? name.ends_with(".jsonl") : name == file;
  });
}

Result<void> bring_acpx_record(const Homes& earlier, const EarlierHome::Conversation& wanted) {
  const std::string record = wanted.agent_session_id.substr(kAcpxPrefix.size());
  if (!is_plain_id(record)) return {};
  auto folders =
      open_folders(earlier.home, wanted.home, {".acpx", "sessions"}, {".acpx", "sessions"});
  if (!folders) return std::unexpected(std::move(folders.error()));
  return copy_files(std::move(*folders), [&](std::string_view name) {
    return name == record + ".json" || name.starts_with(record + ".stream.");
  });
}

Result<void> bring_acpx_settings(const Homes& earlier, const EarlierHome::Conversation& wanted) {
  auto folders = open_folders(earlier.home, wanted.home, {".acpx"}, {".acpx"});
  if (!folders) return std::unexpected(std::move(folders.error()));
  return copy_files(std::move(*folders),
                    [](std::string_view name) { return name == "config.json"; });
}

Result<void> bring_all(const Homes& earlier, const EarlierHome::Conversation& wanted) {
  Result<void> done;
  if (wanted.is_acpx) done = bring_acpx_settings(earlier, wanted);
  if (done && !wanted.agent_session_id.empty()) done = bring_transcripts(earlier, wanted);
  if (done && wanted.agent_session_id.starts_with(kAcpxPrefix)) {
    done = bring_acpx_record(earlier, wanted);
  }
  return done;
}

}  // namespace

std::string claude_folder_of(const std::string& working_dir) {
  std::string name = working_dir;
  std::ranges::replace_if(name, [](char c) { return !is_letter_or_digit(c); }, '-');
  return name;
}

EarlierHome::EarlierHome(std::string home, std::string claude_dir, Disk& disk, Log& log)
    : home_(std::move(home)), claude_dir_(std::move(claude_dir)), disk_(disk), log_(log) {}

Task<void> EarlierHome::bring(Conversation conversation, Lane lane) {
  if (home_.empty() || conversation.home.empty()) co_return;
  const std::string id = conversation.agent_session_id;
  const auto brought = co_await disk_.call(
      std::move(lane), [earlier = Homes{home_, claude_dir_}, wanted = std::move(conversation)] {
        return bring_all(earlier, wanted);
      });
  if (brought) co_return;
  log_.warn(
      "an earlier conversation was not brought into its session's home",
      {{"agent_session", std::string_view(id)}, {"why", std::string_view(brought.error().detail)}});
}

Async<void> EarlierHome::copy_for(Fork wanted, Lane lane) {
  return disk_.call(std::move(lane), [wanted = std::move(wanted)]() -> Result<void> {
    if (!is_plain_id(wanted.agent_session_id)) return {};
    const std::string from = claude_folder_of(wanted.from_dir);
    const std::string into = claude_folder_of(wanted.working_dir);
    auto folders =
        open_folders(wanted.from_home, wanted.home, {".claude", "projects", from.c_str()},
                     {".claude", "projects", into.c_str()});
    if (!folders) return std::unexpected(std::move(folders.error()));
    return copy_files(std::move(*folders), [&](std::string_view name) {
      return name == wanted.agent_session_id + ".jsonl";
    });
  });
}

}  // namespace clawdforge
