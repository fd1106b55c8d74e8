// OwnerNotes writes into the audit of an app what the gateway's owner does as that app: each
// change, and reading once an hour for each session. Owned by the gateway; io thread only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/async/async.h"
#include "base/clock.h"
#include "ledger/browsers/browser_rows.h"
#include "model/app.h"
#include "model/session.h"
#include "model/token_event.h"

namespace clawdforge {

class OwnerNotes {
 public:
  OwnerNotes(BrowserRows& rows, const Clock& clock) : rows_(rows), clock_(clock) {}

  struct Deed {
    AppName app;
    SessionId session_id;     // empty: of none
    std::string_view method;  // literals, as the path's pattern
    std::string_view path;
    AdminOrigin by;
  };
  Async<void> note(Deed deed);

 private:
  BrowserRows& rows_;
  const Clock& clock_;
  std::map<std::pair<AppName, SessionId>, TimePoint> read_;  // when that was last noted
};

}  // namespace clawdforge
