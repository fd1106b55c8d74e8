// What the transactions of other nouns write about idempotency keys, so that a key costs no commit
// of its own. On the ledger's worker.
#pragma once

#include "base/result.h"
#include "model/ask_key.h"

namespace clawdforge {

class SqlDriver;

// Its work is under way. To begin it again changes nothing. Keys of an app that is gone are not
// written, here and below.
Result<void> begin_key(SqlDriver& driver, const AskKey& key);
// Its answer, also where it was not begun before; without one the key is free again.
Result<void> write_key(SqlDriver& driver, const KeyWrite& write);

}  // namespace clawdforge
