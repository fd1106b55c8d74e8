// What is set for the whole process, once, before there is a second thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace clawdforge {

// Not dumpable: other programs of the same user must not read our secrets from memory.
// The soft limit on descriptors raised, as far as the hard one goes. SIGPIPE and SIGXFSZ
// ignored: a caller that hangs up and a file that may not grow are error values, not
// signals. SIGCHLD not ignored, even if our parent process ignored it: else the kernel would reap
// our children, and their numbers would become others'. Gives the soft limit that was, for the
// children: a program that uses select() or closes all possible descriptors must not meet our large
// one.
std::optional<std::uint64_t> prepare_process();

// The file that this program was started from.
Result<std::string> own_program();

// The machine's, in lower case; "localhost" where it cannot be told.
std::string own_host_name();

// When the start is over: gives back the pages of the program and its libraries that only the start
// has needed. What is needed again comes back from the system's cache of files, page by page.
void give_back_start_pages();

// How many descriptors this process may have open.
std::size_t descriptors_max();

// Ends the process with kExitLate when it is still there after this time, whatever its threads
// wait for: a disk that does not answer must not keep it for ever. What was answered is committed.
inline constexpr int kExitLate = 3;
void end_process_after(std::chrono::seconds most);

}  // namespace clawdforge
