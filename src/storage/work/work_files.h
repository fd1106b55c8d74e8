// The files in a session's working directory, as a caller may list and read them. This header
// shows nothing else of the storage: the API may include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "base/clock.h"

namespace clawdforge {

class Disk;

struct WorkFile {
  std::string path;  // relative to `work`, valid UTF-8
  std::int64_t size = 0;
  TimePoint modified_at;
};

struct WorkListing {
  // Regular files only, by path. Names that are not valid UTF-8 are left out, with all that
  // is below them: a caller could not ask for them.
  std::vector<WorkFile> files;
  bool is_truncated = false;  // there is more than the limits allow, or deeper
};

// One file that is being read. Dropping it closes it.
class WorkFileReader {
 public:
  struct File;
  WorkFileReader(std::shared_ptr<File> file, std::int64_t size, Lane lane, Disk& disk);
  ~WorkFileReader();
  WorkFileReader(const WorkFileReader&) = delete;
  WorkFileReader& operator=(const WorkFileReader&) = delete;

  std::int64_t size() const { return size_; }
  // The next bytes; empty: the end. One at a time. Never more than size() in all, also of a
  // file that grows meanwhile; less of one that shrinks. Errc::unavailable.
  Async<std::string> read(std::size_t bytes_max);

 private:
  std::shared_ptr<File> file_;  // shared with the work on the disk's thread
  const std::int64_t size_;
  const Lane lane_;
  Disk& disk_;
};

}  // namespace clawdforge
