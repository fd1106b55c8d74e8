#include "ledger/rows/run_row.h"

#include <limits>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

enum Column : std::size_t {
  kRunId,
  kAppName,
  kAgent,
  kModel,
  kPromptBytes,
  kStartedAt,
  kInstanceId,
  kState,
  kOutcome,
  kEndedAt,
  kDurationMs,
  kResultBytes,
  kStopReason,
  kExitCode,
  kExitSignal,
  kInputTokens,
  kOutputTokens,
  kCacheReadTokens,
  kCacheWriteTokens,
  kCostUsd,
};
static_assert(kRunId == kRunColumnId && kStartedAt == kRunColumnStartedAt);

std::optional<int> small_in(const SqlValue& value) {
  const auto number = whole_in(value);
  using Limits = std::numeric_limits<int>;
  if (!number || *number < Limits::min() || *number > Limits::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

RunRecord run_from(const SqlRow& row) {
  RunRecord record;
  Run& run = record.run;
  run.id = text_in(row.at(kRunId)).value_or("");
  run.app = text_in(row.at(kAppName)).value_or("");
  run.agent = text_in(row.at(kAgent)).value_or("");
  run.model = text_in(row.at(kModel)).value_or("");
  run.prompt_bytes = whole_in(row.at(kPromptBytes)).value_or(0);
  run.started_at = time_in(row.at(kStartedAt)).value_or(TimePoint());
  run.instance_id = text_in(row.at(kInstanceId)).value_or("");

  const auto ended_at = time_in(row.at(kEndedAt));
  if (!ended_at) return record;
  RunEnd& end = record.end.emplace();
  end.run_id = run.id;
  end.state = text_in(row.at(kState)).value_or("");
  end.outcome = text_in(row.at(kOutcome)).value_or("");
  end.ended_at = *ended_at;
  end.duration_ms = whole_in(row.at(kDurationMs)).value_or(0);
  end.result_bytes = whole_in(row.at(kResultBytes));
  end.stop_reason = text_in(row.at(kStopReason));
  end.exit_code = small_in(row.at(kExitCode));
  end.exit_signal = small_in(row.at(kExitSignal));
  end.usage = usage_in(row, kInputTokens);
  end.cost_usd = number_in(row.at(kCostUsd));
  return record;
}

SqlRow row_of(const RunEnd& end) {
  SqlRow row = {end.run_id,
                end.state,
                end.outcome,
                unix_seconds(end.ended_at),
                end.duration_ms,
                sql_value(end.result_bytes),
                sql_value(end.stop_reason),
                end.exit_code ? SqlValue(std::int64_t{*end.exit_code}) : SqlValue(),
                end.exit_signal ? SqlValue(std::int64_t{*end.exit_signal}) : SqlValue()};
  append_usage(row, end.usage);
  row.push_back(sql_value(end.cost_usd));
  return row;
}

}  // namespace clawdforge
