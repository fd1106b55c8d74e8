// The program host runs programs that the gateway asks it for, one or several at once,
// within its own process tree: `clawdforge agent-host`. What such a program leaves
// stays in that tree, so it lives on between two of them and ends with the host, whose
// launcher ends the tree (docs/adr/0018-acpx-as-a-second-kind-of-agent.md).
//
// A process of its own, one thread, no event loop. It takes frames of host_wire.h on
// standard input and ends when that ends; all its programs share its standard error.
#pragma once

namespace clawdforge {

// Blocks; gives the exit code.
int host_programs();

}  // namespace clawdforge
