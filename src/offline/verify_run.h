// All checks of a ledger, or the quick ones of them: what `clawdforge verify` prints and the doctor
// tells in a line. Blocks; changes nothing.
#pragma once

#include <string>

#include "base/result.h"
#include "offline/findings.h"

namespace clawdforge {

struct VerifyOrder {
  std::string ledger;         // a path
  std::string data_dir = {};  // empty: a copy alone
  bool is_brief = false;      // leaves out what reads the whole file
};

// An error: the ledger could not be read; its message is a sentence for the operator.
Result<Findings> run_verify(const VerifyOrder& order);

}  // namespace clawdforge
