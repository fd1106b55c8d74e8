// System calls that no agent needs and that have opened kernels before are refused to the program
// and all that it starts.
#pragma once

#include "launcher/order.h"

namespace launcher {

// In the program's process, last of all before it becomes the program. Namespaces and mounts stay
// allowed: the sandboxes of agents need them. Below zero: what the kernel answered.
Answer filter_calls(const Order& order);

}  // namespace launcher
