#include "ledger/browsers/browser_rows.h"

#include <utility>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/rows/audit_rows.h"

namespace clawdforge {
namespace {

constexpr std::string_view kSelectBrowsers =
    "SELECT browser_id, token_sha256, parent_sha256, name, app_name, address, stays, created_at, "
    "last_seen_at, proved_at, expires_at FROM browsers";
constexpr std::string_view kAddBrowser =
    "INSERT INTO browsers (browser_id, token_sha256, parent_sha256, name, app_name, address, "
    "stays, "
    "created_at, last_seen_at, proved_at, expires_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (browser_id) DO NOTHING";
constexpr std::string_view kRemoveBrowser = "DELETE FROM browsers WHERE browser_id = $1";
constexpr std::string_view kProveBrowser =
    "UPDATE browsers SET proved_at = $2 WHERE browser_id = $1";
constexpr std::string_view kSeeBrowser =
    "UPDATE browsers SET last_seen_at = $2 WHERE browser_id = $1 AND last_seen_at < $2";

std::optional<Browser> browser_from(const SqlRow& row) {
  const auto id = text_in(row.at(0));
  const auto digest = digest_in(row.at(1));
  const auto parent = digest_in(row.at(2));
  const auto created_at = time_in(row.at(7));
  const auto expires_at = time_in(row.at(10));
  if (!id || !digest || !parent || !created_at || !expires_at) return std::nullopt;
  Browser browser;
  browser.id = *id;
  browser.token_digest = *digest;
  browser.parent_digest = *parent;
  browser.name = text_in(row.at(3)).value_or("");
  if (auto app = text_in(row.at(4))) browser.app = AppName(std::move(*app));
  browser.address = text_in(row.at(5)).value_or("");
  browser.stays = whole_in(row.at(6)).value_or(0) != 0;
  browser.created_at = *created_at;
  browser.last_seen_at = time_in(row.at(8)).value_or(*created_at);
  // Without a time of proof it has proved nothing.
  browser.proved_at = time_in(row.at(9)).value_or(TimePoint());
  browser.expires_at = *expires_at;
  return browser;
}

SqlRow row_of(const Browser& browser) {
  return {browser.id,
          to_hex(browser.token_digest),
          to_hex(browser.parent_digest),
          browser.name,
          browser.app ? SqlValue(browser.app->str()) : SqlValue(),
          browser.address,
          std::int64_t{browser.stays ? 1 : 0},
          unix_seconds(browser.created_at),
          unix_seconds(browser.last_seen_at),
          unix_seconds(browser.proved_at),
          unix_seconds(browser.expires_at)};
}

Result<void> remove_browsers(SqlDriver& driver, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto removed = driver.execute(kRemoveBrowser, {id});
    if (!removed) return std::unexpected(removed.error());
  }
  return {};
}

}  // namespace

Async<std::vector<Browser>> BrowserRows::list() const {
  return worker_.call<std::vector<Browser>>(Lane(), Access::read,
                                            [](SqlDriver& driver) -> Result<std::vector<Browser>> {
                                              const auto result = driver.execute(kSelectBrowsers);
                                              if (!result) return std::unexpected(result.error());
                                              std::vector<Browser> browsers;
                                              for (const SqlRow& row : result->rows) {
                                                if (auto browser = browser_from(row))
                                                  browsers.push_back(std::move(*browser));
                                              }
                                              return browsers;
                                            });
}

Async<void> BrowserRows::add(Browser browser, std::vector<std::string> replaced, AuditEvent event) {
  return worker_.call<void>(Lane(), Access::write,
                            [browser = std::move(browser), replaced = std::move(replaced),
                             event = std::move(event)](SqlDriver& driver) -> Result<void> {
                              const auto added = driver.execute(kAddBrowser, row_of(browser));
                              if (!added) return std::unexpected(added.error());
                              const auto removed = remove_browsers(driver, replaced);
                              if (!removed) return removed;
                              return add_audit(driver, SessionId(), browser.app.value_or(AppName()),
                                               event);
                            });
}

Async<void> BrowserRows::remove(std::string id, AppName app, AuditEvent event) {
  return worker_.call<void>(Lane(), Access::write,
                            [id = std::move(id), app = std::move(app),
                             event = std::move(event)](SqlDriver& driver) -> Result<void> {
                              const auto removed = driver.execute(kRemoveBrowser, {id});
                              if (!removed) return std::unexpected(removed.error());
                              if (removed->changed == 0) return {};
                              return add_audit(driver, SessionId(), app, event);
                            });
}

Async<void> BrowserRows::prove(std::string id, TimePoint at) {
  return worker_.call<void>(Lane(), Access::write, [id = std::move(id), at](SqlDriver& driver) {
    return without_rows(driver.execute(kProveBrowser, {id, unix_seconds(at)}));
  });
}

Async<void> BrowserRows::tidy(std::vector<BrowserSight> seen, std::vector<std::string> ended) {
  return worker_.call<void>(
      Lane(), Access::write,
      [seen = std::move(seen), ended = std::move(ended)](SqlDriver& driver) -> Result<void> {
        for (const BrowserSight& sight : seen) {
          const auto noted = driver.execute(kSeeBrowser, {sight.id, unix_seconds(sight.at)});
          if (!noted) return std::unexpected(noted.error());
        }
        return remove_browsers(driver, ended);
      });
}

Async<void> BrowserRows::note(AuditEvent event, AppName app, SessionId session_id) {
  return worker_.call<void>(
      Lane(), Access::write,
      [event = std::move(event), app = std::move(app), id = std::move(session_id)](
          SqlDriver& driver) { return add_audit(driver, id, app, event); });
}

}  // namespace clawdforge
