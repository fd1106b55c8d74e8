#include "ledger/rows/run_rows.h"

#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/keys/key_write.h"
#include "ledger/rows/instance_rows.h"
#include "ledger/rows/page_cursor.h"
#include "ledger/rows/run_row.h"
#include "ledger/usage/budget_rows.h"
#include "ledger/usage/usage_count.h"

namespace clawdforge {
namespace {

constexpr std::string_view kForgetProcess =
    "UPDATE runs SET process_pid = NULL, process_start = NULL, process_boot_id = NULL "
    "WHERE run_id = $1";
constexpr std::string_view kForgetProcesses =
    "UPDATE runs SET process_pid = NULL, process_start = NULL, process_boot_id = NULL "
    "WHERE process_pid IS NOT NULL AND (instance_id IS NULL OR instance_id <> $1) AND {}";
constexpr std::string_view kInterruptRuns =
    "UPDATE runs SET state = 'interrupted', outcome = 'interrupted', ended_at = $2, agent_ms = 0 "
    "WHERE ended_at IS NULL AND (instance_id IS NULL OR instance_id <> $1) AND {} "
    "RETURNING app_name, agent, model";
constexpr std::string_view kLeftOfRuns =
    "SELECT process_pid, process_start, process_boot_id FROM runs WHERE process_pid IS NOT NULL "
    "AND (instance_id IS NULL OR instance_id <> $1) AND {} "
    "AND process_pid BETWEEN 0 AND 9223372036854775807 "
    "AND process_start BETWEEN 0 AND 9223372036854775807 AND process_boot_id IS NOT NULL "
    "ORDER BY started_at, run_id LIMIT $2";
constexpr std::string_view kTrimRuns =
    "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs "
    "WHERE started_at <= $1 AND ended_at IS NOT NULL ORDER BY started_at, run_id LIMIT $2)";

// By time and then by id, which for rows of our own is one and the same order. Both
// statements have an index that also serves since and until. A row whose time is not a number
// lies in no span of time and is not shown.
Result<SqlResult> select_runs(SqlDriver& driver, const AuditFilter& filter,
                              const PageCursor& place) {
  static const std::string kByTime = fmt::format(
      "SELECT {} FROM runs WHERE started_at >= $1 AND started_at <= $2 "
      "AND (started_at < $2 OR run_id < $3) "
      "ORDER BY started_at DESC, run_id DESC LIMIT $4",
      run_list_columns());
  static const std::string kByApp = fmt::format(
      "SELECT {} FROM runs WHERE app_name = $5 AND started_at >= $1 AND started_at <= $2 "
      "AND (started_at < $2 OR run_id < $3) "
      "ORDER BY started_at DESC, run_id DESC LIMIT $4",
      run_list_columns());
  SqlRow params = page_params(filter, place);
  if (!filter.app) return driver.execute(kByTime, params);
  params.emplace_back(filter.app->str());
  return driver.execute(kByApp, params);
}

Result<RunPage> page_of(SqlDriver& driver, const AuditFilter& filter, const PageCursor& place) {
  auto result = select_runs(driver, filter, place);
  if (!result) return std::unexpected(std::move(result.error()));
  RunPage page;
  page.next_cursor = cut_page(result->rows, filter.limit, kRunColumnStartedAt, kRunColumnId);
  page.runs.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) {
    // One that cannot be read must not hide the others; `verify` names it.
    if (auto record = run_from(row)) page.runs.push_back(std::move(*record));
  }
  return page;
}

// Of a row with the app, the agent and the model.
AskUsage ask_of(const SqlRow& row, const RunEnd& end) {
  return {.app = id_in<AppName>(row.at(0)),
          .agent = text_in(row.at(1)).value_or(""),
          .model = text_in(row.at(2)).value_or(""),
          .kind = AskKind::run,
          .has_failed = end.state == RunState::failed || end.state == RunState::interrupted,
          .is_answered = end.state == RunState::succeeded,
          .tokens = end.usage.value_or(Usage()),
          .nano_usd = nano_usd_of(end.cost_usd),
          .agent_ms = end.agent_ms.value_or(0),
          .ended_at = end.ended_at};
}

// Counted in the usage with the change that ends the row, so never twice.
Result<void> settle_run(SqlDriver& driver, const RunEnd& end) {
  if (!end.reservation.empty()) {
    if (auto released = release_in(driver, end.reservation); !released) return released;
  }
  if (end.key) {
    if (auto written = write_key(driver, *end.key); !written) return written;
  }
  static const std::string kSettleRun =
      run_end_update() + " WHERE run_id = $1 AND ended_at IS NULL RETURNING app_name, agent, model";
  const auto settled = driver.execute(kSettleRun, row_of(end));
  if (!settled) return std::unexpected(settled.error());
  if (settled->rows.empty() || !end.agent_ms) return {};
  return count_ask(driver, ask_of(settled->rows.front(), end));
}

// With what is known: each was an ask.
Result<std::int64_t> interrupt_runs(SqlDriver& driver, const InstanceId& self, TimePoint at) {
  static const std::string kInterrupt = fmt::format(kInterruptRuns, owner_has_ended("runs"));
  const auto ended = driver.execute(kInterrupt, {self.str(), unix_seconds(at)});
  if (!ended) return std::unexpected(ended.error());
  RunEnd end;
  end.state = RunState::interrupted;
  end.ended_at = at;
  for (const SqlRow& row : ended->rows) {
    if (auto counted = count_ask(driver, ask_of(row, end)); !counted) {
      return std::unexpected(std::move(counted.error()));
    }
  }
  return static_cast<std::int64_t>(ended->rows.size());
}

}  // namespace

Async<RunPage> RunRows::page(AuditFilter filter, Lane lane) const {
  auto place = place_of(filter);
  if (!place) co_return std::unexpected(std::move(place.error()));
  co_return co_await worker_.read<RunPage>(
      std::move(lane), [filter = std::move(filter), place = std::move(*place)](SqlDriver& driver) {
        return page_of(driver, filter, place);
      });
}

Async<RunRecord> RunRows::find(AppName app, RunId id) const {
  Lane lane(app);
  return worker_.call<RunRecord>(
      std::move(lane), Access::read,
      [app = std::move(app), id = std::move(id)](SqlDriver& driver) -> Result<RunRecord> {
        static const std::string kFindRun =
            fmt::format("SELECT {} FROM runs WHERE run_id = $1 AND app_name = $2", run_columns());
        const auto found = driver.execute(kFindRun, {id.str(), app.str()});
        if (!found) return std::unexpected(found.error());
        if (found->rows.empty()) {
          return fail(Errc::not_found, "run_not_found", "There is no such run.");
        }
        return run_from(found->rows.front());
      });
}

Async<void> RunRows::add(Run run, ProcessMark process) {
  Lane lane(run.app);
  return worker_.call<void>(
      std::move(lane), Access::write,
      [run = std::move(run), process = std::move(process)](SqlDriver& driver) -> Result<void> {
        static const std::string kAddRun = run_insert();
        if (run.key) {
          if (auto begun = begin_key(driver, *run.key); !begun) return begun;
        }
        return without_rows(driver.execute(kAddRun, row_of(run, process)));
      });
}

Async<void> RunRows::settle(RunEnd end) {
  Lane lane(end.app);
  return worker_.call<void>(
      std::move(lane), Access::write,
      [end = std::move(end)](SqlDriver& driver) { return settle_run(driver, end); });
}

Async<void> RunRows::forget_processes(std::vector<RunId> run_ids) {
  return worker_.call<void>(
      Lane(), Access::write, [ids = std::move(run_ids)](SqlDriver& driver) -> Result<void> {
        for (const RunId& id : ids) {
          auto forgotten = without_rows(driver.execute(kForgetProcess, {id.str()}));
          if (!forgotten) return forgotten;
        }
        return {};
      });
}

Async<std::int64_t> RunRows::trim(TimePoint last, std::int64_t rows_max) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [last, rows_max](SqlDriver& driver) {
    return changed_by(driver.execute(kTrimRuns, {unix_seconds(last), rows_max}));
  });
}

Async<std::vector<ProcessMark>> RunRows::left_processes(std::int64_t limit) const {
  return worker_.call<std::vector<ProcessMark>>(
      Lane(), Access::read, [self = self_, limit](SqlDriver& driver) {
        static const std::string kLeft = fmt::format(kLeftOfRuns, owner_has_ended("runs"));
        return marks_in(driver.execute(kLeft, {self.str(), limit}));
      });
}

Async<std::int64_t> RunRows::interrupt_left(TimePoint at) {
  return worker_.call<std::int64_t>(Lane(), Access::write, [self = self_, at](SqlDriver& driver) {
    static const std::string kForget = fmt::format(kForgetProcesses, owner_has_ended("runs"));
    static const std::string kDropReserved = fmt::format(
        "DELETE FROM reservations WHERE (instance_id IS NULL OR instance_id <> $1) AND {}",
        owner_has_ended("reservations"));
    const auto dropped = driver.execute(kDropReserved, {self.str()});
    if (!dropped) return Result<std::int64_t>(std::unexpected(dropped.error()));
    auto interrupted = interrupt_runs(driver, self, at);
    if (!interrupted) return interrupted;
    auto forgotten = without_rows(driver.execute(kForget, {self.str()}));
    if (!forgotten) interrupted = std::unexpected(std::move(forgotten.error()));
    return interrupted;
  });
}

}  // namespace clawdforge
