#include "ledger/rows/upload_rows.h"

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/keys/key_write.h"

namespace clawdforge {
namespace {

constexpr std::string_view kAddUpload =
    "INSERT INTO uploads (file_token_sha256, app_name, size, extension, created_at, expires_at, "
    "instance_id, name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (file_token_sha256) DO "
    "NOTHING";
constexpr std::string_view kFindUpload =
    "SELECT size, extension, created_at, expires_at, instance_id, name FROM uploads "
    "WHERE file_token_sha256 = $1 AND app_name = $2 AND expires_at > $3";
constexpr std::string_view kRemoveUpload = "DELETE FROM uploads WHERE file_token_sha256 = $1";
// A row whose key is not a digest was not made by us. It must not fill the sweeper's pages either,
// so it is left out here and not after reading.
constexpr std::string_view kExpiredUploads =
    "SELECT file_token_sha256 FROM uploads WHERE expires_at <= $1 "
    "AND length(file_token_sha256) = 64 AND ltrim(file_token_sha256, '0123456789abcdef') = '' "
    "ORDER BY expires_at LIMIT $2";
constexpr std::string_view kBytesByApp =
    "SELECT app_name, CAST(SUM(size + CAST($1 AS BIGINT)) AS BIGINT) FROM uploads GROUP BY "
    "app_name";
constexpr std::string_view kAllUploads = "SELECT file_token_sha256 FROM uploads";

Upload upload_from(const SqlRow& row, const Digest& digest, const AppName& app) {
  Upload upload;
  upload.token_digest = digest;
  upload.app = app;
  upload.size = whole_in(row.at(0)).value_or(0);
  upload.extension = text_in(row.at(1)).value_or("");
  upload.created_at = time_in(row.at(2)).value_or(TimePoint());
  upload.expires_at = time_in(row.at(3)).value_or(TimePoint());
  upload.instance_id = id_in<InstanceId>(row.at(4));
  upload.name = text_in(row.at(5)).value_or("");
  return upload;
}

// Stops at the first that is not there.
Result<std::vector<Upload>> select_uploads(SqlDriver& driver, const AppName& app,
                                           const std::vector<Digest>& digests, std::int64_t now) {
  std::vector<Upload> found;
  for (const Digest& digest : digests) {
    auto result = driver.execute(kFindUpload, {to_hex(digest), app.str(), now});
    if (!result) return std::unexpected(std::move(result.error()));
    if (result->rows.empty()) break;
    found.push_back(upload_from(result->rows.front(), digest, app));
  }
  return found;
}

Result<std::vector<Digest>> digests_of(Result<SqlResult> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  std::vector<Digest> digests;
  digests.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) {
    if (const auto digest = digest_in(row.at(0))) digests.push_back(*digest);
  }
  return digests;
}

}  // namespace

Async<std::vector<Upload>> UploadRows::find(AppName app, std::vector<Digest> digests,
                                            TimePoint now) const {
  const std::size_t wanted = digests.size();
  Lane lane(app);
  auto reading = worker_.call<std::vector<Upload>>(
      std::move(lane), Access::read,
      [app = std::move(app), digests = std::move(digests), now](SqlDriver& driver) {
        return select_uploads(driver, app, digests, unix_seconds(now));
      });
  auto found = co_await std::move(reading);
  // Not an error for the worker, which would roll back and repeat the calls beside this one.
  if (found && found->size() < wanted) {
    co_return fail(Errc::not_found, "file_not_found", "There is no such file, or it has expired.");
  }
  co_return found;
}

Async<std::vector<Digest>> UploadRows::expired(TimePoint now, std::int64_t limit) const {
  return worker_.call<std::vector<Digest>>(Lane(), Access::read, [now, limit](SqlDriver& driver) {
    return digests_of(driver.execute(kExpiredUploads, {unix_seconds(now), limit}));
  });
}

Async<std::vector<Digest>> UploadRows::all() const {
  return worker_.call<std::vector<Digest>>(Lane(), Access::read, [](SqlDriver& driver) {
    return digests_of(driver.execute(kAllUploads));
  });
}

Async<std::map<AppName, std::int64_t>> UploadRows::bytes_by_app(std::int64_t bytes_each) const {
  return worker_.call<BytesByApp>(Lane(), Access::read, [bytes_each](SqlDriver& driver) {
    return bytes_by_app_in(driver.execute(kBytesByApp, {bytes_each}));
  });
}

Async<void> UploadRows::add(Upload upload, std::optional<KeyWrite> key) {
  Lane lane(upload.app);
  return worker_.call<void>(
      std::move(lane), Access::write,
      [upload = std::move(upload), key = std::move(key)](SqlDriver& driver) -> Result<void> {
        if (key) {
          if (auto written = write_key(driver, *key); !written) return written;
        }
        return without_rows(driver.execute(
            kAddUpload,
            {to_hex(upload.token_digest), upload.app.str(), upload.size, upload.extension,
             unix_seconds(upload.created_at), unix_seconds(upload.expires_at),
             upload.instance_id.str(), text_or_null(upload.name)}));
      });
}

Async<void> UploadRows::remove(std::vector<Digest> digests) {
  return worker_.call<void>(Lane(), Access::write,
                            [digests = std::move(digests)](SqlDriver& driver) -> Result<void> {
                              for (const Digest& digest : digests) {
                                auto removed = driver.execute(kRemoveUpload, {to_hex(digest)});
                                if (!removed) return std::unexpected(std::move(removed.error()));
                              }
                              return {};
                            });
}

}  // namespace clawdforge
