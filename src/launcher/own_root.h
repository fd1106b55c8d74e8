// A root of the tree's own: nothing is in it but the places of the order, a /proc of the tree's PID
// namespace and a /dev of a few devices. Every path is the same inside as outside.
#pragma once

#include "launcher/order.h"

namespace launcher {

// In the first process of the tree's namespaces. Afterwards the root that was cannot be reached,
// and the new one cannot be written except in the places that say so. What the tree sees cannot be
// changed without the privileges that the launcher has here and the program has not: a namespace
// that the program makes for itself inherits the mounts locked together. A step that fails is
// reported and ends the launcher.
void make_root(const Order& order);

}  // namespace launcher
