// Git runs Debian's git with an argv, so that nothing that a repository says can start another
// program: no hooks, no file system monitor, no filters, no external diff, no submodules, nothing
// of the owner's or the system's configuration, no network
// (docs/adr/0066-git-that-starts-nothing.md). Where agents are jailed it is, too, and sees only the
// repositories and directories of its order. Io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "model/workspace.h"
#include "storage/disk/disk.h"
#include "workspaces/programs.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kGitTimeMax{120};              // for one call
inline constexpr std::size_t kGitOutputBytesMax = 32 * 1024 * 1024;  // for one call

struct GitOrder {
  std::string git_dir = {};     // empty: found from `directory`
  std::string work_tree = {};   // empty: none
  bool writes_work = false;     // into the work tree
  std::string directory = "/";  // where it runs
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};  // beside what every call has
  std::string input = {};
  std::vector<VisiblePath> sees = {};  // beside the directories above
  std::size_t output_bytes_max = kGitOutputBytesMax;
};

class Git {
 public:
  Git(Programs& programs, Disk& disk, Log& log, GitJail jail)
      : programs_(programs), disk_(disk), log_(log), jail_(std::move(jail)) {}

  // However git ends. Errors as Programs::run().
  Async<ProgramEnd> call(GitOrder order);
  // What it said. Errc::unavailable "git_failed" unless it went well; the log has its words.
  Async<std::string> run(GitOrder order);

 private:
  Async<JailPlan> jail_of(GitOrder order);

  Programs& programs_;
  Disk& disk_;
  Log& log_;
  const GitJail jail_;
};

}  // namespace clawdforge
