// A row of the table `runs`, to and from the model. Other programs write this table too:
// what cannot be understood in a row is left out, and the rest is shown. Only a state that no
// ended run has makes the whole row unreadable: how the run ended decides.
//
// The table of columns is in run_row.cc; all of the below is made from it.
#pragma once

#include <string>

#include "ledger/core/sql_driver.h"
#include "model/run.h"

namespace clawdforge {

// What run_from() reads, in its order; the id and the time come first.
std::string run_columns();
// The same for lists: only the beginning of what is long.
std::string run_list_columns();
inline constexpr std::size_t kRunColumnId = 0;
inline constexpr std::size_t kRunColumnStartedAt = 1;

// Errc::internal "internal": the state is not one that a run can end with.
Result<RunRecord> run_from(const SqlRow& row);

// Adds a row; its parameters.
std::string run_insert();
SqlRow row_of(const Run& run, const ProcessMark& process);

// "UPDATE runs SET …" of a run's end, with the run's id as $1; its parameters.
std::string run_end_update();
SqlRow row_of(const RunEnd& end);

}  // namespace clawdforge
