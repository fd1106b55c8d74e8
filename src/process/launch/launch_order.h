// The launcher's order: the gateway's side of src/launcher/order.h.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "process/launch/launch.h"

namespace clawdforge {

// Its fields, each text ended by a zero byte.
std::string order_text(const LaunchOptions& options, const ChildPlan& plan,
                       const TreeBounds& bounds);

// A sealed file in memory that holds the order, out of the way of the numbers which the launcher
// expects. Not open, with errno set, if the system has no more.
Descriptor make_order_file(const std::string& text);

}  // namespace clawdforge
