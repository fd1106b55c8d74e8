#include "api/jobs/job_requests.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/query.h"
#include "api/shapes/audit_page.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kJobPageMax = 1'000;
constexpr std::int64_t kJobPageDefault = 100;
constexpr std::size_t kJobMetaBytesMax = 16 * 1024;
// The last second of the year 9999.
constexpr std::int64_t kRunAtMax = 253'402'300'799;

void parse_work(Fields& fields, const boost::json::object& object, std::string_view body,
                JobRequest& job) {
  const bool has_run = fields.object("run") != nullptr;
  const boost::json::object* const turn = fields.object("turn");
  if (has_run == (turn != nullptr)) {
    if (!object.contains("run") && !object.contains("turn")) {
      fields.wrong("run", "is needed, or turn: what the job is to do");
    } else if (has_run) {
      fields.wrong("turn", "must not be there beside run: a job does one thing");
    }
    return;
  }
  job.kind = has_run ? JobKind::run : JobKind::turn;
  job.body = member_text(body, name_of(job.kind));
  if (turn == nullptr) return;
  const boost::json::value* const id = turn->if_contains("session_id");
  if (id == nullptr || !id->is_string()) {
    fields.wrong("turn.session_id", "is needed: the id of one of the app's sessions");
  } else {
    job.session_id = SessionId(std::string(id->get_string()));
  }
}

// The last of a list's parameters, and the check of all of them.
Result<JobFilter> with_state(Query& parameters, JobFilter filter) {
  if (const auto state = parameters.text("state")) {
    filter.state = job_state_from(*state);
    if (!filter.state) {
      parameters.wrong("state",
                       "must be queued, running, succeeded, failed, cancelled or interrupted");
    }
  }
  if (auto checked = parameters.check(); !checked) return std::unexpected(checked.error());
  return filter;
}

}  // namespace

Result<JobRequest> parse_job(std::string_view body, std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  JobRequest job;
  parse_work(fields, *object, body, job);
  if (fields.object("meta") != nullptr) {
    job.meta = member_text(body, "meta");
    if (job.meta.size() > kJobMetaBytesMax) {
      fields.wrong("meta", fmt::format("must have at most {} bytes", kJobMetaBytesMax));
    }
  }
  if (const auto run_at = fields.integer("run_at", 0, kRunAtMax)) {
    job.run_at = TimePoint(std::chrono::seconds(*run_at));
  }
  job.attempts_max = fields.integer("attempts", 1, kJobAttemptsMax).value_or(1);
  job.webhook = fields.text("webhook").value_or("");
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  return job;
}

Result<JobFilter> parse_job_list(std::string_view query, AppName app) {
  Query parameters(query);
  JobFilter filter;
  filter.audit.app = std::move(app);
  filter.audit.limit = parameters.integer("limit", 1, kJobPageMax).value_or(kJobPageDefault);
  filter.audit.cursor = parameters.text("cursor");
  return with_state(parameters, std::move(filter));
}

Result<JobFilter> parse_admin_job_list(std::string_view query) {
  Query parameters(query);
  JobFilter filter;
  filter.audit = audit_filter_of(parameters);
  if (auto app = parameters.text("app")) filter.audit.app = AppName(std::move(*app));
  return with_state(parameters, std::move(filter));
}

Failure within(std::string_view part, Failure failure) {
  for (FieldError& field : failure.fields) field.field = fmt::format("{}.{}", part, field.field);
  return failure;
}

}  // namespace clawdforge
