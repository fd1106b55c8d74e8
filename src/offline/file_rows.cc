#include "offline/file_rows.h"

#include <utility>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kFileRowsPageMax = 500;
constexpr std::string_view kUploads =
    "SELECT file_token_sha256, size, expires_at FROM uploads "
    "WHERE file_token_sha256 > $1 AND expires_at > $2 ORDER BY file_token_sha256 LIMIT $3";
constexpr std::string_view kUpload =
    "SELECT file_token_sha256, size, expires_at FROM uploads WHERE file_token_sha256 = $1";
constexpr std::string_view kSession = "SELECT 1 FROM sessions WHERE session_id = $1";
constexpr std::string_view kRun = "SELECT ended_at FROM runs WHERE run_id = $1";

UploadRow upload_in(const SqlRow& row) {
  return {.name = text_in(row.at(0)).value_or(""),
          .size = whole_in(row.at(1)).value_or(-1),
          .expires_at = whole_in(row.at(2)).value_or(0)};
}

}  // namespace

Result<void> for_each_upload(SqlDriver& driver, std::int64_t now,
                             const std::function<Result<void>(const UploadRow&)>& see) {
  for (std::string last;;) {
    const auto page = driver.execute(kUploads, {last, now, kFileRowsPageMax});
    if (!page) return std::unexpected(page.error());
    std::string next = last;
    for (const SqlRow& row : page->rows) {
      const UploadRow upload = upload_in(row);
      if (auto seen = see(upload); !seen) return seen;
      next = upload.name;
    }
    // A name that is not text sorts last, so no page follows it.
    if (std::cmp_less(page->rows.size(), kFileRowsPageMax) || next <= last) return {};
    last = std::move(next);
  }
}

Result<std::optional<UploadRow>> upload_row(SqlDriver& driver, const std::string& name) {
  const auto result = driver.execute(kUpload, {name});
  if (!result) return std::unexpected(result.error());
  if (result->rows.empty()) return std::nullopt;
  return upload_in(result->rows[0]);
}

Result<bool> has_session(SqlDriver& driver, const std::string& id) {
  const auto result = driver.execute(kSession, {id});
  if (!result) return std::unexpected(result.error());
  return !result->rows.empty();
}

Result<std::optional<RunRow>> run_row(SqlDriver& driver, const std::string& id) {
  const auto result = driver.execute(kRun, {id});
  if (!result) return std::unexpected(result.error());
  if (result->rows.empty()) return std::nullopt;
  return RunRow{whole_in(result->rows[0].at(0))};
}

}  // namespace clawdforge
