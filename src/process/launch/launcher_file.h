// The launcher is compiled into our program and lives in memory, so that there is one
// file to install, and no other program can put another launcher in its place.
#pragma once

#include "base/descriptor.h"
#include "base/result.h"

namespace clawdforge {

// A sealed file in memory that holds the launcher, ready to be executed. Its number is
// too high to be in the way of those that the launcher expects. Errc::unavailable with a
// sentence for the operator.
Result<Descriptor> make_launcher_file();

}  // namespace clawdforge
