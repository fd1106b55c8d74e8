// Hiding a directory from the tree: the gateway's data directory, with the ledger, the admin token
// and the files of others.
#pragma once

#include "launcher/order.h"

namespace launcher {

// Covers the order's hidden directory with an empty one that cannot be written, and shows the kept
// ones in it at their places. In the mount namespace of the tree, so that only the tree sees it so.
// What is covered cannot be uncovered without the privileges that the launcher has here and the
// program has not: a namespace that the program makes for itself inherits it as it is. A step that
// fails is reported and ends the launcher.
void hide_directory(const Order& order);

}  // namespace launcher
