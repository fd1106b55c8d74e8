// Brings the files of uploads and their rows together again at start, after a crash, or after a
// person has tidied up: a file that no row knows goes, and a row without a file.
#pragma once

#include <cstdint>

#include "base/async/async.h"
#include "upkeep/recovery_dependencies.h"

namespace clawdforge {

struct UploadsRecovered {
  std::int64_t files_removed = 0;
  std::int64_t rows_removed = 0;
};

// Before the gateway takes work. Io thread.
Async<UploadsRecovered> recover_uploads(RecoveryDependencies deps);

}  // namespace clawdforge
