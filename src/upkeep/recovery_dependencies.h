// What the recovery at start works with. Each thing in it outlives the recovery.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "ledger/ledger.h"
#include "storage/work/run_dirs.h"
#include "storage/work/session_dirs.h"
#include "storage/work/upload_files.h"

namespace clawdforge {

struct RecoveryDependencies {
  IoExecutor executor;
  Ledger& ledger;
  RunDirs& run_dirs;
  SessionDirs& session_dirs;
  UploadFiles& upload_files;
  const Clock& clock;
  Log& log;
  Metrics& metrics;
  std::chrono::milliseconds kill_grace{};
  // While one of these exists, an agent is saving its login.
  std::vector<std::string> busy_paths = {};
};

}  // namespace clawdforge
