#include "api/shapes/run_state.h"

#include "api/core/endpoint.h"
#include "api/shapes/audit_page.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

// A run that was under way when an earlier life of the gateway was cut off has no duration:
// its real end is not known.
std::optional<std::int64_t> duration_of(const RunEnd& end) {
  if (end.state == RunState::interrupted && end.duration_ms == 0) return std::nullopt;
  return end.duration_ms;
}

}  // namespace

void append_run_state(std::string& out, const RunRecord& record, RunReader reader) {
  const Run& run = record.run;
  const std::optional<RunEnd>& end = record.end;
  const RunEnd none;
  const RunEnd& ended = end ? *end : none;
  out += R"({"run_id":)";
  append_json_string(out, run.id.str());
  append_member(out, "app_name", run.app.str());
  append_member(out, "agent", run.agent);
  append_member(out, "model", unless_empty(run.model));
  append_member(out, "state", name_of(end ? end->state : RunState::running));
  append_member(out, "started_at", run.started_at);
  append_member(out, "ended_at", end ? std::optional(end->ended_at) : std::nullopt);
  append_member(out, "prompt_bytes", run.prompt_bytes);
  append_member(out, "result_bytes", ended.result_bytes);
  append_member(out, "duration_ms", end ? duration_of(*end) : std::nullopt);
  append_member(out, "outcome", unless_empty(ended.outcome));
  append_member(out, "error", ended.error);
  append_member(out, "stop_reason", ended.stop_reason);
  append_member(out, "exit_code", ended.exit_code);
  append_member(out, "exit_signal", ended.exit_signal);
  append_member(out, "cost_usd", ended.cost_usd);
  append_member(out, "usage", ended.usage);
  append_member(out, "prompt", run.prompt);
  const auto shown = static_cast<std::int64_t>(run.prompt.value_or("").size());
  if (run.prompt && shown < run.prompt_bytes) append_member(out, "prompt_truncated", true);
  if (reader == RunReader::admin)
    append_member(out, "instance_id", unless_empty(run.instance_id.str()));
  out += '}';
}

Response run_list(const RunPage& page, RunReader reader) {
  std::string body = R"({"runs":[)";
  for (const RunRecord& record : page.runs) {
    if (body.back() != '[') body += ',';
    append_run_state(body, record, reader);
  }
  append_page_end(body, page.runs.size(), page.next_cursor);
  return json_response(std::move(body));
}

}  // namespace clawdforge
