// Splits the command line into keys and values; the values are not looked at.
#pragma once

#include <string>
#include <vector>

#include "config/config_keys.h"

namespace clawdforge {

struct FlagValue {
  const KeyRow* row = nullptr;
  std::string text;
};

struct Flags {
  std::string file;  // of --config; empty without
  std::vector<FlagValue> values;
};

// Takes --key value and --key=value. Errc::invalid for anything else, a flag that is
// unknown or comes twice, and a flag without its value.
Result<Flags> parse_flags(const std::vector<std::string>& arguments);

}  // namespace clawdforge
