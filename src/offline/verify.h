// Whether a ledger keeps its promises: the statements behind `clawdforge verify`. They are
// read in one transaction that the caller has begun, in pages, so that a ledger of any size
// needs little memory; nothing is changed. Blocks; for a command, not for a gateway at work.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ledger/core/sql_driver.h"
#include "offline/findings.h"

namespace clawdforge {

// A life of the gateway as its row has it.
struct InstanceRow {
  std::string id;
  std::int64_t pid = 0;
  std::int64_t started_at = 0;
  bool has_ended = false;
};
Result<std::vector<InstanceRow>> select_instances(SqlDriver& driver);

// An error where the schema is not the one that this program knows; the message is a
// sentence for the operator that begins with "The ledger `place`".
Result<void> check_schema(SqlDriver& driver, std::string_view place);

// All invariants of the rows. `owners` are the instances that may have work under way.
// An error: the ledger cannot be read.
Result<void> verify_rows(SqlDriver& driver, const std::set<std::string>& owners,
                         Findings& findings);

// All of verify_journals.cc: each session's events and how they fit its turns.
Result<void> verify_journals(SqlDriver& driver, Findings& findings);

// A check that is one statement: it selects the names of the rows that are wrong. A text in
// the place of a number is greater than every number, so a range finds it.
struct RowCheck {
  Check check;
  std::string_view wrong;
};

// Work that is under way belongs to a gateway that is alive.
struct OwnerCheck {
  Check check;
  std::string_view unfinished;  // gives a name and the owner, from $1 on, at most $2
};

// Those of jobs, idempotency keys, deliveries, usage and budgets; verify_rows() makes them.
std::span<const RowCheck> ask_row_checks();
std::span<const OwnerCheck> ask_owner_checks();

}  // namespace clawdforge
