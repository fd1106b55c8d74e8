// The PID namespace around one tree. No process can leave it, and the kernel kills what
// is in it when its first process ends.
#pragma once

namespace launcher {

// Makes the namespace and forks its first process. Returns in that process only, with a
// /proc of the namespace mounted; the calling process stays outside, waits, and ends as
// the first one did. When the outer one is killed, the kernel kills the namespace. A step
// that fails is reported, and ends the launcher: there is no going on without.
void enter_namespace();

}  // namespace launcher
