// The rows of apps, each with the digest of its token. What every call promises, and which
// errors each may give: ledger/ledger.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "ledger/core/ledger_records.h"

namespace clawdforge {

class LedgerWorker;

// Sets what is to be changed of an app.
using AppChange = std::function<void(App& app)>;

struct ChangedApp {
  App app;
  bool has_new_secret = false;  // the one that was given signs its webhooks from now on
};

class AppRows {
 public:
  explicit AppRows(LedgerWorker& worker) : worker_(worker) {}

  Async<AppList> list() const;

  // What is given as `audit` is written in the same transaction as the change that it tells of.
  using Audit = std::optional<AuditEvent>;

  // To add the same one again changes nothing. Errc::conflict "name_taken" where another app
  // has the name. An app with webhook_urls signs its webhooks with the secret.
  Async<void> add(App app, Audit audit = std::nullopt, Secret webhook_secret = {});
  // Another token for the same app. Errc::not_found "token_not_found".
  Async<void> rotate(AppName name, Digest token_digest, Audit audit = std::nullopt);
  // Changes the app's settings; its name, its token and its times stay. The change may be made
  // more than once, each time to the row as it is then. The secret is taken if the app has
  // webhook_urls then, and no secret. Errc::not_found "token_not_found", Errc::conflict
  // "token_unreadable".
  Async<ChangedApp> change(AppName name, AppChange change, Audit audit = std::nullopt,
                           Secret webhook_secret = {});
  // Another secret for an app that has one. Errc::not_found "token_not_found", Errc::conflict
  // "no_webhooks".
  Async<void> replace_secret(AppName name, Secret webhook_secret, Audit audit = std::nullopt);
  // Takes the app's token away, closes its open sessions, lets its uploads expire and drops its
  // deliveries, in one step. Errc::not_found "token_not_found".
  Async<void> remove(AppName name, TimePoint at, Audit audit = std::nullopt);
  // The same for what an app has left whose row another program has deleted. An app that is there
  // again keeps all.
  Async<void> close_left(AppName name, TimePoint at);
  // Times of last use, which only move forwards; apps that are gone are skipped.
  Async<void> note_use(std::vector<AppUse> uses);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
