// How a program ended, as data: what that means is for its user to decide.
#pragma once

#include <variant>

namespace clawdforge {

struct Exited {
  int code = 0;
  bool operator==(const Exited&) const = default;
};
struct Signaled {
  int number = 0;
  bool operator==(const Signaled&) const = default;
};
// The program could not be started at all.
struct NotStarted {
  int error = 0;  // errno
  bool operator==(const NotStarted&) const = default;
};
// The launcher itself was killed: how the program ended is not known.
struct Unknown {
  bool operator==(const Unknown&) const = default;
};
// The tree was ended because it used more than it may.
struct OverLimit {
  enum class What { memory, processes };
  What what = What::memory;
  bool operator==(const OverLimit&) const = default;
};
using ExitStatus = std::variant<Exited, Signaled, NotStarted, Unknown, OverLimit>;

}  // namespace clawdforge
