// A row of the table `tokens`, to and from an App. Other programs write this table too,
// so nothing in a row is taken for granted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ledger/core/sql_driver.h"
#include "model/app.h"

namespace clawdforge {

// The columns, both ways.
enum AppColumn : std::size_t {
  kAppAtName,
  kAppAtDigest,
  kAppAtCidrs,
  kAppAtEventFormat,
  kAppAtSessionsMax,
  kAppAtRunsMax,
  kAppAtCreatedAt,
  kAppAtLastUsedAt,
  kAppAtPolicy,
  kAppAtLimits,
  kAppAtColumnCount,
};

SqlRow row_of(const App& app);

// The error is the reason, as a sentence's end: "ip_cidrs is not a JSON array of strings".
std::expected<App, std::string> app_from(const SqlRow& row);

// The row's name for a report, whatever is in it.
std::string name_in(const SqlRow& row);

}  // namespace clawdforge
