// TreeArchive is a directory as a tar file, made piece by piece: nothing of it is held. Links are
// put in as links; what is neither a file, nor a directory, nor a link is left out. Its steps
// block: they are for the disk's thread. Between two of them it belongs to its maker.
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

// What an archive may hold: over it, it is cut off, so that it does not look whole.
inline constexpr std::size_t kArchivedEntriesMax = 500'000;
inline constexpr std::int64_t kArchivedBytesMax = std::int64_t{8} * 1024 * 1024 * 1024;
inline constexpr std::size_t kArchivedDepthMax = 128;

class TreeArchive {
 public:
  // `left_out` is a name at the top that is not put in; empty: all is.
  explicit TreeArchive(std::string root, std::string left_out = {});

  // Errc::unavailable when the directory is not there.
  Result<void> begin();
  // About `bytes_wanted` more bytes; empty: the end. Errc::too_large "workspace_too_large";
  // Errc::unavailable.
  Result<std::string> next(std::size_t bytes_wanted);

 private:
  struct Level {
    Directory source;
    std::string path;  // with a slash at its end; empty: the top
  };

  Result<void> add_entry(std::string& out);
  Result<void> add_named(std::string& out, const std::string& name);
  Result<void> add_file_bytes(std::string& out, std::size_t bytes_wanted);
  Result<void> add_head(std::string& out, const std::string& path, const struct stat& found,
                        char type, const std::string& link);

  const std::string root_;
  const std::string left_out_;
  std::vector<Level> levels_;
  Descriptor file_;
  std::int64_t file_left_ = 0;
  std::int64_t file_size_ = 0;
  std::size_t entries_ = 0;
  std::int64_t bytes_ = 0;
  bool is_ended_ = false;
};

}  // namespace clawdforge
