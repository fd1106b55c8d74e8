// NamedDirs is a directory of ours that holds one directory for each run, or each session,
// under its id: DATA_DIR/runs/ID. A value, copied into jobs of the disk's thread; every call
// blocks. Nothing below is followed that is a link.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/telemetry/log.h"
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
  // Makes the directory of this id, 0700, and the root where it has been removed. False:
  // there is something of this name already.
  Result<bool> make(const std::string& id) const;
  // What is not there, or no directory, is not open; errno says why.
  Descriptor open(const std::string& id) const;
  Descriptor open_inside(const std::string& id, const char* inside) const;

  // What lies in the root under other names than these.
  Result<std::vector<std::string>> strays(const std::set<std::string>& ids) const;

  // Renames what lies in the root under this name, a file or a directory, into the root of
  // `others`, under a new name there: however much it holds, that takes no time.
  Result<void> move_to(const NamedDirs& others, const std::string& name) const;

  // One step of a removal, of at most kTreeStepEntriesMax entries. What cannot be removed is
  // logged and noted as unremoved.
  enum class Removal { more, done, stuck };
  Removal remove_step(const std::string& id, Log& log) const;
  // All steps in one: for a directory in which no agent has lived.
  void remove(const std::string& id, Log& log) const;

  // What could not be removed so far: the reason may be gone later. The count: any thread.
  std::vector<std::string> unremoved_names() const { return unremoved_->names(); }
  std::size_t unremoved() const { return unremoved_->count(); }

 private:
  std::shared_ptr<Unremoved> unremoved_ = std::make_shared<Unremoved>();  // of all copies

  Descriptor open_root() const;
  void report(Log& log, const std::string& id, const Failure& error) const;
};

}  // namespace clawdforge
