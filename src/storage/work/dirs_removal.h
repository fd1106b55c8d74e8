// Removing directories in which agents have lived: they may hold millions of entries, so each is
// removed in steps, and other jobs of the disk get their turn in between. Io thread only; disk and
// log outlive what is posted.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "storage/disk/disk.h"
#include "storage/disk/named_dirs.h"

namespace clawdforge {

// Returns at once. What cannot be removed is logged, and tried again by remove_dirs_again().
void remove_dir(const NamedDirs& dirs, std::string id, Lane lane, Disk& disk, Log& log);

// Once more what could not be removed so far. Returns at once.
void remove_dirs_again(const NamedDirs& dirs, Disk& disk, Log& log);

// At start: makes both roots, and moves all in the first but these ids into the trash, or removes
// it in steps where it cannot be moved; gives how many. Does not wait for a removal.
// Errc::unavailable "disk_full", "disk_busy" or "workspace_unavailable".
struct KeptDirs {
  NamedDirs dirs;
  NamedDirs trash;
  std::set<std::string> ids;
};
Async<std::int64_t> keep_only_dirs(KeptDirs kept, Disk* disk, Log* log);

}  // namespace clawdforge
