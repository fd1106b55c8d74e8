// EarlierHome is the home of the gateway's user, in which agents kept their conversations before
// each session had a home of its own. When such a session wakes, its conversation is brought into
// its own home. A session that is forked from another gets the other's conversation in the same
// way. Owned by the daemon; the disk and the log outlive it. Io thread only.
#pragma once

#include <cstdint>
#include <string>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "storage/disk/disk.h"

namespace clawdforge {

// A conversation that is larger begins again: it would hold up the disk for too long.
inline constexpr std::int64_t kBroughtFileBytesMax = 256 * 1024 * 1024;
inline constexpr std::size_t kBroughtEntriesMax = 10'000;  // looked at for one session

class EarlierHome {
 public:
  // `home` is where acpx has kept its records, `claude_dir` where Claude has kept its files. Empty:
  // there was no home.
  EarlierHome(std::string home, std::string claude_dir, Disk& disk, Log& log);

  struct Conversation {
    std::string own_dir;           // of the session
    std::string home;              // in it
    std::string working_dir;       // Claude has a folder of this name
    std::string agent_session_id;  // empty: it is a new one
    bool is_acpx = false;          // which program acpx starts, is in a file of the owner's
  };
  // What is in the session's home already stays, and what was never kept is not missed. That it
  // cannot be brought is logged: the conversation begins again then.
  Task<void> bring(Conversation conversation, Lane lane);

  // A conversation of Claude's in the home of one session, and where another session looks for it.
  struct Fork {
    std::string from_home;
    std::string from_dir;  // in which its agent worked
    std::string home;
    std::string working_dir;
    std::string agent_session_id;
  };
  // A conversation that is not there is not missed: the agent that is to load it says so.
  Async<void> copy_for(Fork wanted, Lane lane);

 private:
  const std::string home_;
  const std::string claude_dir_;
  Disk& disk_;
  Log& log_;
};

// What Claude calls the folder of a working directory.
std::string claude_folder_of(const std::string& working_dir);

}  // namespace clawdforge
