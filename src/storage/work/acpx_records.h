// AcpxRecords removes what acpx has written down about a session that is over: its record
// and journals, with every prompt and answer in them, and the lock and socket of a queue
// owner that could not clean up. They lie in the login's home and in /tmp, outside of the
// data directory, because acpx shares the home with the login that it needs; so only the
// files of one record are touched, by the names that acpx gives them. Owned by the daemon;
// the disk outlives it. Io thread only.
#pragma once

#include <string>
#include <string_view>

#include "base/async/async.h"
#include "storage/disk/disk.h"

namespace clawdforge {

class AcpxRecords {
 public:
  // `home` is the login's. `socket_root` is where acpx has its sockets.
  AcpxRecords(std::string home, Disk& disk, std::string socket_root = "/tmp");

  // `agent_session_id` is a session's, of any agent: what is none of acpx's is left alone.
  // What is not there is removed. Errc::unavailable.
  Async<void> remove(std::string agent_session_id, Lane lane = {});

 private:
  const std::string home_;
  const std::string socket_root_;
  Disk& disk_;
};

}  // namespace clawdforge
