// The lists of jobs, and what they come to.
#include <fmt/format.h>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"
#include "ledger/jobs/job_row.h"
#include "ledger/jobs/job_rows.h"
#include "ledger/rows/page_cursor.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPageOfJobs =
    "SELECT {} FROM jobs WHERE {}created_at >= $1 AND created_at <= $2 "
    "AND (created_at < $2 OR job_id < $3) ORDER BY created_at DESC, job_id DESC LIMIT $4";
constexpr std::string_view kCountJobs =
    "SELECT 'queued', COUNT(*) FROM jobs WHERE state = 'queued' UNION ALL "
    "SELECT 'running', COUNT(*) FROM jobs WHERE state = 'running'";
constexpr std::string_view kJobBytesByApp =
    "SELECT app_name, CAST(SUM(body_bytes + answer_bytes + LENGTH(meta) + CAST($1 AS BIGINT)) AS "
    "BIGINT) FROM jobs GROUP BY app_name";
constexpr std::string_view kWaitingApps =
    "SELECT app_name, MIN(ready_at) FROM jobs WHERE state = 'queued' GROUP BY app_name";

// Fixed statements for each filter: what is prepared is never dropped.
Result<JobPage> job_page(SqlDriver& driver, const JobFilter& filter, const PageCursor& place) {
  const auto statement = [](std::string_view which) {
    return fmt::format(fmt::runtime(kPageOfJobs), kJobColumns, which);
  };
  static const std::string kOfAll = statement("");
  static const std::string kOfApp = statement("app_name = $5 AND ");
  static const std::string kOfState = statement("state = $5 AND ");
  static const std::string kOfBoth = statement("app_name = $5 AND state = $6 AND ");
  SqlRow params = page_params(filter.audit, place);
  if (filter.audit.app) params.emplace_back(filter.audit.app->str());
  if (filter.state) params.emplace_back(std::string(name_of(*filter.state)));
  const std::string& of_app = filter.state ? kOfBoth : kOfApp;
  const std::string& of_any = filter.state ? kOfState : kOfAll;
  auto result = driver.execute(filter.audit.app ? of_app : of_any, params);
  if (!result) return std::unexpected(std::move(result.error()));
  JobPage page;
  page.next_cursor = cut_page(result->rows, filter.audit.limit, kJobColumnCreatedAt, kJobColumnId);
  page.jobs.reserve(result->rows.size());
  for (const SqlRow& row : result->rows) page.jobs.push_back(job_from(row));
  return page;
}

}  // namespace

Async<JobPage> JobRows::page(JobFilter filter, Lane lane) const {
  auto place = place_of(filter.audit);
  if (!place) co_return std::unexpected(std::move(place.error()));
  co_return co_await worker_.read<JobPage>(
      std::move(lane), [filter = std::move(filter), place = std::move(*place)](SqlDriver& driver) {
        return job_page(driver, filter, place);
      });
}

Async<std::map<std::string, std::int64_t>> JobRows::count_by_state() const {
  using Counts = std::map<std::string, std::int64_t>;
  return worker_.read<Counts>(Lane(), [](SqlDriver& driver) -> Result<Counts> {
    const auto result = driver.execute(kCountJobs);
    if (!result) return std::unexpected(result.error());
    Counts counts;
    for (const SqlRow& row : result->rows) {
      counts[text_in(row.at(0)).value_or("")] = whole_in(row.at(1)).value_or(0);
    }
    return counts;
  });
}

Async<std::map<AppName, std::int64_t>> JobRows::bytes_by_app(std::int64_t bytes_each) const {
  return worker_.read<BytesByApp>(Lane(), [bytes_each](SqlDriver& driver) {
    return bytes_by_app_in(driver.execute(kJobBytesByApp, {bytes_each}));
  });
}

Async<std::map<AppName, TimePoint>> JobRows::waiting_apps() const {
  using Times = std::map<AppName, TimePoint>;
  return worker_.call<Times>(Lane(), Access::read, [](SqlDriver& driver) -> Result<Times> {
    const auto result = driver.execute(kWaitingApps);
    if (!result) return std::unexpected(result.error());
    Times times;
    for (const SqlRow& row : result->rows) {
      times[id_in<AppName>(row.at(0))] = time_in(row.at(1)).value_or(TimePoint());
    }
    return times;
  });
}

}  // namespace clawdforge
