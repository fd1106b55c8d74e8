// What the program may not do that the launcher may, and which process goes first when memory runs
// out.
#pragma once

#include "launcher/kernel.h"

namespace launcher {

// In the program's process, before it becomes the program. The process and all below it lose the
// capabilities of root, and gain none from a set-user-ID program. They can still make user
// namespaces of their own, as sandboxes do. Below zero: what the kernel answered.
Answer drop_privileges();

// Makes the kernel end this process, and what it starts, before the gateway and the launcher. A
// score that is higher already stays. Where it cannot be written the program runs as it is.
void offer_to_memory_killer();

}  // namespace launcher
