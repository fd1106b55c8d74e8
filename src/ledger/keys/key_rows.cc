#include "ledger/keys/key_rows.h"

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/keys/key_write.h"

namespace clawdforge {
namespace {

constexpr std::string_view kFindKey =
    "SELECT body_sha256, request_id, ended_at, status, headers, body, is_whole "
    "FROM idempotency_keys WHERE key_sha256 = $1";
constexpr std::string_view kCountKeys =
    "SELECT app_name, COUNT(*) FROM idempotency_keys GROUP BY app_name";
constexpr std::string_view kSumAnswers =
    "SELECT app_name, SUM(bytes) FROM idempotency_keys GROUP BY app_name";
constexpr std::string_view kTrimKeys =
    "DELETE FROM idempotency_keys WHERE key_sha256 IN (SELECT key_sha256 FROM idempotency_keys "
    "WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)";
constexpr std::string_view kInterruptKeys =
    "UPDATE idempotency_keys SET ended_at = $2 WHERE ended_at IS NULL "
    "AND (instance_id IS NULL OR instance_id <> $1) AND NOT EXISTS (SELECT 1 FROM instances "
    "WHERE instances.instance_id = idempotency_keys.instance_id AND instances.ended_at IS NULL)";

// A row that another program has spoilt counts as interrupted: it was begun, and no more is known.
KeyRecord record_in(const SqlRow& row) {
  KeyRecord record;
  record.fingerprint = digest_in(row.at(0)).value_or(Digest{});
  record.ended_at = time_in(row.at(2));
  if (!record.ended_at) return record;
  KeptAnswer answer;
  answer.request_id = text_in(row.at(1)).value_or("");
  const auto status = whole_in(row.at(3));
  auto body = text_in(row.at(5));
  if (!status || !body || *status < 200 || *status > 599) {
    answer.kind = KeptKind::interrupted;
  } else {
    answer.kind = whole_in(row.at(6)) == 1 ? KeptKind::whole : KeptKind::too_large;
    answer.status = static_cast<int>(*status);
    answer.headers = text_in(row.at(4)).value_or("");
    answer.body = std::move(*body);
  }
  record.answer = std::make_shared<const KeptAnswer>(std::move(answer));
  return record;
}

}  // namespace

// Beside the commits: what was answered before is seen, and what is under way is known in memory.
Async<std::optional<KeyRecord>> KeyRows::find(Digest digest, AppName app) const {
  return worker_.read<std::optional<KeyRecord>>(
      Lane(std::move(app)), [digest](SqlDriver& driver) -> Result<std::optional<KeyRecord>> {
        const auto found = driver.execute(kFindKey, {to_hex(digest)});
        if (!found) return std::unexpected(found.error());
        if (found->rows.empty()) return std::nullopt;
        return record_in(found->rows.front());
      });
}

Async<std::map<AppName, std::int64_t>> KeyRows::count_by_app() const {
  return worker_.read<BytesByApp>(
      Lane(), [](SqlDriver& driver) { return bytes_by_app_in(driver.execute(kCountKeys)); });
}

Async<std::map<AppName, std::int64_t>> KeyRows::bytes_by_app() const {
  return worker_.read<BytesByApp>(
      Lane(), [](SqlDriver& driver) { return bytes_by_app_in(driver.execute(kSumAnswers)); });
}

Async<void> KeyRows::write(KeyWrite write) {
  Lane lane(write.key.app);
  return worker_.call<void>(
      std::move(lane), Access::write,
      [write = std::move(write)](SqlDriver& driver) { return write_key(driver, write); });
}

Async<std::int64_t> KeyRows::trim(TimePoint last, std::int64_t rows_max) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [last, rows_max](SqlDriver& driver) {
    return changed_by(driver.execute(kTrimKeys, {unix_seconds(last), rows_max}));
  });
}

Async<std::int64_t> KeyRows::interrupt_left(TimePoint at) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [self = self_, at](SqlDriver& driver) {
    return changed_by(driver.execute(kInterruptKeys, {self.str(), unix_seconds(at)}));
  });
}

}  // namespace clawdforge
