// Trash is DATA_DIR/trash. What a start finds that no row knows is renamed into it, and removed
// from there in steps when the gateway already serves: an agent can leave millions of files. What a
// gateway has not removed when it ends, the next one does. Owned by the daemon; the disk and the
// log outlive it. Io thread only.
#pragma once

#include <cstddef>
#include <string>

#include "base/telemetry/log.h"
#include "storage/disk/disk.h"
#include "storage/disk/named_dirs.h"

namespace clawdforge {

// The place alone, for those who move something there.
NamedDirs trash_in(const std::string& data_dir);

class Trash {
 public:
  Trash(const std::string& data_dir, Disk& disk, Log& log)
      : dirs_(trash_in(data_dir)), disk_(disk), log_(log) {}

  // Removes all that is in it. Returns at once; the log says when it is empty, if there was
  // something.
  void empty();
  // Once more what could not be removed so far. Returns at once.
  void remove_again();
  std::size_t unremoved() const { return dirs_.unremoved(); }

 private:
  const NamedDirs dirs_;
  Disk& disk_;
  Log& log_;
};

}  // namespace clawdforge
