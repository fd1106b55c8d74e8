#include "api/jobs/job_state.h"

#include "api/core/endpoint.h"
#include "json/json_members.h"
#include "model/jobs/job_json.h"

namespace clawdforge {

Response accepted_job(const Job& job) {
  std::string body = R"({"ok":true)";
  append_member(body, "job_id", job.id.str());
  append_member(body, "state", name_of(job.state));
  body += '}';
  Response response = json_response(std::move(body));
  response.status = 202;
  response.headers.emplace_back("Location", "/jobs/" + job.id.str());
  return response;
}

Response job_list(const JobPage& page, JobReader reader) {
  std::string body = R"({"jobs":[)";
  for (const Job& job : page.jobs) {
    if (body.back() != '[') body += ',';
    append_job_open(body, job);
    if (reader == JobReader::admin) append_member(body, "app_name", job.app.str());
    body += '}';
  }
  body += ']';
  append_member(body, "count", page.jobs.size());
  append_member(body, "next_cursor", page.next_cursor);
  body += '}';
  return json_response(std::move(body));
}

std::string job_state_json(const Job& job) {
  std::string out;
  append_job_open(out, job);
  out += '}';
  return out;
}

}  // namespace clawdforge
