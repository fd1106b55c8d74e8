// Why SQLite said no, in words: for the callers of a running ledger, and for the operator
// at start.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace clawdforge {

// `code` is SQLite's extended result code, `text` its own message, `during` what was tried.
std::unexpected<Failure> sqlite_failure(int code, std::string_view text, std::string_view during);

// One sentence with the path and what to do.
std::unexpected<Failure> sqlite_start_failure(int code, std::string_view text,
                                              std::string_view path);

}  // namespace clawdforge
