// What the sweeper does with rows of usage: minutes become hours, and old hours go. So do windows
// of budgets that are over.
#pragma once

#include "base/async/async.h"
#include "base/clock.h"

namespace clawdforge {

class BudgetRows;
class UsageRows;

// All must live until the task has ended. Goes on with the next call where there is much to do.
Async<void> sweep_usage(UsageRows* rows, BudgetRows* budgets, const Clock* clock);

}  // namespace clawdforge
