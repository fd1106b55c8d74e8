#include "ledger/rows/run_row.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "ledger/core/columns.h"
#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

// A row while it is read.
struct RunRow {
  Run run;
  RunEnd end;
  std::optional<RunState> state;
  std::optional<TimePoint> ended_at;
};

struct RunColumn {
  std::string_view name;
  void (*read)(RunRow&, const SqlValue&) = nullptr;
  SqlValue (*begun)(const Run&, const ProcessMark&) = nullptr;  // written when it is added
  SqlValue (*settled)(const RunEnd&) = nullptr;                 // written when it ends
};

std::optional<int> small_in(const SqlValue& value) {
  const auto number = whole_in(value);
  using Limits = std::numeric_limits<int>;
  if (!number || *number < Limits::min() || *number > Limits::max()) return std::nullopt;
  return static_cast<int>(*number);
}

SqlValue small_value(const std::optional<int>& number) {
  return number ? SqlValue(std::int64_t{*number}) : SqlValue();
}

template <std::int64_t Usage::* kTokens>
constexpr RunColumn run_tokens(std::string_view name) {
  return {.name = name,
          .read = [](RunRow& row,
                     const SqlValue& value) { read_tokens<kTokens>(row.end.usage, value); },
          .settled = [](const RunEnd& end) { return tokens_value<kTokens>(end.usage); }};
}

constexpr RunColumn kRunColumns[] = {
    {.name = "run_id",
     .read = [](RunRow& row, const SqlValue& value) { row.run.id = id_in<RunId>(value); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.id.str(); }},
    {.name = "started_at",
     .read =
         [](RunRow& row, const SqlValue& value) {
           row.run.started_at = time_in(value).value_or(TimePoint());
         },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue {
       return unix_seconds(run.started_at);
     }},
    {.name = "app_name",
     .read = [](RunRow& row, const SqlValue& value) { row.run.app = id_in<AppName>(value); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.app.str(); }},
    {.name = "agent",
     .read = [](RunRow& row,
                const SqlValue& value) { row.run.agent = text_in(value).value_or(""); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.agent; }},
    {.name = "model",
     .read = [](RunRow& row,
                const SqlValue& value) { row.run.model = text_in(value).value_or(""); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.model; }},
    {.name = "prompt_bytes",
     .read = [](RunRow& row,
                const SqlValue& value) { row.run.prompt_bytes = whole_in(value).value_or(0); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.prompt_bytes; }},
    {.name = "instance_id",
     .read = [](RunRow& row,
                const SqlValue& value) { row.run.instance_id = id_in<InstanceId>(value); },
     .begun = [](const Run& run, const ProcessMark&) -> SqlValue { return run.instance_id.str(); }},
    {.name = "process_pid",
     .begun = [](const Run&, const ProcessMark& process) -> SqlValue { return process.pid; }},
    {.name = "process_start",
     .begun = [](const Run&, const ProcessMark& process) -> SqlValue {
       return process.start_time;
     }},
    {.name = "process_boot_id",
     .begun = [](const Run&, const ProcessMark& process) -> SqlValue { return process.boot_id; }},
    {.name = "state",
     .read = [](RunRow& row,
                const SqlValue& value) { row.state = run_state_from(text_in(value).value_or("")); },
     .begun = [](const Run&, const ProcessMark&) -> SqlValue {
       return std::string(name_of(RunState::running));
     },
     .settled = [](const RunEnd& end) -> SqlValue { return std::string(name_of(end.state)); }},
    {.name = "ended_at",
     .read = [](RunRow& row, const SqlValue& value) { row.ended_at = time_in(value); },
     .settled = [](const RunEnd& end) -> SqlValue { return unix_seconds(end.ended_at); }},
    {.name = "outcome",
     .read = [](RunRow& row,
                const SqlValue& value) { row.end.outcome = text_in(value).value_or(""); },
     .settled = [](const RunEnd& end) -> SqlValue { return end.outcome; }},
    {.name = "duration_ms",
     .read = [](RunRow& row,
                const SqlValue& value) { row.end.duration_ms = whole_in(value).value_or(0); },
     .settled = [](const RunEnd& end) -> SqlValue { return end.duration_ms; }},
    {.name = "result_bytes",
     .read = [](RunRow& row, const SqlValue& value) { row.end.result_bytes = whole_in(value); },
     .settled = [](const RunEnd& end) { return sql_value(end.result_bytes); }},
    {.name = "stop_reason",
     .read = [](RunRow& row, const SqlValue& value) { row.end.stop_reason = text_in(value); },
     .settled = [](const RunEnd& end) { return sql_value(end.stop_reason); }},
    {.name = "exit_code",
     .read = [](RunRow& row, const SqlValue& value) { row.end.exit_code = small_in(value); },
     .settled = [](const RunEnd& end) { return small_value(end.exit_code); }},
    {.name = "exit_signal",
     .read = [](RunRow& row, const SqlValue& value) { row.end.exit_signal = small_in(value); },
     .settled = [](const RunEnd& end) { return small_value(end.exit_signal); }},
    run_tokens<&Usage::input_tokens>("input_tokens"),
    run_tokens<&Usage::output_tokens>("output_tokens"),
    run_tokens<&Usage::cache_read_tokens>("cache_read_tokens"),
    run_tokens<&Usage::cache_write_tokens>("cache_write_tokens"),
    {.name = "cost_usd",
     .read = [](RunRow& row, const SqlValue& value) { row.end.cost_usd = number_in(value); },
     .settled = [](const RunEnd& end) { return sql_value(end.cost_usd); }},
    {.name = "error",
     .read = [](RunRow& row, const SqlValue& value) { row.end.error = text_in(value); },
     .settled = [](const RunEnd& end) { return sql_value(end.error); }},
    {.name = "prompt",
     .read = [](RunRow& row, const SqlValue& value) { row.run.prompt = text_in(value); },
     .begun = [](const Run& run, const ProcessMark&) { return sql_value(run.prompt); }},
    {.name = "agent_ms",
     .read = [](RunRow& row, const SqlValue& value) { row.end.agent_ms = whole_in(value); },
     .settled = [](const RunEnd& end) { return sql_value(end.agent_ms); }},
};
static_assert(column_at(kRunColumns, &RunColumn::read, "run_id") == kRunColumnId);
static_assert(column_at(kRunColumns, &RunColumn::read, "started_at") == kRunColumnStartedAt);

std::unexpected<Failure> unreadable(const RunId& id) {
  return fail(Errc::internal, "internal", "The row of this run cannot be read.",
              fmt::format("runs.state of {} is not one that a run can end with", id.str()));
}

}  // namespace

std::string run_columns() { return column_names(kRunColumns, &RunColumn::read); }

std::string run_list_columns() {
  std::string names;
  for (const RunColumn& column : kRunColumns) {
    if (column.read == nullptr) continue;
    if (!names.empty()) names += ", ";
    if (column.name == "prompt") {
      names += fmt::format("SUBSTR(prompt, 1, {})", kListedRunPromptCharactersMax);
    } else {
      names += column.name;
    }
  }
  return names;
}

Result<RunRecord> run_from(const SqlRow& row) {
  RunRow read;
  read_columns(row, kRunColumns, &RunColumn::read, read);
  if (!read.ended_at) return RunRecord{std::move(read.run), std::nullopt};
  if (!read.state || *read.state == RunState::running) return unreadable(read.run.id);
  read.end.run_id = read.run.id;
  read.end.state = *read.state;
  read.end.ended_at = *read.ended_at;
  return RunRecord{std::move(read.run), std::move(read.end)};
}

std::string run_insert() {
  return insert_into("runs", kRunColumns, &RunColumn::begun) + " ON CONFLICT (run_id) DO NOTHING";
}

SqlRow row_of(const Run& run, const ProcessMark& process) {
  return with_values({}, kRunColumns, &RunColumn::begun, run, process);
}

std::string run_end_update() { return update_of("runs", kRunColumns, &RunColumn::settled, 2); }

SqlRow row_of(const RunEnd& end) {
  return with_values({end.run_id.str()}, kRunColumns, &RunColumn::settled, end);
}

}  // namespace clawdforge
