// NewFile is a file that gets its name when it is whole: until then it lies beside it under
// another one, 0600, and goes with the object. Its owner writes it by its path. Blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace clawdforge {

class NewFile {
 public:
  // Errc::conflict when there is something of this name, Errc::unavailable when its directory
  // takes no file. The message is a sentence for the operator.
  static Result<NewFile> make(std::string path);
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  // Where to write; and what SQLite may put beside it goes as well.
  const std::string& path() const { return unfinished_; }

  // Syncs it and gives it its name; never in the place of another file. Gives its size.
  Result<std::int64_t> keep();

 private:
  NewFile(std::string path, std::string unfinished, Descriptor file)
      : path_(std::move(path)), unfinished_(std::move(unfinished)), file_(std::move(file)) {}

  std::string path_;
  std::string unfinished_;  // empty: it has its name
  Descriptor file_;
};

}  // namespace clawdforge
