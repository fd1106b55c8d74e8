// TreeCopy is one directory on its way into another, with all that is in it. Blocks of files are
// shared where the file system can (FICLONE). Links are copied as links and never followed; what is
// neither a file, nor a directory, nor a link is left out. Its steps block: they are for the disk's
// thread. Between two of them it belongs to its maker.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "storage/disk/directory.h"

namespace clawdforge {

// What a copy may hold: over it, it is Errc::too_large "workspace_too_large".
inline constexpr std::size_t kCopiedEntriesMax = 500'000;
inline constexpr std::int64_t kCopiedBytesMax = std::int64_t{8} * 1024 * 1024 * 1024;
inline constexpr std::size_t kCopiedDepthMax = 128;
// What is copied before the disk's thread looks at the work of others again.
inline constexpr std::size_t kCopyStepEntriesMax = 500;
inline constexpr std::size_t kCopyStepBytesMax = 8 * 1024 * 1024;

class TreeCopy {
 public:
  // Both absolute and there; `into` is ours and empty, or has only `left_out`, which is a name at
  // the top of `from` that is not copied; empty: all is copied.
  TreeCopy(std::string from, std::string into, std::string left_out = {});

  // True: all is there. Errc::too_large; Errc::unavailable "disk_full" or "workspace_unavailable".
  // After an error some of it is there.
  Result<bool> step();

 private:
  // A directory whose entries are being copied.
  struct Level {
    Directory source;
    Descriptor target;
    struct stat found{};
  };

  Result<void> begin();
  Result<bool> next_entry();
  Result<void> copy_entry(const std::string& name);
  Result<void> enter(const std::string& name, const struct stat& found);
  Result<void> begin_file(const std::string& name, const struct stat& found);
  Result<void> copy_link(const std::string& name);
  Result<std::size_t> continue_file(std::size_t bytes_max);
  Result<void> end_level();

  const std::string from_;
  const std::string into_;
  const std::string left_out_;
  std::vector<Level> levels_;
  bool has_begun_ = false;
  Descriptor source_;  // of the file that is being copied
  Descriptor target_;
  struct stat found_{};
  std::size_t entries_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace clawdforge
