#include "api/native/run_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "api/core/failure_answer.h"
#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/keys/keyed.h"
#include "api/native/event_routes.h"
#include "api/native/prompt_fields.h"
#include "api/native/session_requests.h"
#include "api/shapes/audit_page.h"
#include "api/shapes/run_state.h"
#include "http/message/sse.h"
#include "json/json_members.h"
#include "json/schema/json_schema.h"

namespace clawdforge {
namespace {

constexpr std::size_t kIncludesMax = 16;
constexpr std::size_t kToolsMax = 64;  // names in one list
constexpr std::int64_t kTurnsOfRunMax = 1'000;
// A streamed run says something at least this often: that its caller has gone shows then.
constexpr std::chrono::seconds kRunHeartbeat{5};

void parse_agent(Fields& fields, RunRequest& run) {
  run.agent = fields.text("agent").value_or("claude");
  check_agent_name(fields, run.agent);
  run.model = model_of(fields);
  run.effort = effort_of(fields);
  run.system = system_of(fields);
  run.system_mode = system_mode_of(fields);
}

bool is_tool_name(std::string_view text) {
  constexpr std::size_t kToolNameBytesMax = 64;
  return !text.empty() && text.size() <= kToolNameBytesMax &&
         std::ranges::all_of(
             text, [](unsigned char c) { return (c < 0x80 && std::isalnum(c) != 0) || c == '_'; });
}

std::optional<ToolChoice> tools_of(Fields& fields, const boost::json::object& body) {
  constexpr std::string_view kWrong = "must be none, read, all, or a list of names of tools";
  const boost::json::value* const given = body.if_contains("tools");
  if (given != nullptr && given->is_array()) {
    const auto names = fields.texts("tools", kToolsMax);
    if (!names) return std::nullopt;  // and is wrong
    if (!std::ranges::all_of(*names, is_tool_name)) fields.wrong("tools", std::string(kWrong));
    return ToolChoice{.set = names->empty() ? ToolSet::none : ToolSet::named, .names = *names};
  }
  const auto word = fields.text("tools");
  if (!word) return std::nullopt;
  if (*word == "none") return ToolChoice{.set = ToolSet::none};
  if (*word == "read") return ToolChoice{.set = ToolSet::read};
  if (*word != "all") fields.wrong("tools", std::string(kWrong));
  return ToolChoice{.set = ToolSet::all};
}

void add_headers(Response& response, const RunOutcome& outcome) {
  add_limit_headers(response, outcome.limits.policy, outcome.limits.left);
  if (!outcome.run_id.empty()) {
    response.headers.emplace_back("X-Clawdforge-Run-Id", outcome.run_id.str());
  }
  if (outcome.cost_usd) {
    response.headers.emplace_back("X-Clawdforge-Cost-Usd", fmt::format("{}", *outcome.cost_usd));
  }
  if (outcome.usage) {
    response.headers.emplace_back("X-Clawdforge-Input-Tokens",
                                  std::to_string(outcome.usage->input_tokens));
    response.headers.emplace_back("X-Clawdforge-Output-Tokens",
                                  std::to_string(outcome.usage->output_tokens));
  }
}

void append_denials(std::string& body, const std::vector<Denial>& denials) {
  body += R"(,"denials":[)";
  for (const Denial& denial : denials) {
    if (body.back() != '[') body += ',';
    body += '{';
    append_member(body, "tool", denial.tool);
    append_member(body, "input", denial.input);
    body += '}';
  }
  body += ']';
}

Response success(const RunOutcome& outcome, const ParsedRun& asked) {
  std::string body = R"({"ok":true,"result":)";
  body += outcome.result;
  append_member(body, "duration_ms", outcome.duration.count());
  append_member(body, "stop_reason", outcome.stop_reason);
  if (asked.includes_usage) {
    append_member(body, "run_id", outcome.run_id.str());
    append_member(body, "cost_usd", outcome.cost_usd);
    append_member(body, "usage", outcome.usage);
  }
  if (asked.includes_denials) append_denials(body, outcome.denials);
  if (asked.includes_model) append_member(body, "model", unless_empty(outcome.model));
  body += '}';
  Response response = json_response(std::move(body));
  add_headers(response, outcome);
  return response;
}

Response failure(const RunOutcome& outcome, const Failure& why, std::string_view request_id) {
  std::string body = R"({"ok":false)";
  append_member(body, "error", why.message);
  append_member(body, "stderr", outcome.error_tail);
  append_member(body, "duration_ms", outcome.duration.count());
  append_member(body, "stop_reason", outcome.stop_reason);
  append_member(body, "code", why.code);
  append_member(body, "detail", outcome.failed_text.empty() ? why.message : outcome.failed_text);
  append_member(body, "request_id", request_id);
  body += '}';
  Response response = failure_response(why, std::move(body));
  add_headers(response, outcome);
  return response;
}

Response answer_of(const RunOutcome& outcome, const ParsedRun& asked, std::string_view request_id) {
  const std::optional<Failure>& why = outcome.failure;
  return why ? failure(outcome, *why, request_id) : success(outcome, asked);
}

// What the agent says, then what the plain answer would be. The reader is not counted for what it
// holds: the feed is bounded, and one event more is sent at a time.
Async<void> send_run(std::unique_ptr<StreamedRun> run, [[maybe_unused]] StreamShare share,
                     ParsedRun asked, std::string request_id, const Clock* clock,
                     BodyWriter* writer) {
  std::string out(kSseComment);  // so that the caller sees at once that it is heard
  std::int64_t id = 0;
  while (!run->is_over()) {
    if (!out.empty()) {
      auto written = co_await writer->write(std::exchange(out, {}));
      if (!written) co_return written;
    }
    const std::vector<ToldMessage> told = co_await run->next(kRunHeartbeat);
    for (const ToldMessage& message : told) {
      append_sse_begin(out, ++id, "update", SseTime{.at = unix_seconds(clock->now())});
      auto written = co_await writer->write(std::exchange(out, {}));
      if (!written) co_return written;
      written = co_await writer->write_slice(message.json);
      if (!written) co_return written;
      out += kSseEnd;
    }
    if (told.empty() && !run->is_over()) out += kSseComment;
  }
  const auto outcome = co_await run->outcome();
  const bool is_good = outcome && !outcome->failure;
  Response whole =
      outcome ? answer_of(*outcome, asked, request_id) : problem(outcome.error(), request_id);
  // What the agent wrote as JSON may have line breaks between its words.
  std::ranges::replace(whole.body, '\n', ' ');
  std::ranges::replace(whole.body, '\r', ' ');
  append_sse_begin(out, ++id, is_good ? "done" : "failed",
                   SseTime{.at = unix_seconds(clock->now())});
  out.append(whole.body).append(kSseEnd);
  co_return co_await writer->write(std::move(out));
}

Async<Response> stream_run(RunCall call, Caller caller, ParsedRun asked, Request* request) {
  if (caller.key) {
    co_return fail(Errc::invalid, "idempotency_streamed",
                   "A streamed run takes no Idempotency-Key, since its stream is not kept: ask for "
                   "a plain answer, or leave the key out.");
  }
  auto share = admit_stream(*call.quota, *call.memory, *caller.app);
  if (!share) co_return std::unexpected(std::move(share.error()));
  auto run = co_await call.runs->stream(caller.app, std::exchange(asked.run, {}), request->hang_up);
  if (!run) co_return std::unexpected(std::move(run.error()));
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.headers.emplace_back("X-Clawdforge-Run-Id", (*run)->run_id().str());
  response.stream = [run = std::move(*run), share = std::move(*share), asked = std::move(asked),
                     id = request->id, clock = call.clock](BodyWriter* writer) mutable {
    return send_run(std::move(run), std::move(share), std::move(asked), std::move(id), clock,
                    writer);
  };
  co_return response;
}

Task<Response> list_own(const RunRows* rows, Caller caller, Request* request) {
  Query query(request->query);
  AuditFilter filter = audit_filter_of(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  filter.app = caller.app->name;
  const auto page = co_await rows->page(std::move(filter), Lane(caller.app->name));
  if (!page) co_return problem(page.error(), request->id);
  co_return run_list(*page, RunReader::app);
}

Task<Response> show_run(const RunRows* rows, Caller caller, Request* request) {
  const auto record = co_await rows->find(caller.app->name, RunId(request->params.front()));
  if (!record) co_return problem(record.error(), request->id);
  std::string body;
  append_run_state(body, *record, RunReader::app);
  co_return json_response(std::move(body));
}

Task<Response> cancel_run(Runs* runs, Caller caller, Request* request) {
  const auto cancelled = co_await runs->cancel(caller.app->name, RunId(request->params.front()));
  if (!cancelled) co_return problem(cancelled.error(), request->id);
  co_return json_response(*cancelled ? R"({"ok":true,"cancelled":true})"
                                     : R"({"ok":true,"cancelled":false})");
}

}  // namespace

Task<Response> answer_run(RunCall call, Caller caller, Request* request,
                          std::shared_ptr<AskGate> gate) {
  const auto ignored = std::make_shared<std::string>();
  const bool accepts_stream = !gate && accepts_event_stream(*request);
  auto parsed = co_await call.compute->run(
      Lane(caller.app->name), std::move(request->body),
      [defaults = call.defaults, ignored, accepts_stream](std::string& body) {
        return parse_run(body, accepts_stream, *defaults, ignored.get());
      });
  name_ignored_fields(*request, std::move(*ignored));
  if (!parsed) co_return problem(parsed.error(), request->id);
  parsed->run.received = request->received;
  if (parsed->is_streamed && !gate) {
    auto stream = co_await stream_run(call, caller, std::move(*parsed), request);
    if (!stream) co_return problem(stream.error(), request->id);
    co_return std::move(*stream);
  }
  if (caller.key) {
    parsed->run.key = caller.key;
    parsed->run.answer_of = [includes = ParsedRun{.run = {},
                                                  .includes_usage = parsed->includes_usage,
                                                  .includes_denials = parsed->includes_denials,
                                                  .includes_model = parsed->includes_model},
                             id = request->id](const RunOutcome& ended) {
      return kept_answer(answer_of(ended, includes, id), id);
    };
  }
  const auto outcome = parsed->run.waits && !gate
                           ? co_await call.runs->execute_in_time(caller.app, std::move(parsed->run),
                                                                 request->hang_up)
                           : co_await call.runs->execute(caller.app, std::move(parsed->run),
                                                         request->hang_up, std::move(gate));
  if (!outcome) co_return problem(outcome.error(), request->id);
  co_return answer_of(*outcome, *parsed, request->id);
}

Result<ParsedRun> parse_run(std::string_view body, bool accepts_stream, const RunDefaults& defaults,
                            std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  ParsedRun parsed;
  RunRequest& run = parsed.run;
  run.prompt = prompt_of(fields);
  parse_agent(fields, run);
  run.permission_mode = permission_mode_of(fields);
  run.tools = tools_of(fields, *object);
  if (const auto turns = fields.integer("max_turns", 1, kTurnsOfRunMax)) {
    run.max_turns = static_cast<int>(*turns);
  }
  Result<void> schema_refusal;
  run.schema = schema_of(fields, schema_refusal);
  run.files = files_of(fields);
  const auto wait = fields.boolean("wait");
  run.waits = wait.value_or(false);
  run.waits_for_workspace = wait.value_or(true);
  run.workspace_name = fields.text("workspace").value_or("");
  parsed.is_streamed = fields.boolean("stream").value_or(accepts_stream);
  run.timeout = timeout_of(fields, defaults.timeout, defaults.timeout_max);
  for (const std::string& name :
       fields.texts("include", kIncludesMax).value_or(std::vector<std::string>{})) {
    if (name == "usage") parsed.includes_usage = true;
    if (name == "denials") parsed.includes_denials = true;
    if (name == "model") parsed.includes_model = true;
  }
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  if (!schema_refusal) return std::unexpected(std::move(schema_refusal.error()));
  return parsed;
}

void add_run_routes(Endpoints& endpoints, RunCall call, const RunRows& rows, Keys& keys) {
  Runs* to = call.runs;
  endpoints.push_back({"POST", "/run", Permit::app, Body::json,
                       keyed(keys, *call.compute,
                             [call](Caller caller, Request* request) {
                               return answer_run(call, std::move(caller), request);
                             }),
                       true});
  endpoints.push_back(
      {"GET", "/runs", Permit::app, Body::none, [from = &rows](Caller caller, Request* request) {
         return list_own(from, std::move(caller), request);
       }});
  endpoints.push_back({"GET", "/runs/{id}", Permit::app, Body::none,
                       [from = &rows](Caller caller, Request* request) {
                         return show_run(from, std::move(caller), request);
                       }});
  endpoints.push_back(
      {"POST", "/runs/{id}/cancel", Permit::app, Body::none, [to](Caller caller, Request* request) {
         return cancel_run(to, std::move(caller), request);
       }});
}

}  // namespace clawdforge
