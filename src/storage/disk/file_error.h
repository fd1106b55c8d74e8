// What a failed system call on a file means for a caller.
#pragma once

#include <string_view>

#include "base/result.h"

namespace clawdforge {

// Errc::unavailable: "disk_full" when there is no room (also by a quota, or by the limit on
// the size of a file), else "workspace_unavailable". `during` is for the log.
std::unexpected<Failure> file_failure(int error_number, std::string_view during);

}  // namespace clawdforge
