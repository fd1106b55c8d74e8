// Numbered migrations: each file of schema/ runs once, in order, in one transaction with
// its row in schema_migrations. Several programs may start at once; each looks again
// inside the transaction.
#pragma once

#include <span>

#include "base/clock.h"
#include "ledger/core/schema_files.h"
#include "ledger/core/sql_driver.h"

namespace clawdforge {

// The number of migrations applied now. Errors carry a sentence for the operator that
// begins with "The ledger `place`": Errc::conflict "ledger_newer" when a newer program has
// been here; then nothing is changed.
Result<int> migrate(SqlDriver& driver, std::span<const SchemaFile> files, std::string_view place,
                    TimePoint now);

}  // namespace clawdforge
