// How the gateway opens its ledger: the only header that knows the driver.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "ledger/ledger.h"
#include "ledger/sqlite/sqlite_driver.h"

namespace clawdforge {

struct LedgerOptions {
  SqliteOptions sqlite;
  LedgerWorkerOptions worker;
};

// Opens and migrates the database behind "sqlite:PATH" or "sqlite::memory:" for the gateway
// process `self`. Blocks: for the start of the program. The error's message is one sentence
// for the operator.
Result<std::unique_ptr<Ledger>> open_ledger(IoExecutor executor, std::string url, InstanceId self,
                                            Log& log, Metrics& metrics, LedgerOptions options = {});

}  // namespace clawdforge
