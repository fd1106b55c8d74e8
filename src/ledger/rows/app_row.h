// A row of the table `tokens`, to and from an App. Other programs write this table too,
// so nothing in a row is taken for granted.
//
// The table of columns is in app_row.cc; all of the below is made from it.
#pragma once

#include <string>

#include "ledger/core/sql_driver.h"
#include "model/app.h"

namespace clawdforge {

// What app_from() reads, in its order; the name comes first.
std::string app_columns();

// Adds a row; its parameters.
std::string app_insert();
SqlRow row_of(const App& app);

// "UPDATE tokens SET …" of what an admin can change, with the name as $1; its parameters.
std::string app_update();
SqlRow changes_of(const App& app);

// The error is the reason, as a sentence's end: "ip_cidrs is not a JSON array of strings".
std::expected<App, std::string> app_from(const SqlRow& row);

// The row's name for a report, whatever is in it.
std::string name_in(const SqlRow& row);

}  // namespace clawdforge
