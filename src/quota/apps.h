// Apps knows who may call: it mints, rotates and revokes tokens, and finds an app by
// its token without touching the ledger. The ledger's rows decide; what memory holds is
// renewed by reload() when another program has changed them. Io thread only.
#pragma once

#include <cstdint>
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

namespace clawdforge {

struct NewApp {
  std::string name;
  std::vector<Cidr> ip_cidrs;
  std::optional<EventFormat> event_format;
  std::optional<std::int64_t> sessions_max;
  std::optional<std::int64_t> runs_max;
};

// The only moment at which a token can be seen.
struct MintedToken {
  App app;
  Secret token;
};

class Apps {
 public:
  Apps(AppRows& rows, const Clock& clock, IdSource& ids, Log& log);

  // Takes the ledger's rows as they are now.
  Async<void> reload();

  // The app of this token, or none. Notes the use; note_uses() brings it to the ledger.
  std::shared_ptr<const App> find(std::string_view token);

  // Whether the app's token is still the one that it was let in with.
  bool is_current(const App& app) const;

  // Errc::conflict "name_taken" or "too_many_apps". The token works when this returns.
  Async<MintedToken> mint(NewApp request);
  // The old token stops at once; sessions are kept. Errc::not_found "token_not_found".
  Async<MintedToken> rotate(std::string name);
  // Errc::not_found "token_not_found".
  Async<void> revoke(std::string name);

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

  Table::iterator find_by_name(std::string_view name);

  AppRows& rows_;
  const Clock& clock_;
  IdSource& ids_;
  Log& log_;
  Table by_digest_;
  std::vector<std::string> unreadable_;  // names whose rows were complained about
};

}  // namespace clawdforge
