// AnswerFiles keeps the answers of jobs that are too large for the ledger: DATA_DIR/jobs/ID. The
// job's row, which is written after the file, says that it is there. Owned by the daemon; the disk
// outlives it. Io thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"

namespace clawdforge {

class Disk;

class AnswerFiles {
 public:
  AnswerFiles(std::string data_dir, Disk& disk)
      : root_(std::move(data_dir) + "/jobs"), disk_(disk) {}

  // Synced when this returns: it stays, also over a power cut. Errc::unavailable.
  Async<void> keep(std::string name, std::shared_ptr<const std::string> text, Lane lane);
  // At most `bytes_max` from `offset` on; empty: the end.
  Async<std::string> read(std::string name, std::int64_t offset, std::size_t bytes_max,
                          Lane lane) const;
  // What is not there is removed.
  Async<void> remove(std::vector<std::string> names);
  Async<std::vector<std::string>> names() const;

 private:
  const std::string root_;
  Disk& disk_;
};

}  // namespace clawdforge
