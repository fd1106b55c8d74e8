// RunDirs makes the directories that runs work in, DATA_DIR/runs/RUN_ID with `work`,
// `tmp` and `home` inside, and removes them with all that is left there. When it has removed one it
// makes one ahead, in DATA_DIR/spare: the next run gets that one under its own name, which takes a
// seventh of the time. Owned by the daemon; the disk and the log outlive it. Io thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "storage/disk/disk.h"
#include "storage/disk/named_dirs.h"
#include "storage/work/attachments.h"

namespace clawdforge {

// Directories made ahead; those over it are made when a run begins.
inline constexpr std::size_t kSpareRunDirsMax = 8;

struct SpareDirs;

// What a run finds in its directory.
struct RunFiles {
  std::vector<Attachment> attachments;
  std::string system_prompt;  // empty: there is no file for it
  bool has_dir = false;       // the run's directory was made ahead, for its spare agent
  // Made in `temp`: names and contents.
  std::map<std::string, std::string> temp_files = {};
};

struct RunDir {
  std::string own;  // with these three in it, and nothing of other runs
  std::string work;
  std::string temp;
  std::string home;                      // of an agent that does not have the gateway's
  std::string system_file;               // absolute, in `temp`; empty: none
  std::vector<std::string> attachments;  // names in `work`: attachment-1.txt, ...
};

class RunDirs {
 public:
  RunDirs(const std::string& data_dir, Disk& disk, Log& log);

  // An error leaves nothing behind: Errc::not_found "file_not_found" when an upload's file
  // has gone, Errc::unavailable "disk_full", "disk_busy" or "workspace_unavailable"
  // otherwise.
  Async<RunDir> make(std::string run_id, RunFiles files, Lane lane = {});

  // Moves attachments from `work` into the directory `inside` of the run, which is there.
  // Errc::unavailable when something of such a name is there already.
  Async<void> move_attachments(std::string run_id, std::string inside,
                               std::vector<std::string> names, Lane lane = {});

  // Returns at once; nothing below the directory that is a link is followed. What cannot
  // be removed is logged, and tried again by clear() at the next start.
  void remove(std::string run_id, Lane lane = {});
  // Once more what could not be removed so far. Returns at once.
  void remove_again();
  std::size_t unremoved() const { return dirs_.unremoved(); }

  // At start: makes sure that runs/ is there, and moves what an earlier life has left into the
  // trash; gives how many. Directories that were made ahead are removed, and do not count.
  Async<std::int64_t> clear();

 private:
  const NamedDirs dirs_;
  const std::shared_ptr<SpareDirs> spares_;  // the disk's thread
  const NamedDirs trash_;
  Disk& disk_;
  Log& log_;
};

}  // namespace clawdforge
