// Running a program in place of this process.
#pragma once

#include "launcher/kernel.h"

namespace launcher {

// Looks the program up in the PATH of `environment`, unless its name has a slash, as the
// C library does it; only, a file that is not a program is not given to a shell. Returns,
// with what the kernel answered, if it could not.
Answer execute(char** program, char** environment);

}  // namespace launcher
