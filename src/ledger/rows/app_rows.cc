#include "ledger/rows/app_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/app_row.h"
#include "ledger/rows/audit_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kDigestOfApp = "SELECT token_sha256 FROM tokens WHERE name = $1";
constexpr std::string_view kRotateApp = "UPDATE tokens SET token_sha256 = $2 WHERE name = $1";
constexpr std::string_view kDeleteApp = "DELETE FROM tokens WHERE name = $1";
constexpr std::string_view kNoteClosed =
    "INSERT INTO session_events (session_id, app_name, event, at, meta) "
    "SELECT session_id, app_name, 'close', CAST($2 AS BIGINT), '{\"reason\":\"token_revoked\"}' "
    "FROM sessions WHERE app_name = $1 AND closed_at IS NULL";
constexpr std::string_view kCloseSessions =
    "UPDATE sessions SET closed_at = $2, close_reason = 'token_revoked' "
    "WHERE app_name = $1 AND closed_at IS NULL";
constexpr std::string_view kExpireUploads =
    "UPDATE uploads SET expires_at = $2 WHERE app_name = $1 AND expires_at > $2";
constexpr std::string_view kDropDeliveries = "DELETE FROM deliveries WHERE app_name = $1";
// Only the first: a secret that its app knows must go on working.
constexpr std::string_view kFirstSecret =
    "UPDATE tokens SET webhook_secret = $2 WHERE name = $1 AND webhook_secret IS NULL";
constexpr std::string_view kReplaceSecret =
    "UPDATE tokens SET webhook_secret = $2 WHERE name = $1 AND webhook_secret IS NOT NULL";
constexpr std::string_view kCancelJobs =
    "UPDATE jobs SET state = 'cancelled', ended_at = $2, body = NULL, body_bytes = 0 "
    "WHERE app_name = $1 AND state = 'queued'";
constexpr std::string_view kForgetKeys = "DELETE FROM idempotency_keys WHERE app_name = $1";
constexpr std::string_view kNoteUse =
    "UPDATE tokens SET last_used_at = $2 "
    "WHERE name = $1 AND (last_used_at IS NULL OR last_used_at < $2)";

std::unexpected<Failure> no_such_app() {
  return fail(Errc::not_found, "token_not_found", "There is no token of this name.");
}

Result<AppList> select_apps(SqlDriver& driver) {
  static const std::string kSelectApps = fmt::format("SELECT {} FROM tokens", app_columns());
  auto result = driver.execute(kSelectApps);
  if (!result) return std::unexpected(std::move(result.error()));
  AppList list;
  list.apps.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) {
    auto app = app_from(row);
    if (app) {
      list.apps.push_back(std::move(*app));
    } else {
      list.unreadable.push_back({name_in(row), std::move(app.error())});
    }
  }
  // Not left to the database: its order would depend on its collation.
  std::ranges::sort(list.apps, {}, &App::name);
  return list;
}

// A change of a token belongs to no session.
Result<void> note_token(SqlDriver& driver, const AppName& app, const AppRows::Audit& audit) {
  if (!audit) return {};
  return add_audit(driver, SessionId(), app, *audit);
}

// Whether the app has it now.
Result<bool> take_first_secret(SqlDriver& driver, const App& app, const Secret& secret) {
  if (!app.policy.webhook_urls || secret.empty()) return false;
  const auto made = driver.execute(kFirstSecret, {app.name.str(), std::string(secret.reveal())});
  if (!made) return std::unexpected(made.error());
  return made->changed > 0;
}

// A row with the same digest is this one: an answer to its commit was lost.
Result<void> insert_app(SqlDriver& driver, const App& app, const AppRows::Audit& audit,
                        const Secret& secret) {
  static const std::string kAddApp = app_insert();
  const auto added = driver.execute(kAddApp, row_of(app));
  if (!added) return std::unexpected(added.error());
  if (added->changed > 0) {
    const auto made = take_first_secret(driver, app, secret);
    if (!made) return std::unexpected(made.error());
    return note_token(driver, app.name, audit);
  }
  const auto known = driver.execute(kDigestOfApp, {app.name.str()});
  if (!known) return std::unexpected(known.error());
  if (!known->rows.empty() && digest_in(known->rows[0].at(0)) == app.token_digest) return {};
  return fail(Errc::conflict, "name_taken", "There is a token of this name already.");
}

// In one transaction: of two changes at the same time, none is lost.
Result<ChangedApp> change_app(SqlDriver& driver, const AppName& name, const AppChange& change,
                              const AppRows::Audit& audit, const Secret& secret) {
  static const std::string kSelectApp =
      fmt::format("SELECT {} FROM tokens WHERE name = $1", app_columns());
  static const std::string kChangeApp = app_update();
  const auto found = driver.execute(kSelectApp, {name.str()});
  if (!found) return std::unexpected(found.error());
  if (found->rows.empty()) return no_such_app();
  auto app = app_from(found->rows[0]);
  if (!app) {
    return fail(Errc::conflict, "token_unreadable",
                "The token's row cannot be understood; revoke it and mint another one.",
                std::move(app.error()));
  }
  change(*app);
  const auto changed = driver.execute(kChangeApp, changes_of(*app));
  if (!changed) return std::unexpected(changed.error());
  const auto made = take_first_secret(driver, *app, secret);
  if (!made) return std::unexpected(made.error());
  const auto audited = note_token(driver, name, audit);
  if (!audited) return std::unexpected(audited.error());
  return ChangedApp{std::move(*app), *made};
}

Result<void> replace_secret_of(SqlDriver& driver, const AppName& name, const Secret& secret,
                               const AppRows::Audit& audit) {
  const auto replaced = driver.execute(kReplaceSecret, {name.str(), std::string(secret.reveal())});
  if (!replaced) return std::unexpected(replaced.error());
  if (replaced->changed > 0) return note_token(driver, name, audit);
  const auto known = driver.execute(kDigestOfApp, {name.str()});
  if (!known) return std::unexpected(known.error());
  if (known->rows.empty()) return no_such_app();
  return fail(Errc::conflict, "no_webhooks",
              "The token has no webhook_urls, so it has no secret; set them, and it gets one.");
}

// Its sessions, uploads, jobs, deliveries and idempotency keys.
Result<void> close_belongings(SqlDriver& driver, const AppName& name, std::int64_t at) {
  const auto noted = driver.execute(kNoteClosed, {name.str(), at});
  if (!noted) return std::unexpected(noted.error());
  const auto closed = driver.execute(kCloseSessions, {name.str(), at});
  if (!closed) return std::unexpected(closed.error());
  const auto forgotten = driver.execute(kForgetKeys, {name.str()});
  if (!forgotten) return std::unexpected(forgotten.error());
  const auto expired = driver.execute(kExpireUploads, {name.str(), at});
  if (!expired) return std::unexpected(expired.error());
  const auto cancelled = driver.execute(kCancelJobs, {name.str(), at});
  if (!cancelled) return std::unexpected(cancelled.error());
  return without_rows(driver.execute(kDropDeliveries, {name.str()}));
}

Result<void> delete_app(SqlDriver& driver, const AppName& name, std::int64_t at,
                        const AppRows::Audit& audit) {
  const auto deleted = driver.execute(kDeleteApp, {name.str()});
  if (!deleted) return std::unexpected(deleted.error());
  if (deleted->changed == 0) return no_such_app();
  const auto audited = note_token(driver, name, audit);
  if (!audited) return audited;
  return close_belongings(driver, name, at);
}

}  // namespace

Async<AppList> AppRows::list() const {
  return worker_.call<AppList>(Lane(), Access::read, select_apps);
}

Async<void> AppRows::add(App app, Audit audit, Secret webhook_secret) {
  return worker_.call<void>(
      Lane(), Access::write,
      [app = std::move(app), audit = std::move(audit), secret = std::move(webhook_secret)](
          SqlDriver& driver) { return insert_app(driver, app, audit, secret); });
}

Async<void> AppRows::replace_secret(AppName name, Secret webhook_secret, Audit audit) {
  return worker_.call<void>(
      Lane(), Access::write,
      [name = std::move(name), secret = std::move(webhook_secret), audit = std::move(audit)](
          SqlDriver& driver) { return replace_secret_of(driver, name, secret, audit); });
}

Async<void> AppRows::rotate(AppName name, Digest token_digest, Audit audit) {
  return worker_.call<void>(Lane(), Access::write,
                            [name = std::move(name), digest = token_digest,
                             audit = std::move(audit)](SqlDriver& driver) -> Result<void> {
                              const auto changed =
                                  driver.execute(kRotateApp, {name.str(), to_hex(digest)});
                              if (!changed) return std::unexpected(changed.error());
                              if (changed->changed == 0) return no_such_app();
                              return note_token(driver, name, audit);
                            });
}

Async<void> AppRows::remove(AppName name, TimePoint at, Audit audit) {
  return worker_.call<void>(
      Lane(), Access::write,
      [name = std::move(name), at, audit = std::move(audit)](SqlDriver& driver) {
        return delete_app(driver, name, unix_seconds(at), audit);
      });
}

Async<void> AppRows::close_left(AppName name, TimePoint at) {
  return worker_.call<void>(Lane(), Access::write,
                            [name = std::move(name), at](SqlDriver& driver) -> Result<void> {
                              const auto found = driver.execute(kDigestOfApp, {name.str()});
                              if (!found) return std::unexpected(found.error());
                              if (!found->rows.empty()) return {};
                              return close_belongings(driver, name, unix_seconds(at));
                            });
}

Async<ChangedApp> AppRows::change(AppName name, AppChange change, Audit audit,
                                  Secret webhook_secret) {
  return worker_.call<ChangedApp>(
      Lane(), Access::write,
      [name = std::move(name), change = std::move(change), audit = std::move(audit),
       secret = std::move(webhook_secret)](SqlDriver& driver) {
        return change_app(driver, name, change, audit, secret);
      });
}

Async<void> AppRows::note_use(std::vector<AppUse> uses) {
  return worker_.call<void>(
      Lane(), Access::write, [uses = std::move(uses)](SqlDriver& driver) -> Result<void> {
        for (const AppUse& use : uses) {
          const auto noted =
              driver.execute(kNoteUse, {use.name.str(), unix_seconds(use.last_used_at)});
          if (!noted) return std::unexpected(noted.error());
        }
        return {};
      });
}

}  // namespace clawdforge
