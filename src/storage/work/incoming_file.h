// The inside of IncomingFile: what the disk's thread works on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "storage/work/upload_files.h"

namespace clawdforge {

// An upload is never written to, because runs get copies of it at any time (see RunDirs). The one
// descriptor that was opened with the file writes all the same.
inline constexpr mode_t kUploadMode = 0400;

struct IncomingFile::File {
  File(Descriptor in, Descriptor file, std::string partial)
      : directory(std::move(in)), content(std::move(file)), partial_name(std::move(partial)) {}
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // All below: the disk's thread.
  Result<void> append(const std::string& bytes);
  Result<void> keep(const std::string& name);

  Descriptor directory;
  Descriptor content;
  std::string partial_name;  // empty: the file has none, as it should
  std::int64_t written = 0;
  std::int64_t handed_over = 0;     // of these, to the disk
  std::int64_t free_bytes_min = 0;  // what has to stay free on the disk
  bool is_broken = false;
};

// Errc::unavailable "disk_low" when the disk of this descriptor has less free than that. Of a disk
// that does not say how much it has, all is taken to be free.
Result<void> check_floor(int on_disk, std::int64_t free_bytes_min);

// For file systems that know no nameless files: `.arriving-N`. One that a crash leaves
// behind is a name that no row knows, and goes at the next start.
Result<std::shared_ptr<IncomingFile::File>> begin_named(Descriptor directory);

}  // namespace clawdforge
