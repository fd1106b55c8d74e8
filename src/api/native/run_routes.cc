#include "api/native/run_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "api/core/failure_answer.h"
#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/keys/keyed.h"
#include "api/native/prompt_fields.h"
#include "api/shapes/audit_page.h"
#include "api/shapes/run_state.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::size_t kIncludesMax = 16;
constexpr std::size_t kModelBytesMax = 128;
constexpr std::string_view kAgents[] = {"claude", "demo"};

// It becomes an argument of the agent's command line, where a dash in front would make
// it a flag.
bool is_model_name(std::string_view text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= kModelBytesMax && is_plain(text.front()) &&
         std::ranges::all_of(text, [&](unsigned char c) {
           return is_plain(c) || std::string_view("._:/@[]-").contains(static_cast<char>(c));
         });
}

void parse_agent(Fields& fields, RunRequest& run, const RunDefaults& defaults) {
  run.agent = fields.text("agent").value_or("claude");
  if (std::ranges::find(kAgents, run.agent) == std::end(kAgents)) {
    fields.wrong("agent", "must be claude or demo");
  }
  run.model = defaults.model;
  if (auto model = fields.text("model")) {
    if (!is_model_name(*model)) fields.wrong("model", "is not the name of a model");
    run.model = std::move(*model);
  }
  run.effort = effort_of(fields);
  run.system = system_of(fields);
  const std::string mode = fields.text("system_mode").value_or("append");
  if (mode != "append" && mode != "replace") {
    fields.wrong("system_mode", "must be append or replace");
  }
  run.system_mode = mode == "replace" ? SystemMode::replace : SystemMode::append;
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
  append_member(body, "detail", why.message);
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
  auto parsed = co_await call.compute->run(Lane(caller.app->name), std::move(request->body),
                                           [defaults = call.defaults, ignored](std::string& body) {
                                             return parse_run(body, *defaults, ignored.get());
                                           });
  name_ignored_fields(*request, std::move(*ignored));
  if (!parsed) co_return problem(parsed.error(), request->id);
  parsed->run.received = request->received;
  if (caller.key) {
    parsed->run.key = caller.key;
    parsed->run.answer_of = [includes = ParsedRun{.run = {},
                                                  .includes_usage = parsed->includes_usage,
                                                  .includes_denials = parsed->includes_denials},
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

Result<ParsedRun> parse_run(std::string_view body, const RunDefaults& defaults,
                            std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  ParsedRun parsed;
  RunRequest& run = parsed.run;
  run.prompt = prompt_of(fields);
  parse_agent(fields, run, defaults);
  run.permission_mode = permission_mode_of(fields);
  run.files = files_of(fields);
  const auto wait = fields.boolean("wait");
  run.waits = wait.value_or(false);
  run.waits_for_workspace = wait.value_or(true);
  run.workspace_name = fields.text("workspace").value_or("");
  run.timeout = timeout_of(fields, defaults.timeout, defaults.timeout_max);
  for (const std::string& name :
       fields.texts("include", kIncludesMax).value_or(std::vector<std::string>{})) {
    if (name == "usage") parsed.includes_usage = true;
    if (name == "denials") parsed.includes_denials = true;
  }
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  return parsed;
}

void add_run_routes(Endpoints& endpoints, Runs& runs, const RunRows& rows, Keys& keys,
                    ComputeWorker& compute, RunDefaults defaults) {
  const RunCall call{&runs, &compute, std::make_shared<const RunDefaults>(std::move(defaults))};
  Runs* to = &runs;
  endpoints.push_back({"POST", "/run", Permit::app, Body::json,
                       keyed(keys, compute,
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
