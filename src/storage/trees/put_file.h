// PutFile is a file on its way to a path of a session's directory. No link on that path is
// followed, and what stands there is replaced in one step, when the file is whole. Its calls block:
// they are for the disk's thread; one that dies before keep() leaves nothing.
#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace clawdforge {

inline constexpr std::size_t kPutPathBytesMax = 1'024;
inline constexpr std::size_t kPutDepthMax = 32;

// Errc::invalid "validation_failed" for a path that no file can be put at: absolute, with a part
// that is empty, "." or "..", with a part ".git", which git would take orders from, or too long.
Result<void> check_put_path(const std::string& path);

class PutFile {
 public:
  // `root` is absolute; `path` has passed check_put_path().
  PutFile(std::string root, std::string path);
  ~PutFile();
  PutFile(const PutFile&) = delete;
  PutFile& operator=(const PutFile&) = delete;

  // Makes the directories on the way. Errc::conflict "path_taken" where something else is there.
  Result<void> begin();
  Result<void> append(const std::string& bytes);
  // True: it has replaced another file.
  Result<bool> keep();

 private:
  const std::string root_;
  const std::string path_;
  Descriptor directory_;  // in which it lies
  Descriptor file_;
  std::string temporary_;  // its name until it is whole; empty: there is nothing to remove
  std::string name_;
};

}  // namespace clawdforge
