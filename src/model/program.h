// What is known of a program that we may drive. A plain record.
#pragma once

#include <string>

namespace clawdforge {

struct ProgramFinding {
  bool is_present = false;
  std::string version;  // the first line of `PROGRAM --version`; empty when absent
};

}  // namespace clawdforge
