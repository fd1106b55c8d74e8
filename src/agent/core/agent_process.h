// What is the same for every agent's process, whatever is spoken with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"
#include "process/tree/child.h"

namespace clawdforge {

ProcessMark mark_of(const Child& child, const std::string& boot_id);

// The tail of standard error as it may be shown: masked. The first word of a full tail may
// be the end of a secret whose beginning is gone; it is left out.
std::string shown_tail(std::string_view tail, const std::vector<std::string>& secrets);

}  // namespace clawdforge
