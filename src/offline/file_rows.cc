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
constexpr std::string_view kAnswers =
    "SELECT job_id, answer_bytes FROM jobs WHERE is_in_file = 1 AND job_id > $1 ORDER BY job_id "
    "LIMIT $2";
constexpr std::string_view kAnswer =
    "SELECT job_id, answer_bytes FROM jobs WHERE is_in_file = 1 AND job_id = $1";
constexpr std::string_view kSession = "SELECT 1 FROM sessions WHERE session_id = $1";
constexpr std::string_view kRun = "SELECT ended_at FROM runs WHERE run_id = $1";

UploadRow upload_in(const SqlRow& row) {
  return {.name = text_in(row.at(0)).value_or(""),
          .size = whole_in(row.at(1)).value_or(-1),
          .expires_at = whole_in(row.at(2)).value_or(0)};
}

AnswerRow answer_in(const SqlRow& row) {
  return {.name = text_in(row.at(0)).value_or(""), .bytes = whole_in(row.at(1)).value_or(-1)};
}

// Calls `see` with the name of each row's file and the row. `params` follow the name to go on
// after, which is the statement's first; the number of rows is its last.
Result<void> for_each_file_row(SqlDriver& driver, std::string_view statement, const SqlRow& params,
                               const std::function<Result<void>(const SqlRow&)>& see) {
  for (std::string last;;) {
    SqlRow all{last};
    all.insert(all.end(), params.begin(), params.end());
    all.emplace_back(kFileRowsPageMax);
    const auto page = driver.execute(statement, all);
    if (!page) return std::unexpected(page.error());
    std::string next = last;
    for (const SqlRow& row : page->rows) {
      if (auto seen = see(row); !seen) return seen;
      next = text_in(row.at(0)).value_or("");
    }
    // A name that is not text sorts last, so no page follows it.
    if (std::cmp_less(page->rows.size(), kFileRowsPageMax) || next <= last) return {};
    last = std::move(next);
  }
}

}  // namespace

Result<void> for_each_upload(SqlDriver& driver, std::int64_t now,
                             const std::function<Result<void>(const UploadRow&)>& see) {
  return for_each_file_row(driver, kUploads, {now},
                           [&see](const SqlRow& row) { return see(upload_in(row)); });
}

Result<void> for_each_answer(SqlDriver& driver,
                             const std::function<Result<void>(const AnswerRow&)>& see) {
  return for_each_file_row(driver, kAnswers, {},
                           [&see](const SqlRow& row) { return see(answer_in(row)); });
}

Result<std::optional<AnswerRow>> answer_row(SqlDriver& driver, const std::string& name) {
  const auto result = driver.execute(kAnswer, {name});
  if (!result) return std::unexpected(result.error());
  if (result->rows.empty()) return std::nullopt;
  return answer_in(result->rows[0]);
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
