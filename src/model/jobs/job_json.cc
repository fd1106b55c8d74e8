#include "model/jobs/job_json.h"

#include "json/json_members.h"

namespace clawdforge {

void append_job_open(std::string& out, const Job& job) {
  out += '{';
  append_member(out, "job_id", job.id.str());
  append_member(out, "kind", name_of(job.kind));
  append_member(out, "state", name_of(job.state));
  append_member(out, "created_at", job.created_at);
  append_member(out, "run_at",
                job.ready_at > job.created_at ? std::optional(job.ready_at) : std::nullopt);
  append_member(out, "started_at", job.started_at);
  append_member(out, "ended_at", job.ended_at);
  append_member(out, "attempts", job.attempts);
  append_member(out, "max_attempts", job.attempts_max);
  append_member(out, "session_id", unless_empty(job.session_id.str()));
  append_member(out, "turn_index", job.turn_index);
  append_member(out, "status", job.status);
  append_name(out, "meta");
  out += job.meta;
}

std::string job_json(const Job& job, std::string_view answer) {
  std::string out;
  append_job_open(out, job);
  append_name(out, "answer");
  out += answer.empty() ? "null" : answer;
  out += '}';
  return out;
}

}  // namespace clawdforge
