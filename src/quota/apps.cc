#include "quota/apps.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "model/limits/app_limits.h"

namespace clawdforge {
namespace {

constexpr std::size_t kAppsMax = 10'000;
constexpr std::string_view kTokenPrefix = "cf_";
constexpr std::string_view kWebhookSecretPrefix = "whsec_";

}  // namespace

std::unexpected<Failure> token_revoked() {
  auto failed = fail(Errc::unauthorized, "token_revoked",
                     "The token was revoked or replaced while this was under way.");
  failed.error().cause = Cause::cancelled;
  return failed;
}

std::size_t Apps::ByFirstBytes::operator()(const Digest& digest) const {
  std::size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

Apps::Apps(AppRows& rows, const Clock& clock, IdSource& ids, Log& log)
    : rows_(rows), clock_(clock), ids_(ids), log_(log) {}

Apps::Table::iterator Apps::find_by_name(const AppName& name) {
  return std::ranges::find_if(by_digest_,
                              [&](const auto& entry) { return entry.second.app->name == name; });
}

Async<void> Apps::reload() {
  auto rows = co_await rows_.list();
  if (!rows) co_return std::unexpected(rows.error());
  Table fresh;
  std::unordered_set<std::string> names;  // a row that cannot be understood is still there
  for (const UnreadableApp& row : rows->unreadable) names.insert(row.name);
  for (App& row : rows->apps) {
    Known known;
    known.last_used_at = row.last_used_at;
    // A use that is not in the ledger yet must outlive the exchange of tables.
    if (const auto old = by_digest_.find(row.token_digest);
        old != by_digest_.end() && !old->second.is_noted) {
      known.last_used_at = old->second.last_used_at;
      known.is_noted = false;
    }
    const Digest digest = row.token_digest;
    names.insert(row.name.str());
    known.app = std::make_shared<const App>(std::move(row));
    fresh.insert_or_assign(digest, std::move(known));
  }
  const Table old = std::exchange(by_digest_, std::move(fresh));
  std::vector<std::string> unreadable;
  for (const UnreadableApp& row : rows->unreadable) {
    unreadable.push_back(row.name);
    if (std::ranges::find(unreadable_, row.name) != unreadable_.end()) continue;
    log_.warn("an app's row cannot be understood, so its token does not work",
              {{"app", std::string_view(row.name)}, {"why", std::string_view(row.reason)}});
  }
  for (const std::string& name : std::exchange(unreadable_, std::move(unreadable))) {
    if (!names.contains(name)) tell_removed(AppName(name));
  }
  for (const auto& [digest, known] : old) {
    if (!names.contains(known.app->name.str())) tell_removed(known.app->name);
  }
  co_return Result<void>{};
}

bool Apps::has_expired(const App& app) const {
  const AppLimits* const limits = app.limits.get();
  return limits != nullptr && limits->expires_at &&
         unix_seconds(clock_.now()) >= *limits->expires_at;
}

std::shared_ptr<const App> Apps::named(const AppName& name) const {
  const auto found = std::ranges::find_if(
      by_digest_, [&](const auto& entry) { return entry.second.app->name == name; });
  if (found == by_digest_.end() || has_expired(*found->second.app)) return nullptr;
  return found->second.app;
}

std::shared_ptr<const App> Apps::find(std::string_view token) {
  if (!token.starts_with(kTokenPrefix)) return nullptr;
  const auto found = by_digest_.find(sha256(token));
  if (found == by_digest_.end()) return nullptr;
  Known& known = found->second;
  if (has_expired(*known.app)) return nullptr;
  // The ledger keeps seconds: a second use within one changes nothing.
  const TimePoint now = clock_.now();
  if (!known.last_used_at || unix_seconds(*known.last_used_at) != unix_seconds(now)) {
    known.last_used_at = now;
    known.is_noted = false;
  }
  return known.app;
}

Async<MintedToken> Apps::mint(App app, AdminOrigin by) {
  if (by_digest_.size() >= kAppsMax) {
    co_return fail(Errc::conflict, "too_many_apps",
                   "The gateway has all the apps it can know; revoke one first.");
  }
  MintedToken minted;
  minted.token = ids_.token(kTokenPrefix);
  minted.app = std::move(app);
  minted.app.token_digest = sha256(minted.token.reveal());
  minted.app.created_at = clock_.now();
  minted.app.last_used_at = std::nullopt;
  Secret kept;
  if (minted.app.policy.webhook_urls) {
    minted.webhook_secret = ids_.key(kWebhookSecretPrefix);
    kept = Secret(std::string(minted.webhook_secret.reveal()));
  }
  auto added = co_await rows_.add(minted.app, token_event(kTokenMint, by, minted.app.created_at),
                                  std::move(kept));
  if (!added) co_return std::unexpected(added.error());
  Known known;
  known.app = std::make_shared<const App>(minted.app);
  by_digest_.insert_or_assign(minted.app.token_digest, std::move(known));
  co_return minted;
}

Async<ChangedToken> Apps::change(AppName name, AppChange change, AdminOrigin by) {
  Secret secret = ids_.key(kWebhookSecretPrefix);
  auto changed =
      co_await rows_.change(name, std::move(change), token_event(kTokenChange, by, clock_.now()),
                            Secret(std::string(secret.reveal())));
  if (!changed) co_return std::unexpected(changed.error());
  ChangedToken token{.app = std::move(changed->app), .webhook_secret = {}};
  if (changed->has_new_secret) token.webhook_secret = std::move(secret);
  const auto known = find_by_name(name);
  if (known == by_digest_.end()) {
    // Another program has added the row, and memory has not seen it.
    const auto reloaded = co_await reload();
    if (!reloaded) co_return std::unexpected(reloaded.error());
    co_return token;
  }
  token.app.token_digest = known->first;  // it may have been rotated since
  token.app.last_used_at = known->second.last_used_at;
  known->second.app = std::make_shared<const App>(token.app);
  co_return token;
}

Async<Secret> Apps::rotate_webhook_secret(AppName name, AdminOrigin by) {
  Secret secret = ids_.key(kWebhookSecretPrefix);
  const auto replaced =
      co_await rows_.replace_secret(std::move(name), Secret(std::string(secret.reveal())),
                                    token_event(kWebhookSecret, by, clock_.now()));
  if (!replaced) co_return std::unexpected(replaced.error());
  co_return secret;
}

Async<MintedToken> Apps::rotate(AppName name, AdminOrigin by) {
  MintedToken minted;
  minted.token = ids_.token(kTokenPrefix);
  const Digest digest = sha256(minted.token.reveal());
  auto rotated = co_await rows_.rotate(name, digest, token_event(kTokenRotate, by, clock_.now()));
  if (!rotated) co_return std::unexpected(rotated.error());
  // The row may be one that another program has just added, and memory has not seen.
  auto known = find_by_name(name);
  if (known == by_digest_.end()) {
    auto reloaded = co_await reload();
    if (!reloaded) co_return std::unexpected(reloaded.error());
    known = find_by_name(name);
    if (known == by_digest_.end()) {
      co_return fail(Errc::not_found, "token_not_found", "There is no token of this name.");
    }
    minted.app = *known->second.app;
    co_return minted;
  }
  auto entry = by_digest_.extract(known);
  minted.app = *entry.mapped().app;
  minted.app.token_digest = digest;
  entry.key() = digest;
  entry.mapped().app = std::make_shared<const App>(minted.app);
  by_digest_.insert(std::move(entry));
  co_return minted;
}

Async<void> Apps::revoke(AppName name, AdminOrigin by) {
  const TimePoint now = clock_.now();
  auto removed = co_await rows_.remove(name, now, token_event(kTokenRevoke, by, now));
  if (!removed) co_return std::unexpected(removed.error());
  if (const auto known = find_by_name(name); known != by_digest_.end()) by_digest_.erase(known);
  tell_removed(name);
  co_return Result<void>{};
}

void Apps::tell_removed(const AppName& name) const {
  if (on_removed_) on_removed_(name);
}

std::vector<App> Apps::list() const {
  std::vector<App> apps;
  apps.reserve(by_digest_.size());
  for (const auto& [digest, known] : by_digest_) {
    apps.push_back(*known.app);
    apps.back().last_used_at = known.last_used_at;
  }
  std::ranges::sort(apps, {}, &App::name);
  return apps;
}

Async<void> Apps::note_uses() {
  std::vector<AppUse> uses;
  for (auto& [digest, known] : by_digest_) {
    if (known.is_noted || !known.last_used_at) continue;
    uses.push_back({known.app->name, *known.last_used_at});
    known.is_noted = true;
  }
  if (uses.empty()) co_return Result<void>{};
  auto kept = uses;
  auto noted = co_await rows_.note_use(std::move(uses));
  if (noted) co_return Result<void>{};
  std::unordered_set<AppName> names;
  for (const AppUse& use : kept) names.insert(use.name);
  for (auto& [digest, known] : by_digest_) {
    if (names.contains(known.app->name)) known.is_noted = false;
  }
  co_return std::unexpected(noted.error());
}

bool Apps::is_current(const App& app) const { return by_digest_.contains(app.token_digest); }

}  // namespace clawdforge
