// What the tree may use: memory, processes, sizes of files. Control groups where the gateway has
// made some for it, else what the launcher counts itself (launcher/bounds/limit_watch.h), with the
// limits of the program's process as a belt.
#pragma once

#include "launcher/order.h"

namespace launcher {

// Before the tree gets a root of its own, in which the control groups do not show. A step that
// fails is reported and ends the launcher.
void open_limits(Order& order);

// In the program's process, before it becomes the program: only the tree is in the groups, so that
// the supervisor is not ended with it. Below zero: what the kernel answered.
Answer set_limits(const Order& order);

}  // namespace launcher
