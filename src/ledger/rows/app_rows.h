// The rows of apps, each with the digest of its token. What every call promises, and which
// errors each may give: ledger/ledger.h.
#pragma once

#include <string>
#include <vector>

#include "base/async/async.h"
#include "ledger/core/ledger_records.h"
#include "ledger/core/ledger_worker.h"

namespace clawdforge {

class AppRows {
 public:
  explicit AppRows(LedgerWorker& worker) : worker_(worker) {}

  Async<AppList> list() const;

  // To add the same one again changes nothing. Errc::conflict "name_taken" where another app
  // has the name.
  Async<void> add(App app);
  // Another token for the same app. Errc::not_found "token_not_found".
  Async<void> rotate(std::string name, Digest token_digest);
  // Takes the app's token away, closes its open sessions and lets its uploads expire, in
  // one step. Errc::not_found "token_not_found".
  Async<void> remove(std::string name, TimePoint at);
  // Times of last use, which only move forwards; apps that are gone are skipped.
  Async<void> note_use(std::vector<AppUse> uses);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
