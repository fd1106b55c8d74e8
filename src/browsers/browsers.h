// Browsers knows which browsers are signed in to the dashboard. A browser's token stands for the
// owner or for an app, and ends with the token that it was signed in with, by its own time, by
// being signed out, or unused. The ledger's rows decide; memory holds them, so that a request costs
// no access to the ledger. Io thread only.
#pragma once

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
#include "base/secret.h"
#include "ledger/browsers/browser_rows.h"
#include "model/app.h"
#include "model/token_event.h"
#include "quota/apps.h"

namespace clawdforge {

inline constexpr std::string_view kBrowserTokenPrefix = "cfui_";

// What counts when a browser wants to make or end tokens: its user has shown the owner's token, or
// a code, no longer ago.
inline constexpr std::chrono::minutes kProofAgeMax{10};

struct SignedIn {
  Browser browser;
  Secret token;  // the only moment at which it can be seen
};

class Browsers {
 public:
  // Each outlives this.
  Browsers(BrowserRows& rows, const Apps& apps, Digest admin_digest, const Clock& clock,
           IdSource& ids);

  // Takes the ledger's rows as they are now.
  Async<void> reload();

  // Who a browser's token stands for.
  struct Found {
    std::shared_ptr<const Browser> browser;
    std::shared_ptr<const App> app;  // null: the owner
  };
  // None: it is not a browser's, or that one has ended. Notes the use.
  std::optional<Found> find(std::string_view token);
  // Whether the browser is still signed in.
  bool is_current(const Browser& browser) const;
  // Whether its user has shown lately that they hold the owner's token.
  bool is_proved(const Browser& browser) const {
    return clock_.now() - browser.proved_at <= kProofAgeMax;
  }

  // Signs in a browser of the app's, or of the owner's if there is none.
  struct Wish {
    const App* app = nullptr;
    std::string name;
    std::string address;
    std::string by;  // how: "token" or "code"
    bool stays = false;
  };
  Async<SignedIn> sign_in(Wish wish);
  // Errc::not_found "browser_not_found".
  Async<void> end(std::string id, AdminOrigin by);
  Async<void> prove(const Browser* browser);
  // A caller showed a wrong token or code.
  Async<void> note_failure(std::string name, std::string address, std::string by);

  // Those that are signed in, the one that was used last first.
  std::vector<Browser> list() const;
  std::size_t size() const { return by_digest_.size(); }

  // Writes when each was last seen, and removes those that have ended.
  Async<void> tidy();

 private:
  struct Known {
    std::shared_ptr<const Browser> browser;
    TimePoint last_seen_at;
    bool is_noted = true;
  };
  struct ByFirstBytes {
    std::size_t operator()(const Digest& digest) const;
  };
  struct InConstantTime {
    bool operator()(const Digest& a, const Digest& b) const { return equal_in_constant_time(a, b); }
  };
  using Table = std::unordered_map<Digest, Known, ByFirstBytes, InConstantTime>;

  Table::iterator find_by_id(const std::string& id);
  bool is_over(const Known& known) const;
  // Those of the same holder that have to go, so that one more has room.
  std::vector<std::string> surplus(const std::optional<AppName>& app) const;

  BrowserRows& rows_;
  const Apps& apps_;
  const Digest admin_digest_;
  const Clock& clock_;
  IdSource& ids_;
  Table by_digest_;
};

// "Firefox on Linux", from what a browser says of itself.
std::string browser_name_of(std::string_view user_agent);

}  // namespace clawdforge
