// What the ledger knows of the files and directories beside it: the statements behind the
// part of `clawdforge verify` that compares them. In the caller's transaction. Blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ledger/core/sql_driver.h"

namespace clawdforge {

struct UploadRow {
  std::string name;  // of its file
  std::int64_t size = 0;
  std::int64_t expires_at = 0;
};

// Those that have not expired at `now`, in pages.
Result<void> for_each_upload(SqlDriver& driver, std::int64_t now,
                             const std::function<Result<void>(const UploadRow&)>& see);
Result<std::optional<UploadRow>> upload_row(SqlDriver& driver, const std::string& name);

struct AnswerRow {
  std::string name;  // of its file, and of the job
  std::int64_t bytes = 0;
};

// Answers of jobs that are in files, in pages.
Result<void> for_each_answer(SqlDriver& driver,
                             const std::function<Result<void>(const AnswerRow&)>& see);
// None: there is no such job, or its answer is not in a file.
Result<std::optional<AnswerRow>> answer_row(SqlDriver& driver, const std::string& name);

Result<bool> has_session(SqlDriver& driver, const std::string& id);

struct RunRow {
  std::optional<std::int64_t> ended_at;
};
Result<std::optional<RunRow>> run_row(SqlDriver& driver, const std::string& id);

}  // namespace clawdforge
