// A network of the tree's own, in which there is only loopback.
#pragma once

#include "launcher/order.h"

namespace launcher {

// In the tree's new network namespace: brings loopback up. With a port in the order: listens there,
// and hands the listener to the gateway, which accepts what the tree connects to. The socket by
// which it does so stays open until the launcher ends: then the gateway knows that the tree is
// gone. A step that fails is reported and ends the launcher. Does nothing where the order wants no
// network of its own.
void make_network(const Order& order);

}  // namespace launcher
