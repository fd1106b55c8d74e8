// The namespaces around one tree. Out of its PID namespace no process can leave, and the kernel
// kills what is in it when its first process ends. In its mount namespace the tree sees other
// things than the gateway does. A step that fails is reported and ends the launcher: it does not
// go on without.
#pragma once

#include "launcher/order.h"

namespace launcher {

// Those that the order needs; none, if it needs none. For an ordinary user, and for root with a
// root of its own or without a PID namespace, also a user namespace. The PID namespace begins with
// the next process.
void make_namespaces(const Order& order);

// Forks the first process of the PID namespace. Returns in that process only, with a /proc of the
// namespace mounted unless the tree gets a root of its own; the calling process stays outside,
// waits, and ends as the first one did. When the outer one is killed, the kernel kills the
// namespace.
void enter_pid_namespace(const Order& order);

}  // namespace launcher
