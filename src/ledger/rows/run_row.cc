#include "ledger/rows/run_row.h"

#include <fmt/format.h>

#include <limits>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

enum RunColumn : std::size_t {
  kRunAtRunId,
  kRunAtAppName,
  kRunAtAgent,
  kRunAtModel,
  kRunAtPromptBytes,
  kRunAtStartedAt,
  kRunAtInstanceId,
  kRunAtState,
  kRunAtOutcome,
  kRunAtEndedAt,
  kRunAtDurationMs,
  kRunAtResultBytes,
  kRunAtStopReason,
  kRunAtExitCode,
  kRunAtExitSignal,
  kRunAtInputTokens,
  kRunAtOutputTokens,
  kRunAtCacheReadTokens,
  kRunAtCacheWriteTokens,
  kRunAtCostUsd,
  kRunAtError,
  kRunAtAgentMs,
};
static_assert(kRunAtRunId == kRunColumnId && kRunAtStartedAt == kRunColumnStartedAt);

std::optional<int> small_in(const SqlValue& value) {
  const auto number = whole_in(value);
  using Limits = std::numeric_limits<int>;
  if (!number || *number < Limits::min() || *number > Limits::max()) return std::nullopt;
  return static_cast<int>(*number);
}

std::unexpected<Failure> unreadable(const RunId& id) {
  return fail(Errc::internal, "internal", "The row of this run cannot be read.",
              fmt::format("runs.state of {} is not one that a run can end with", id.str()));
}

}  // namespace

Result<RunRecord> run_from(const SqlRow& row) {
  RunRecord record;
  Run& run = record.run;
  run.id = id_in<RunId>(row.at(kRunAtRunId));
  run.app = id_in<AppName>(row.at(kRunAtAppName));
  run.agent = text_in(row.at(kRunAtAgent)).value_or("");
  run.model = text_in(row.at(kRunAtModel)).value_or("");
  run.prompt_bytes = whole_in(row.at(kRunAtPromptBytes)).value_or(0);
  run.started_at = time_in(row.at(kRunAtStartedAt)).value_or(TimePoint());
  run.instance_id = id_in<InstanceId>(row.at(kRunAtInstanceId));

  const auto ended_at = time_in(row.at(kRunAtEndedAt));
  if (!ended_at) return record;
  const auto state = run_state_from(text_in(row.at(kRunAtState)).value_or(""));
  if (!state || *state == RunState::running) return unreadable(run.id);
  RunEnd& end = record.end.emplace();
  end.run_id = run.id;
  end.state = *state;
  end.outcome = text_in(row.at(kRunAtOutcome)).value_or("");
  end.ended_at = *ended_at;
  end.duration_ms = whole_in(row.at(kRunAtDurationMs)).value_or(0);
  end.result_bytes = whole_in(row.at(kRunAtResultBytes));
  end.stop_reason = text_in(row.at(kRunAtStopReason));
  end.exit_code = small_in(row.at(kRunAtExitCode));
  end.exit_signal = small_in(row.at(kRunAtExitSignal));
  end.usage = usage_in(row, kRunAtInputTokens);
  end.cost_usd = number_in(row.at(kRunAtCostUsd));
  end.error = text_in(row.at(kRunAtError));
  end.agent_ms = whole_in(row.at(kRunAtAgentMs));
  return record;
}

SqlRow row_of(const RunEnd& end) {
  SqlRow row = {end.run_id.str(),
                std::string(name_of(end.state)),
                end.outcome,
                unix_seconds(end.ended_at),
                end.duration_ms,
                sql_value(end.result_bytes),
                sql_value(end.stop_reason),
                end.exit_code ? SqlValue(std::int64_t{*end.exit_code}) : SqlValue(),
                end.exit_signal ? SqlValue(std::int64_t{*end.exit_signal}) : SqlValue()};
  append_usage(row, end.usage);
  row.push_back(sql_value(end.cost_usd));
  row.push_back(sql_value(end.error));
  row.push_back(sql_value(end.agent_ms));
  return row;
}

}  // namespace clawdforge
