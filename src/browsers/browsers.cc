#include "browsers/browsers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::chrono::hours kUnusedMax{12};
constexpr std::chrono::days kSignedInMax{7};
constexpr std::chrono::days kStayMax{30};  // of one whose user asked to stay signed in
constexpr std::size_t kBrowsersMaxPerHolder = 16;

AuditEvent browser_event(std::string_view event, TimePoint at, std::string_view name,
                         std::string_view address, std::string_view by) {
  AuditEvent noted{.event = std::string(event), .at = at, .meta = R"({"by":)"};
  append_json_string(noted.meta, by);
  noted.meta += R"(,"browser":)";
  append_json_string(noted.meta, name);
  noted.meta += R"(,"address":)";
  append_json_string(noted.meta, address);
  noted.meta += '}';
  return noted;
}

struct Mark {
  std::string_view in_text;
  std::string_view name;
};

std::string_view first_of(std::span<const Mark> marks, std::string_view text) {
  const auto found = std::ranges::find_if(
      marks, [&](const Mark& mark) { return text.find(mark.in_text) != text.npos; });
  return found == marks.end() ? std::string_view() : found->name;
}

}  // namespace

std::string browser_name_of(std::string_view user_agent) {
  // In this order: most browsers also name those that they want to be taken for.
  constexpr std::array kPrograms{Mark{"Firefox/", "Firefox"},
                                 Mark{"Edg/", "Edge"},
                                 Mark{"OPR/", "Opera"},
                                 Mark{"Chromium/", "Chromium"},
                                 Mark{"HeadlessChrome/", "Chrome"},
                                 Mark{"Chrome/", "Chrome"},
                                 Mark{"Safari/", "Safari"},
                                 Mark{"curl/", "curl"}};
  constexpr std::array kSystems{Mark{"Android", "Android"}, Mark{"iPhone", "iPhone"},
                                Mark{"iPad", "iPad"},       Mark{"Windows", "Windows"},
                                Mark{"Mac OS", "Mac"},      Mark{"Linux", "Linux"}};
  const std::string_view program = first_of(kPrograms, user_agent);
  const std::string_view system = first_of(kSystems, user_agent);
  std::string name(program.empty() ? "Browser" : program);
  if (!system.empty()) name.append(" on ").append(system);
  return name;
}

std::size_t Browsers::ByFirstBytes::operator()(const Digest& digest) const {
  std::size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

Browsers::Browsers(BrowserRows& rows, const Apps& apps, Digest admin_digest, const Clock& clock,
                   IdSource& ids)
    : rows_(rows), apps_(apps), admin_digest_(admin_digest), clock_(clock), ids_(ids) {}

Async<void> Browsers::reload() {
  auto rows = co_await rows_.list();
  if (!rows) co_return std::unexpected(rows.error());
  Table fresh;
  for (Browser& row : *rows) {
    Known known{.browser = nullptr, .last_seen_at = row.last_seen_at};
    // A use that is not in the ledger yet must outlive the exchange of tables.
    if (const auto old = by_digest_.find(row.token_digest);
        old != by_digest_.end() && !old->second.is_noted) {
      known.last_seen_at = old->second.last_seen_at;
      known.is_noted = false;
    }
    const Digest digest = row.token_digest;
    known.browser = std::make_shared<const Browser>(std::move(row));
    fresh.insert_or_assign(digest, std::move(known));
  }
  by_digest_ = std::move(fresh);
  co_return Result<void>{};
}

Browsers::Table::iterator Browsers::find_by_id(const std::string& id) {
  return std::ranges::find_if(by_digest_,
                              [&](const auto& entry) { return entry.second.browser->id == id; });
}

bool Browsers::is_over(const Known& known) const {
  const Browser& browser = *known.browser;
  const TimePoint now = clock_.now();
  if (now >= browser.expires_at) return true;
  if (!browser.stays && now - known.last_seen_at > kUnusedMax) return true;
  if (!browser.app) return !equal_in_constant_time(browser.parent_digest, admin_digest_);
  const auto app = apps_.named(*browser.app);
  return !app || !equal_in_constant_time(browser.parent_digest, app->token_digest);
}

std::optional<Browsers::Found> Browsers::find(std::string_view token) {
  if (!token.starts_with(kBrowserTokenPrefix)) return std::nullopt;
  const auto found = by_digest_.find(sha256(token));
  if (found == by_digest_.end() || is_over(found->second)) return std::nullopt;
  Known& known = found->second;
  const TimePoint now = clock_.now();
  if (unix_seconds(known.last_seen_at) != unix_seconds(now)) {
    known.last_seen_at = now;
    known.is_noted = false;
  }
  const Browser& browser = *known.browser;
  return Found{known.browser, browser.app ? apps_.named(*browser.app) : nullptr};
}

bool Browsers::is_current(const Browser& browser) const {
  const auto found = by_digest_.find(browser.token_digest);
  return found != by_digest_.end() && !is_over(found->second);
}

std::vector<std::string> Browsers::surplus(const std::optional<AppName>& app) const {
  std::vector<const Known*> same;
  for (const auto& [digest, known] : by_digest_) {
    if (known.browser->app == app) same.push_back(&known);
  }
  std::vector<std::string> ids;
  if (same.size() < kBrowsersMaxPerHolder) return ids;
  std::ranges::sort(same, {}, &Known::last_seen_at);
  same.resize(same.size() - kBrowsersMaxPerHolder + 1);
  for (const Known* known : same) ids.push_back(known->browser->id);
  return ids;
}

Async<SignedIn> Browsers::sign_in(Wish wish) {
  SignedIn signed_in;
  signed_in.token = ids_.token(kBrowserTokenPrefix);
  Browser& browser = signed_in.browser;
  browser.id = ids_.uuid();
  browser.token_digest = sha256(signed_in.token.reveal());
  browser.parent_digest = wish.app == nullptr ? admin_digest_ : wish.app->token_digest;
  browser.name = std::move(wish.name);
  if (wish.app != nullptr) browser.app = wish.app->name;
  browser.address = std::move(wish.address);
  browser.stays = wish.stays;
  browser.created_at = browser.last_seen_at = browser.proved_at = clock_.now();
  browser.expires_at = browser.created_at + (wish.stays ? kStayMax : kSignedInMax);
  std::vector<std::string> replaced = surplus(browser.app);
  auto added = co_await rows_.add(
      browser, replaced,
      browser_event("sign_in", browser.created_at, browser.name, browser.address, wish.by));
  if (!added) co_return std::unexpected(added.error());
  std::erase_if(by_digest_, [&](const auto& entry) {
    return std::ranges::find(replaced, entry.second.browser->id) != replaced.end();
  });
  by_digest_.insert_or_assign(browser.token_digest, Known{std::make_shared<const Browser>(browser),
                                                          browser.last_seen_at, true});
  co_return signed_in;
}

Async<void> Browsers::end(std::string id, AdminOrigin by) {
  const auto found = find_by_id(id);
  if (found == by_digest_.end()) {
    co_return fail(Errc::not_found, "browser_not_found", "There is no browser of this id.");
  }
  const std::shared_ptr<const Browser> browser = found->second.browser;
  std::string members = R"("browser":)";
  append_json_string(members, browser->name);
  auto removed = co_await rows_.remove(id, browser->app.value_or(AppName()),
                                       token_event("sign_out", by, clock_.now(), members));
  if (!removed) co_return removed;
  by_digest_.erase(browser->token_digest);
  co_return Result<void>{};
}

Async<void> Browsers::prove(const Browser* browser) {
  const Digest digest = browser->token_digest;
  const TimePoint now = clock_.now();
  auto proved = co_await rows_.prove(browser->id, now);
  if (!proved) co_return proved;
  if (const auto found = by_digest_.find(digest); found != by_digest_.end()) {
    Browser changed = *found->second.browser;
    changed.proved_at = now;
    found->second.browser = std::make_shared<const Browser>(std::move(changed));
  }
  co_return Result<void>{};
}

Async<void> Browsers::note_failure(std::string name, std::string address, std::string by) {
  co_return co_await rows_.note(browser_event("sign_in_failed", clock_.now(), name, address, by));
}

std::vector<Browser> Browsers::list() const {
  std::vector<Browser> browsers;
  for (const auto& [digest, known] : by_digest_) {
    if (is_over(known)) continue;
    browsers.push_back(*known.browser);
    browsers.back().last_seen_at = known.last_seen_at;
  }
  std::ranges::sort(browsers, [](const Browser& a, const Browser& b) {
    return std::pair(b.last_seen_at, b.id) < std::pair(a.last_seen_at, a.id);
  });
  return browsers;
}

Async<void> Browsers::tidy() {
  std::vector<BrowserSight> seen;
  std::vector<std::string> ended;
  for (auto& [digest, known] : by_digest_) {
    if (is_over(known)) {
      ended.push_back(known.browser->id);
    } else if (!known.is_noted) {
      seen.push_back({known.browser->id, known.last_seen_at});
      known.is_noted = true;
    }
  }
  if (seen.empty() && ended.empty()) co_return Result<void>{};
  auto tidied = co_await rows_.tidy(std::move(seen), ended);
  if (!tidied) {
    for (auto& [digest, known] : by_digest_) known.is_noted = false;  // written the next time
    co_return tidied;
  }
  std::erase_if(by_digest_, [&](const auto& entry) {
    return std::ranges::find(ended, entry.second.browser->id) != ended.end();
  });
  co_return Result<void>{};
}

}  // namespace clawdforge
