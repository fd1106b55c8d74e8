// What lies in the data directory's subdirectories, for the check that compares it with the ledger:
// one entry at a time, so that their number does not matter. Blocks; nothing is followed that is a
// link, and nothing is changed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace clawdforge {

enum class DataSubdir { uploads, runs, sessions, jobs };

struct DataSubdirEntry {
  std::string name;
  bool is_directory = false;
  std::int64_t size = 0;
  TimePoint changed_at;  // its content, name or rights
};

// Calls `see` with each entry until it gives an error. A subdir that is not there is empty, and
// what goes meanwhile is left out. Errc::unavailable: it cannot be read.
Result<void> visit_subdir(const std::string& data_dir, DataSubdir subdir,
                          const std::function<Result<void>(const DataSubdirEntry&)>& see);

// None: there is nothing of this name.
Result<std::optional<DataSubdirEntry>> look_at(const std::string& data_dir, DataSubdir subdir,
                                               const std::string& name);

}  // namespace clawdforge
