// NamedDirs is a directory of ours that holds one directory for each run, or each session,
// under its id: DATA_DIR/runs/ID. A value, copied into jobs of the disk's thread; every call
// blocks. Nothing below is followed that is a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/result.h"
#include "storage/disk/unremoved.h"

namespace clawdforge {

// What an id may be made of: it becomes a name in the file system.
bool is_dir_name(const std::string& id);

class NamedDirs {
 public:
  NamedDirs(std::string absolute_root, std::string_view key, std::string_view complaint)
      : root(std::move(absolute_root)), id_key(key), stuck(complaint) {}

  const std::string root;         // absolute
  const std::string_view id_key;  // of the log: "run_id"
  const std::string_view stuck;   // what the log says when one cannot be removed

  // All below: Errc::unavailable "disk_full" or "workspace_unavailable".

  // Makes the root if it is not there.
  Result<void> make_root() const;
  // Makes the directory of this id, 0700, and the root where somebody has removed it. False:
  // there is something of this name already.
  Result<bool> make(const std::string& id) const;
  // What is not there, or no directory, is not open; errno says why.
  Descriptor open(const std::string& id) const;
  Descriptor open_inside(const std::string& id, const char* inside) const;

  // One step of the removal; true: there is more to do. What cannot be removed is logged.
  bool remove_step(const std::string& id, Log& log) const;
  // The whole removal.
  void remove(const std::string& id, Log& log) const;
  // Tries once more what could not be removed: the reason may be gone.
  void remove_again(Log& log) const;
  std::size_t unremoved() const { return unremoved_->count(); }  // any thread
  // Makes the root, and removes all in it but these; `removed` is how many. What cannot be
  // removed is logged.
  Result<void> keep_only(const std::set<std::string>& ids, Log& log, std::int64_t& removed) const;

 private:
  std::shared_ptr<Unremoved> unremoved_ = std::make_shared<Unremoved>();  // of all copies

  Descriptor open_root() const;
  void report(Log& log, const std::string& id, const Failure& error) const;
};

}  // namespace clawdforge
