// ProgramTrials runs small programs to their end and keeps a little of what they print, each behind
// a launcher as the gateway's agents are. Blocks; for a command.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/result.h"
#include "base/telemetry/log.h"
#include "process/tree/spawner.h"

namespace clawdforge {

inline constexpr std::size_t kTrialOutputBytesMax = 4096;
// For one program. A login that is being renewed must not be cut short: it would be lost.
inline constexpr std::chrono::seconds kTrialProgramMax{30};
inline constexpr std::chrono::seconds kTrialKillGraceMax{30};  // between TERM and KILL

struct TrialOutcome {
  bool has_exited = false;  // else it did not start, was killed, or took too long
  int exit_code = 0;
  std::string output;  // its beginning
};

class ProgramTrials {
 public:
  // An error: the launcher does not start; its message says why.
  static Result<std::unique_ptr<ProgramTrials>> make();

  bool uses_namespaces() const { return spawner_->uses_namespaces(); }
  JailMeans jail_means() const { return spawner_->jail_means(); }
  const std::string& jail_obstacle() const { return spawner_->jail_obstacle(); }
  TrialOutcome run(std::vector<std::string> argv, std::map<std::string, std::string> environment);

 private:
  ProgramTrials() = default;

  Log log_{LogLevel::error, LogFormat::text};
  IoContext io_{1};
  std::unique_ptr<Spawner> spawner_;
};

}  // namespace clawdforge
