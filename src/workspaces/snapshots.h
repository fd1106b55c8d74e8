// Snapshots keep, for each session, with which tree its directory began, and say what has changed.
// Each is a small repository of ours, DATA_DIR/snapshots/ID, which no agent sees: git works with
// its configuration, and not with what lies in the directory
// (docs/adr/0066-git-that-starts-nothing.md). Member of Workspaces; io thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "storage/disk/disk.h"
#include "storage/disk/named_dirs.h"
#include "workspaces/git.h"
#include "workspaces/workspace_records.h"

namespace clawdforge {

class Snapshots {
 public:
  Snapshots(const std::string& data_dir, Disk& disk, Git& git, Log& log);

  std::string path_of(const std::string& id) const { return dirs_.root + "/" + id; }
  Async<void> make(std::string id, std::string alternate, bool is_sha256, Lane lane);
  // Fills its index, and the directory where `fills_work`, with a tree or commit.
  Async<void> read_tree(std::string id, std::string work, std::string tree, bool fills_work);
  // Its index becomes what lies in `work`, but for what .gitignore leaves out.
  Async<void> take_in(std::string id, std::string work);
  // The tree of its index.
  Async<std::string> tree(std::string id);
  // What its index has that `base` has not, and the reverse; an empty `base` is an empty tree.
  Async<WorkDiff> diff(std::string id, std::string base);
  Async<std::vector<ChangedFile>> changed_files(std::string id, std::string base);

  void remove(std::string id, Lane lane);
  // At start: those of other ids go.
  Async<std::int64_t> keep_only(std::vector<std::string> ids);
  void remove_again();

 private:
  GitOrder order_of(const std::string& id) const;

  const NamedDirs dirs_;
  const NamedDirs trash_;
  Disk& disk_;
  Git& git_;
  Log& log_;
};

}  // namespace clawdforge
