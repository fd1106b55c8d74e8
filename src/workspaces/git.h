// Git runs Debian's git with an argv, so that nothing that a repository says can start another
// program: no hooks, no file system monitor, no filters, no external diff, no submodules, nothing
// of the owner's or the system's configuration, no network
// (docs/adr/0066-git-that-starts-nothing.md). Io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "workspaces/programs.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kGitTimeMax{120};              // for one call
inline constexpr std::size_t kGitOutputBytesMax = 32 * 1024 * 1024;  // for one call

struct GitOrder {
  std::string git_dir = {};     // empty: found from `directory`
  std::string work_tree = {};   // empty: none
  std::string directory = "/";  // where it runs
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};  // beside what every call has
  std::string input = {};
  std::size_t output_bytes_max = kGitOutputBytesMax;
};

class Git {
 public:
  Git(Programs& programs, Log& log) : programs_(programs), log_(log) {}

  // However git ends. Errors as Programs::run().
  Async<ProgramEnd> call(GitOrder order);
  // What it said. Errc::unavailable "git_failed" unless it went well; the log has its words.
  Async<std::string> run(GitOrder order);

 private:
  Programs& programs_;
  Log& log_;
};

}  // namespace clawdforge
