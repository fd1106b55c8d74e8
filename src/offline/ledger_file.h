// What the commands that work on the ledger's file share: which file that is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace clawdforge {

// FILE and the flags of a command, in any order.
struct LedgerArguments {
  std::optional<std::string> file;
  std::vector<std::string> flags;
};
// Errc::invalid when there is more than one FILE.
Result<LedgerArguments> split_arguments(const std::vector<std::string>& arguments);

// The path in "sqlite:PATH". Errc::invalid for anything else.
Result<std::string> sqlite_path(const std::string& url);

}  // namespace clawdforge
