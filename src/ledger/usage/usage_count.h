// Counting in the ledger what an ask used. For the transactions that settle runs and turns: the
// rows of asks and the rows of usage are equal at every instant.
#pragma once

#include <string>

#include "ledger/core/sql_driver.h"
#include "model/limits/ask_usage.h"

namespace clawdforge {

// In the caller's transaction; once for each ask.
Result<void> count_ask(SqlDriver& driver, const AskUsage& ask);

// The columns that hold sums, in the order of UsageSums; and a statement's text that is made of
// each of them, with '@' for its name: "SUM(@) AS @".
std::string usage_columns(std::string_view each);
UsageSums sums_in(const SqlRow& row, std::size_t first_column);

}  // namespace clawdforge
