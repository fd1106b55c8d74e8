// The rows of browsers that are signed in to the dashboard. What every call promises, and which
// errors each may give: ledger/ledger.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/secret.h"
#include "model/app.h"
#include "model/session.h"

namespace clawdforge {

class LedgerWorker;

struct Browser {
  std::string id;
  Digest token_digest{};
  Digest parent_digest{};      // of the token that it was signed in with: with that one it ends
  std::string name;            // as its owner knows it: "Firefox on Linux"
  std::optional<AppName> app;  // none: it is the gateway's owner's
  std::string address;         // where it was signed in from
  bool stays = false;          // its end is `expires_at` alone, however long it is not used
  TimePoint created_at;
  TimePoint last_seen_at;
  TimePoint proved_at;  // when its user last showed a token or a code
  TimePoint expires_at;
};

struct BrowserSight {
  std::string id;
  TimePoint at;
};

class BrowserRows {
 public:
  explicit BrowserRows(LedgerWorker& worker) : worker_(worker) {}

  // Rows that cannot be understood are left out: their tokens do not work.
  Async<std::vector<Browser>> list() const;
  // The `replaced` go in the same transaction, which notes the event as well.
  Async<void> add(Browser browser, std::vector<std::string> replaced, AuditEvent event);
  // To remove one that is not there changes nothing.
  Async<void> remove(std::string id, AppName app, AuditEvent event);
  Async<void> prove(std::string id, TimePoint at);
  // When each was last seen; and those that have ended go.
  Async<void> tidy(std::vector<BrowserSight> seen, std::vector<std::string> ended);
  // Something that happened to no browser that there is.
  Async<void> note(AuditEvent event, AppName app = {}, SessionId session_id = {});

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
