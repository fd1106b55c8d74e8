// A setting of the Spawner, in a header that shows nothing else.
#pragma once

namespace clawdforge {

// Whether each tree gets a PID namespace of its own, out of which no process can slip.
enum class PidNamespace { automatic, on, off };

}  // namespace clawdforge
