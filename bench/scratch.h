// The frame of a benchmark that needs a directory on the disk that counts: it is made below
// the one that is given, and removed with all that is in it.
#pragma once

#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string>

namespace clawdforge {

// `name` is the program's. What `measure` throws is printed; the exit code.
inline int in_scratch_directory(const std::string& name, const std::string& below,
                                const std::function<void(const std::string& directory)>& measure) {
  std::string directory = fmt::format("{}/{}-XXXXXX", below, name);
  if (mkdtemp(directory.data()) == nullptr) {
    fmt::print(stderr, "{}: cannot make {}\n", name, directory);
    return 1;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);  // what is known is seen, also in a file
  int code = 0;
  try {
    measure(directory);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    code = 1;
  }
  std::filesystem::remove_all(directory);
  return code;
}

}  // namespace clawdforge
