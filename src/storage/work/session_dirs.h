// SessionDirs makes the directories that sessions work in, DATA_DIR/sessions/ID with `work`,
// `tmp` and `home` inside, lends out what is in `work`, and removes them with all that is left
// there. Owned by the daemon; the disk and the log outlive it. Io thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "base/telemetry/log.h"
#include "storage/disk/disk.h"
#include "storage/disk/named_dirs.h"
#include "storage/work/attachments.h"
#include "storage/work/work_files.h"

namespace clawdforge {

// What one listing holds, and what it looks at: an agent can make a tree of any shape.
inline constexpr std::size_t kListedFilesMax = 10'000;
inline constexpr std::size_t kListedDepthMax = 64;
inline constexpr std::size_t kListedEntriesMax = 50'000;
inline constexpr std::size_t kListedPathBytesMax = 4 * 1024 * 1024;

struct SessionDir {
  std::string own;   // with these three in it, and nothing of other sessions
  std::string work;  // absolute
  std::string temp;
  std::string home;  // of an agent that does not have the gateway's
};

class SessionDirs {
 public:
  SessionDirs(const std::string& data_dir, Disk& disk, Log& log);

  // Where they are, or would be. Empty for an id that cannot name a directory: another
  // program may have written its row. Such a session cannot be made and has no files.
  SessionDir of(const std::string& session_id) const;
  // Makes what is not there yet; a session's directory may be made again. Errc::unavailable
  // "disk_full", "disk_busy" or "workspace_unavailable".
  // `temp_files`, by name, are written into `tmp`, in place of what the agent has put there.
  Async<SessionDir> make(std::string session_id, Lane lane = {},
                         std::map<std::string, std::string> temp_files = {});
  // What attach() calls them, unless the agent has put something under such a name.
  static std::vector<std::string> attachment_names(std::int64_t turn_index,
                                                   const std::vector<Attachment>& attachments);
  // Copies files into `work` under the names that their app gave them, else as
  // attachment-TURN-N.ext, and gives their absolute paths. What lies there under such a name stays.
  // Errors as RunDirs::make(); then nothing of this turn is left.
  Async<std::vector<std::string>> attach(std::string session_id, std::int64_t turn_index,
                                         std::vector<Attachment> attachments, Lane lane = {});

  // A session without a directory has no files. `elsewhere` is the directory that it works in
  // instead of its own; empty: its own. So for open().
  Async<WorkListing> list(std::string session_id, Lane lane = {}, std::string elsewhere = {});
  // `path` is foreign: no link is followed out of `work`, and only regular files open.
  // Errc::not_found "file_not_found".
  Async<std::unique_ptr<WorkFileReader>> open(std::string session_id, std::string path,
                                              Lane lane = {}, std::string elsewhere = {});

  // Returns at once; what cannot be removed is logged, and tried again by keep_only().
  void remove(std::string session_id, Lane lane = {});
  // Once more what could not be removed so far. Returns at once.
  void remove_again();
  std::size_t unremoved() const { return dirs_.unremoved(); }
  // At start: makes sure that sessions/ is there, and moves all but these into the trash; gives how
  // many.
  Async<std::int64_t> keep_only(std::vector<SessionId> session_ids);

 private:
  const NamedDirs dirs_;
  const NamedDirs trash_;
  Disk& disk_;
  Log& log_;
};

}  // namespace clawdforge
