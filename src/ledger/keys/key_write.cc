#include "ledger/keys/key_write.h"

#include "ledger/core/sql_driver.h"

namespace clawdforge {
namespace {

constexpr std::string_view kBegin =
    "INSERT INTO idempotency_keys (key_sha256, app_name, body_sha256, request_id, begun_at, "
    "instance_id) SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), $6 "
    "WHERE EXISTS (SELECT 1 FROM tokens WHERE name = $2) ON CONFLICT (key_sha256) DO NOTHING";
constexpr std::string_view kKeep =
    "INSERT INTO idempotency_keys (key_sha256, app_name, body_sha256, request_id, begun_at, "
    "instance_id, ended_at, status, headers, body, is_whole, bytes) "
    "SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), $6, CAST($7 AS BIGINT), CAST($8 AS BIGINT), $9, "
    "$10, CAST($11 AS BIGINT), CAST($12 AS BIGINT) "
    "WHERE EXISTS (SELECT 1 FROM tokens WHERE name = $2) "
    "ON CONFLICT (key_sha256) DO UPDATE SET ended_at = $7, status = $8, headers = $9, "
    "body = $10, is_whole = $11, bytes = $12 WHERE idempotency_keys.ended_at IS NULL";
constexpr std::string_view kFree = "DELETE FROM idempotency_keys WHERE key_sha256 = $1";

SqlRow row_of(const AskKey& key) {
  return {to_hex(key.digest),         key.app.str(),        to_hex(key.fingerprint), key.request_id,
          unix_seconds(key.begun_at), key.instance_id.str()};
}

}  // namespace

Result<void> begin_key(SqlDriver& driver, const AskKey& key) {
  return without_rows(driver.execute(kBegin, row_of(key)));
}

Result<void> write_key(SqlDriver& driver, const KeyWrite& write) {
  if (!write.answer) return without_rows(driver.execute(kFree, {to_hex(write.key.digest)}));
  const KeptAnswer& answer = *write.answer;
  SqlRow row = row_of(write.key);
  row.emplace_back(unix_seconds(write.at));
  row.emplace_back(std::int64_t{answer.status});
  row.emplace_back(answer.headers);
  row.emplace_back(SharedText(write.answer, &answer.body));
  row.emplace_back(std::int64_t{answer.kind == KeptKind::whole ? 1 : 0});
  row.emplace_back(static_cast<std::int64_t>(answer.headers.size() + answer.body.size()));
  return without_rows(driver.execute(kKeep, row));
}

}  // namespace clawdforge
