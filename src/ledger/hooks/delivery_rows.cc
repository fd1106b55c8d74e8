#include "ledger/hooks/delivery_rows.h"

#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/hooks/delivery_write.h"
#include "ledger/rows/page_cursor.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

// What delivery_from() reads, in its order.
constexpr std::string_view kDeliveryColumns =
    "delivery_id, app_name, url, type, state, attempts, created_at, due_ms, ended_at, last_status, "
    "last_error";
enum DeliveryColumn : std::size_t {
  kDeliveryId,
  kDeliveryApp,
  kDeliveryUrl,
  kDeliveryType,
  kDeliveryStateName,
  kDeliveryAttempts,
  kDeliveryCreatedAt,
  kDeliveryDueMs,
  kDeliveryEndedAt,
  kDeliveryLastStatus,
  kDeliveryLastError
};

constexpr std::string_view kDueByApp =
    "SELECT app_name, MIN(due_ms) FROM deliveries WHERE state = 'waiting' GROUP BY app_name";
constexpr std::string_view kWaiting = "SELECT COUNT(*) FROM deliveries WHERE state = 'waiting'";
constexpr std::string_view kNextOf =
    "SELECT delivery_id, due_ms FROM deliveries "
    "WHERE app_name = $1 AND state = 'waiting' ORDER BY due_ms, delivery_id LIMIT $2";
constexpr std::string_view kDue =
    "SELECT url, type, body, attempts, begun_at, policy, webhook_secret "
    "FROM deliveries JOIN tokens ON name = app_name "
    "WHERE delivery_id = $1 AND state = 'waiting'";
constexpr std::string_view kNoteDelivered =
    "UPDATE deliveries SET state = 'delivered', body = NULL, attempts = attempts + 1, "
    "ended_at = $2, last_status = $3, last_error = NULL "
    "WHERE delivery_id = $1 AND state = 'waiting'";
constexpr std::string_view kNoteFailed =
    "UPDATE deliveries SET attempts = attempts + 1, due_ms = $2, last_status = $3, last_error = $4 "
    "WHERE delivery_id = $1 AND state = 'waiting'";
constexpr std::string_view kNoteDead =
    "UPDATE deliveries SET state = 'dead', attempts = attempts + 1, ended_at = $2, "
    "last_status = $3, last_error = $4 WHERE delivery_id = $1 AND state = 'waiting'";
constexpr std::string_view kRetryDelivery =
    "UPDATE deliveries SET state = 'waiting', attempts = 0, begun_at = $2, due_ms = $3, "
    "ended_at = NULL WHERE delivery_id = $1 AND state = 'dead' AND body IS NOT NULL";
constexpr std::string_view kTrimDeliveries =
    "DELETE FROM deliveries WHERE delivery_id IN (SELECT delivery_id FROM deliveries "
    "WHERE state = $3 AND ended_at <= $1 ORDER BY created_at LIMIT $2)";

// Another program may have deleted the app's row while no gateway ran.
constexpr std::string_view kDropOwnerless =
    "DELETE FROM deliveries WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE name = app_name)";

std::optional<TimePoint> milliseconds_in(const SqlValue& value) {
  return whole_in(value).transform(
      [](std::int64_t count) { return TimePoint(std::chrono::milliseconds(count)); });
}

Delivery delivery_from(const SqlRow& row) {
  Delivery delivery;
  delivery.id = id_in<DeliveryId>(row.at(kDeliveryId));
  delivery.app = id_in<AppName>(row.at(kDeliveryApp));
  delivery.url = text_in(row.at(kDeliveryUrl)).value_or("");
  delivery.type = text_in(row.at(kDeliveryType)).value_or("");
  delivery.state = delivery_state_from(text_in(row.at(kDeliveryStateName)).value_or(""))
                       .value_or(DeliveryState::dead);
  delivery.attempts = whole_in(row.at(kDeliveryAttempts)).value_or(0);
  delivery.created_at = time_in(row.at(kDeliveryCreatedAt)).value_or(TimePoint());
  if (delivery.state == DeliveryState::waiting) {
    delivery.next_at = milliseconds_in(row.at(kDeliveryDueMs));
  }
  delivery.ended_at = time_in(row.at(kDeliveryEndedAt));
  delivery.last_status = whole_in(row.at(kDeliveryLastStatus));
  delivery.last_error = text_in(row.at(kDeliveryLastError)).value_or("");
  return delivery;
}

// The policy that counts is the one of now: what its owner has taken back is not called any more.
bool is_allowed_by(const SqlValue& policy, std::string_view url) {
  const auto text = text_in(policy);
  const auto read = text ? policy_from(*text) : Policy{};
  return read && check_webhook(*read, url).has_value();
}

DueDelivery due_from(const DeliveryId& id, const SqlRow& row) {
  DueDelivery due;
  due.id = id;
  due.url = text_in(row.at(0)).value_or("");
  due.type = text_in(row.at(1)).value_or("");
  due.body = text_in(row.at(2)).value_or("");
  due.attempts = whole_in(row.at(3)).value_or(0);
  due.begun_at = time_in(row.at(4)).value_or(TimePoint());
  due.is_allowed = is_allowed_by(row.at(5), due.url);
  due.secret = Secret(text_in(row.at(6)).value_or(""));
  return due;
}

Result<std::vector<NextDelivery>> select_next(SqlDriver& driver, const AppName& app,
                                              std::int64_t limit) {
  const auto found = driver.execute(kNextOf, {app.str(), limit});
  if (!found) return std::unexpected(found.error());
  std::vector<NextDelivery> next;
  next.reserve(found->rows.size());
  for (const SqlRow& row : found->rows) {
    next.push_back(
        {id_in<DeliveryId>(row.at(0)), milliseconds_in(row.at(1)).value_or(TimePoint())});
  }
  return next;
}

Result<std::optional<DueDelivery>> select_due_one(SqlDriver& driver, const DeliveryId& id) {
  const auto found = driver.execute(kDue, {id.str()});
  if (!found) return std::unexpected(found.error());
  if (found->rows.empty()) return std::nullopt;
  return due_from(id, found->rows[0]);
}

Result<std::map<AppName, TimePoint>> select_due(SqlDriver& driver) {
  const auto found = driver.execute(kDueByApp);
  if (!found) return std::unexpected(found.error());
  std::map<AppName, TimePoint> due;
  for (const SqlRow& row : found->rows) {
    due.emplace(id_in<AppName>(row.at(0)), milliseconds_in(row.at(1)).value_or(TimePoint()));
  }
  return due;
}

// Two fixed statements for each filter: what is prepared is never dropped.
Result<DeliveryPage> select_page(SqlDriver& driver, const DeliveryFilter& filter,
                                 const PageCursor& place) {
  constexpr std::string_view kPage =
      "SELECT {} FROM deliveries WHERE {}created_at >= $1 AND created_at <= $2 "
      "AND (created_at < $2 OR delivery_id < $3) "
      "ORDER BY created_at DESC, delivery_id DESC LIMIT $4";
  static const std::string kOfAll = fmt::format(kPage, kDeliveryColumns, "");
  static const std::string kOfApp = fmt::format(kPage, kDeliveryColumns, "app_name = $5 AND ");
  static const std::string kOfState = fmt::format(kPage, kDeliveryColumns, "state = $5 AND ");
  static const std::string kOfBoth =
      fmt::format(kPage, kDeliveryColumns, "app_name = $5 AND state = $6 AND ");
  SqlRow params = page_params(filter.audit, place);
  if (filter.audit.app) params.emplace_back(filter.audit.app->str());
  if (filter.state) params.emplace_back(std::string(name_of(*filter.state)));
  const std::string& of_app = filter.state ? kOfBoth : kOfApp;
  const std::string& of_any = filter.state ? kOfState : kOfAll;
  auto found = driver.execute(filter.audit.app ? of_app : of_any, params);
  if (!found) return std::unexpected(std::move(found.error()));
  DeliveryPage page;
  page.next_cursor = cut_page(found->rows, filter.audit.limit, kDeliveryCreatedAt, kDeliveryId);
  page.deliveries.reserve(found->rows.size());
  for (const SqlRow& row : found->rows) page.deliveries.push_back(delivery_from(row));
  return page;
}

Result<Delivery> select_delivery(SqlDriver& driver, const DeliveryId& id) {
  static const std::string kOne =
      fmt::format("SELECT {} FROM deliveries WHERE delivery_id = $1", kDeliveryColumns);
  const auto found = driver.execute(kOne, {id.str()});
  if (!found) return std::unexpected(found.error());
  if (found->rows.empty()) {
    return fail(Errc::not_found, "delivery_not_found",
                "There is no such delivery, or it was swept.");
  }
  return delivery_from(found->rows[0]);
}

Result<Delivery> retry_one(SqlDriver& driver, const DeliveryId& id, TimePoint at) {
  const auto changed =
      driver.execute(kRetryDelivery, {id.str(), unix_seconds(at), at.time_since_epoch().count()});
  if (!changed) return std::unexpected(changed.error());
  auto delivery = select_delivery(driver, id);
  if (!delivery || changed->changed > 0) return delivery;
  if (delivery->state != DeliveryState::dead) {
    return fail(Errc::conflict, "delivery_not_dead",
                "Only a dead delivery can be tried again; this one waits or is delivered.");
  }
  return fail(Errc::conflict, "delivery_without_body",
              "The delivery has no body any more: too many waited when it was made.");
}

Result<void> note_one(SqlDriver& driver, const DeliveryId& id, const DeliveryAttempt& attempt,
                      const std::optional<TimePoint>& again_at) {
  const std::int64_t at = unix_seconds(attempt.at);
  const SqlValue status = sql_value(attempt.status);
  if (attempt.error.empty()) {
    return without_rows(driver.execute(kNoteDelivered, {id.str(), at, status}));
  }
  if (!again_at) {
    return without_rows(driver.execute(kNoteDead, {id.str(), at, status, attempt.error}));
  }
  return without_rows(driver.execute(
      kNoteFailed, {id.str(), again_at->time_since_epoch().count(), status, attempt.error}));
}

}  // namespace

Async<DeliveryPage> DeliveryRows::page(DeliveryFilter filter) const {
  auto place = place_of(filter.audit);
  if (!place) co_return std::unexpected(std::move(place.error()));
  auto reading = worker_.read<DeliveryPage>(
      Lane(), [filter = std::move(filter), place = std::move(*place)](SqlDriver& driver) {
        return select_page(driver, filter, place);
      });
  co_return co_await std::move(reading);
}

Async<std::map<AppName, TimePoint>> DeliveryRows::due_by_app() const {
  return worker_.call<std::map<AppName, TimePoint>>(Lane(), Access::read, select_due);
}

Async<std::vector<NextDelivery>> DeliveryRows::next(AppName app, std::int64_t limit) const {
  return worker_.call<std::vector<NextDelivery>>(
      Lane(), Access::read,
      [app = std::move(app), limit](SqlDriver& driver) { return select_next(driver, app, limit); });
}

Async<std::optional<DueDelivery>> DeliveryRows::due(DeliveryId id) const {
  return worker_.call<std::optional<DueDelivery>>(
      Lane(), Access::read,
      [id = std::move(id)](SqlDriver& driver) { return select_due_one(driver, id); });
}

Async<std::int64_t> DeliveryRows::waiting() const {
  return worker_.read<std::int64_t>(Lane(), [](SqlDriver& driver) -> Result<std::int64_t> {
    const auto found = driver.execute(kWaiting);
    if (!found) return std::unexpected(found.error());
    return whole_in(found->rows.at(0).at(0)).value_or(0);
  });
}

Async<void> DeliveryRows::add(NewDelivery delivery) {
  Lane lane(delivery.app);
  return worker_.call<void>(std::move(lane), Access::write,
                            [delivery = std::move(delivery)](SqlDriver& driver) {
                              return add_delivery(driver, delivery);
                            });
}

Async<void> DeliveryRows::note(DeliveryId id, DeliveryAttempt attempt,
                               std::optional<TimePoint> again_at) {
  return worker_.call<void>(
      Lane(), Access::write,
      [id = std::move(id), attempt = std::move(attempt), again_at](SqlDriver& driver) {
        return note_one(driver, id, attempt, again_at);
      });
}

Async<Delivery> DeliveryRows::retry(DeliveryId id, TimePoint at) {
  return worker_.call<Delivery>(Lane(), Access::write, [id = std::move(id), at](SqlDriver& driver) {
    return retry_one(driver, id, at);
  });
}

Async<std::int64_t> DeliveryRows::trim(TimePoint last, std::int64_t rows_max) {
  return worker_.call<std::int64_t>(
      Lane(), Access::write, [last, rows_max](SqlDriver& driver) -> Result<std::int64_t> {
        const auto dropped = driver.execute(kDropOwnerless);
        if (!dropped) return std::unexpected(dropped.error());
        std::int64_t trimmed = 0;
        for (const DeliveryState state : {DeliveryState::delivered, DeliveryState::dead}) {
          const auto removed = changed_by(driver.execute(
              kTrimDeliveries, {unix_seconds(last), rows_max, std::string(name_of(state))}));
          if (!removed) return removed;
          trimmed += *removed;
        }
        return trimmed;
      });
}

}  // namespace clawdforge
