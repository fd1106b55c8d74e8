#include "ledger/hooks/delivery_write.h"

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::string_view kWaitingOf =
    "SELECT COUNT(*) FROM deliveries WHERE app_name = $1 AND state = 'waiting'";
constexpr std::string_view kAddDelivery =
    "INSERT INTO deliveries (delivery_id, app_name, url, type, body, state, created_at, begun_at, "
    "due_ms) VALUES ($1, $2, $3, $4, $5, 'waiting', $6, $6, $7) "
    "ON CONFLICT (delivery_id) DO NOTHING";
constexpr std::string_view kAddDead =
    "INSERT INTO deliveries (delivery_id, app_name, url, type, state, created_at, begun_at, "
    "due_ms, ended_at, last_error) VALUES ($1, $2, $3, $4, 'dead', $5, $5, $6, $5, $7) "
    "ON CONFLICT (delivery_id) DO NOTHING";
constexpr const char* kTooMany = "too many deliveries of this app were waiting";

}  // namespace

Result<void> add_delivery(SqlDriver& driver, const NewDelivery& delivery) {
  const auto waiting = driver.execute(kWaitingOf, {delivery.app.str()});
  if (!waiting) return std::unexpected(waiting.error());
  const std::int64_t count = whole_in(waiting->rows.at(0).at(0)).value_or(0);
  const std::int64_t at = unix_seconds(delivery.at);
  const std::int64_t due = delivery.at.time_since_epoch().count();
  if (count >= kDeliveriesWaitingMaxPerApp) {
    return without_rows(
        driver.execute(kAddDead, {delivery.id.str(), delivery.app.str(), delivery.url,
                                  delivery.type, at, due, std::string(kTooMany)}));
  }
  return without_rows(
      driver.execute(kAddDelivery, {delivery.id.str(), delivery.app.str(), delivery.url,
                                    delivery.type, delivery.body, at, due}));
}

}  // namespace clawdforge
