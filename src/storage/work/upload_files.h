// UploadFiles keeps what apps bring: DATA_DIR/uploads/DIGEST, and while it is arriving,
// a nameless file that the kernel drops with its last descriptor. Owned by the daemon;
// the disk outlives it and every file that is arriving. Io thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/secret.h"
#include "storage/disk/disk.h"
#include "storage/disk/unremoved.h"

namespace clawdforge {

// A file that is arriving. Dropping it drops the file.
class IncomingFile {
 public:
  struct File;

  IncomingFile(std::shared_ptr<File> file, Lane lane, Disk& disk);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  // One at a time. Blocks of 256 KiB to 1 MiB are best. Errc::unavailable "disk_full",
  // "disk_busy" or "workspace_unavailable"; after an error the file cannot be kept.
  Async<void> append(std::string bytes);
  // Syncs it and gives it its name: from now on it stays, also over a power cut. Once.
  // After an error it is not there.
  Async<void> keep(Digest token_digest);

  std::int64_t size() const { return size_; }

 private:
  std::shared_ptr<File> file_;  // shared with the work on the disk's thread
  const Lane lane_;
  Disk& disk_;
  std::int64_t size_ = 0;
};

class UploadFiles {
 public:
  // No upload takes the last `free_bytes_min` of the disk: they are for runs and sessions.
  UploadFiles(std::string data_dir, Disk& disk, std::int64_t free_bytes_min = 0);

  // Errc::unavailable "disk_low" when the disk has less than its floor; so has append().
  Async<std::unique_ptr<IncomingFile>> begin(Lane lane = {});
  std::string path_of(const Digest& token_digest) const;
  // Returns at once. One that cannot be removed has no row any more, and is tried again by
  // remove_again() and by the next start.
  void remove(std::vector<Digest> token_digests, Lane lane = {});
  void remove_again();
  std::size_t unremoved() const { return unremoved_->count(); }

  struct Removal {
    std::vector<Digest> gone;  // now, or before
    std::string why_not;       // of the last of the others, for the log
  };
  // The same, and says what came of it.
  Async<Removal> remove_and_tell(std::vector<Digest> token_digests);

  // The names of all files there: for finding those that no row knows.
  Async<std::vector<std::string>> names();
  // What is not there is removed. An error names one of those that could not be.
  Async<void> remove_named(std::vector<std::string> names);

 private:
  const std::string root_;
  Disk& disk_;
  const std::int64_t free_bytes_min_;
  const std::shared_ptr<Unremoved> unremoved_ = std::make_shared<Unremoved>();
};

}  // namespace clawdforge
