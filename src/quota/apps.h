// Apps knows who may call: it mints, rotates and revokes tokens, and finds an app by
// its token without touching the ledger. The ledger's rows decide; what memory holds is
// renewed by reload() when another program has changed them. Io thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/telemetry/log.h"
#include "ledger/rows/app_rows.h"
#include "model/app.h"
#include "model/token_event.h"

namespace clawdforge {

// The only moment at which a token can be seen, and the secret that signs its app's webhooks.
struct MintedToken {
  App app;
  Secret token;
  Secret webhook_secret;  // empty: none was made
};

struct ChangedToken {
  App app;
  Secret webhook_secret;  // likewise
};

// The answer to what is under way when its token goes. Errc::unauthorized "token_revoked".
std::unexpected<Failure> token_revoked();

class Apps {
 public:
  Apps(AppRows& rows, const Clock& clock, IdSource& ids, Log& log);

  // Takes the ledger's rows as they are now.
  Async<void> reload();

  // Told of each app whose token is gone: revoked, or its row deleted by another program.
  void on_removed(std::function<void(const AppName& name)> listener) {
    on_removed_ = std::move(listener);
  }

  // The app of this token, or none, as if it had expired. Notes the use; note_uses() brings it to
  // the ledger.
  std::shared_ptr<const App> find(std::string_view token);

  // The app of this name, or none, as if its token had expired.
  std::shared_ptr<const App> named(const AppName& name) const;

  // Whether the app's token is still the one that it was let in with.
  bool is_current(const App& app) const;

  // Each change is in the audit together with who made it.
  // The name and the settings of `app` count; its token and its times are given here.
  // Errc::conflict "name_taken" or "too_many_apps". The token works when this returns.
  Async<MintedToken> mint(App app, AdminOrigin by);
  // As AppRows::change(). It holds for each request that comes after it.
  Async<ChangedToken> change(AppName name, AppChange change, AdminOrigin by);
  // Another secret signs the app's webhooks from the next attempt on. Errc::not_found
  // "token_not_found", Errc::conflict "no_webhooks".
  Async<Secret> rotate_webhook_secret(AppName name, AdminOrigin by);
  // The old token stops at once; sessions are kept. Errc::not_found "token_not_found".
  Async<MintedToken> rotate(AppName name, AdminOrigin by);
  // Errc::not_found "token_not_found".
  Async<void> revoke(AppName name, AdminOrigin by);

  // By name, with the last use as memory knows it.
  std::vector<App> list() const;

  // Writes the uses since the last call; nothing to write costs nothing. What could
  // not be written is tried again the next time.
  Async<void> note_uses();

 private:
  struct Known {
    std::shared_ptr<const App> app;
    std::optional<TimePoint> last_used_at;
    bool is_noted = true;
  };
  struct ByFirstBytes {
    std::size_t operator()(const Digest& digest) const;
  };
  struct InConstantTime {
    bool operator()(const Digest& a, const Digest& b) const { return equal_in_constant_time(a, b); }
  };
  using Table = std::unordered_map<Digest, Known, ByFirstBytes, InConstantTime>;

  Table::iterator find_by_name(const AppName& name);
  bool has_expired(const App& app) const;
  void tell_removed(const AppName& name) const;

  AppRows& rows_;
  const Clock& clock_;
  IdSource& ids_;
  Log& log_;
  Table by_digest_;
  std::vector<std::string> unreadable_;  // names whose rows were complained about
  std::function<void(const AppName& name)> on_removed_;
};

}  // namespace clawdforge
