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
void remove_dir(const NamedDirs& dirs, std::string id, Disk& disk, Log& log);

// Once more what could not be removed so far. Returns at once.
void remove_dirs_again(const NamedDirs& dirs, Disk& disk, Log& log);

// At start: makes the root, and removes all in it but these; gives how many. What cannot be
// removed is logged. Errc::unavailable "disk_full", "disk_busy" or "workspace_unavailable".
Async<std::int64_t> keep_only_dirs(NamedDirs dirs, std::set<std::string> ids, Disk* disk, Log* log);

}  // namespace clawdforge
