// What the service manager has put into our environment. Once, at the start.
#pragma once

#include <cstdlib>
#include <string>

namespace clawdforge {

// Removes the variable, so that no child gets it; empty: it is not there. While there is one
// thread.
inline std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  ::unsetenv(name);
  return taken;
}

}  // namespace clawdforge
