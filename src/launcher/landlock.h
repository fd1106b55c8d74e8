// What Landlock refuses to the program: a second wall where the tree has a root of its own, and a
// weaker one in its place where the kernel gives none.
#pragma once

#include "launcher/order.h"

namespace launcher {

// In the program's process, after its privileges were dropped. With a root of its own: the program
// may not signal processes outside, nor connect to their abstract sockets; where the kernel cannot
// refuse that the namespaces alone do. With rules: also no file but those of the order's places.
// Below zero: what the kernel answered.
Answer restrict_program(const Order& order);

}  // namespace launcher
