#include "api/run_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "api/json_body.h"
#include "api/problem.h"
#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::size_t kFilesPerRunMax = 32;
constexpr std::size_t kIncludesMax = 16;
constexpr std::size_t kModelBytesMax = 128;
constexpr std::int64_t kTimeoutSecondsMin = 5;
constexpr std::string_view kAgents[] = {"claude", "demo"};
constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// It becomes an argument of the agent's command line, where a dash in front would make
// it a flag.
bool is_model_name(std::string_view text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= kModelBytesMax && is_plain(text.front()) &&
         std::ranges::all_of(text, [&](unsigned char c) {
           return is_plain(c) || std::string_view("._:/@[]-").contains(static_cast<char>(c));
         });
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::string_view (&words)[N]) {
  return std::ranges::find(words, text) != std::end(words);
}

void parse_agent(Fields& fields, RunRequest& run, const RunDefaults& defaults) {
  run.agent = fields.text("agent").value_or("claude");
  if (!is_one_of(run.agent, kAgents)) fields.wrong("agent", "must be claude or demo");
  run.model = defaults.model;
  if (auto model = fields.text("model")) {
    if (!is_model_name(*model)) fields.wrong("model", "is no name of a model");
    run.model = std::move(*model);
  }
  if (const auto effort = fields.text("effort")) {
    if (!is_one_of(*effort, kEfforts)) {
      fields.wrong("effort", "must be low, medium, high, xhigh or max");
    }
    run.effort = *effort;
  }
  run.system = fields.text("system").value_or("");
  if (run.system.contains('\0')) fields.wrong("system", "must not hold a NUL character");
  const std::string mode = fields.text("system_mode").value_or("append");
  if (mode != "append" && mode != "replace") {
    fields.wrong("system_mode", "must be append or replace");
  }
  run.system_mode = mode == "replace" ? SystemMode::replace : SystemMode::append;
}

void append_usage(std::string& out, const std::optional<Usage>& usage) {
  if (!usage) {
    out += "null";
    return;
  }
  out += fmt::format(
      R"({{"input_tokens":{},"output_tokens":{},"cache_read_tokens":{},"cache_write_tokens":{}}})",
      usage->input_tokens, usage->output_tokens, usage->cache_read_tokens,
      usage->cache_write_tokens);
}

std::string number_or_null(const std::optional<double>& number) {
  return number ? fmt::format("{}", *number) : "null";
}

void append_text_or_null(std::string& out, const std::optional<std::string>& text) {
  if (text) {
    append_json_string(out, *text);
  } else {
    out += "null";
  }
}

void add_headers(Response& response, const RunOutcome& outcome) {
  if (!outcome.run_id.empty()) {
    response.headers.emplace_back("X-Clawdforge-Run-Id", outcome.run_id);
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

Response success(const RunOutcome& outcome, bool includes_usage) {
  std::string body = R"({"ok":true,"result":)";
  body += outcome.result;
  body += fmt::format(R"(,"duration_ms":{},"stop_reason":)", outcome.duration.count());
  append_text_or_null(body, outcome.stop_reason);
  if (includes_usage) {
    body += R"(,"run_id":)";
    append_json_string(body, outcome.run_id);
    body += R"(,"cost_usd":)" + number_or_null(outcome.cost_usd) + R"(,"usage":)";
    append_usage(body, outcome.usage);
  }
  body += '}';
  Response response = json_response(std::move(body));
  add_headers(response, outcome);
  return response;
}

Response failure(const RunOutcome& outcome, const OneShotFailure& why,
                 std::string_view request_id) {
  std::string body = R"({"ok":false,"error":)";
  append_json_string(body, why.sentence);
  body += R"(,"stderr":)";
  append_json_string(body, outcome.error_tail);
  body += fmt::format(R"(,"duration_ms":{},"stop_reason":)", outcome.duration.count());
  append_text_or_null(body, outcome.stop_reason);
  body += R"(,"code":)";
  append_json_string(body, why.code);
  body += R"(,"detail":)";
  append_json_string(body, why.sentence);
  body += R"(,"request_id":)";
  append_json_string(body, request_id);
  body += '}';
  Response response = json_response(std::move(body));
  response.status = status_of(why.kind);
  response.detail = why.code;
  if (why.retry_after.count() > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(why.retry_after.count()));
  }
  add_headers(response, outcome);
  return response;
}

Task<Response> run(Runs* runs, const RunDefaults* defaults, Caller caller, Request* request) {
  auto parsed = parse_run(request->body, *defaults);
  if (!parsed) co_return problem(parsed.error(), request->id);
  request->body = {};  // a prompt of megabytes is not kept twice
  parsed->run.received = request->received;
  auto executing = runs->execute(caller.app, std::move(parsed->run), request->departure);
  const auto outcome = co_await std::move(executing);
  if (!outcome) co_return problem(outcome.error(), request->id);
  const std::optional<OneShotFailure>& why = outcome->failure;
  if (why) co_return failure(*outcome, *why, request->id);
  co_return success(*outcome, parsed->includes_usage);
}

}  // namespace

Result<ParsedRun> parse_run(std::string_view body, const RunDefaults& defaults) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  ParsedRun parsed;
  RunRequest& run = parsed.run;
  if (!fields.has("prompt")) fields.wrong("prompt", "is required");
  if (auto prompt = fields.text("prompt")) {
    if (is_blank(*prompt)) fields.wrong("prompt", "must not be blank");
    run.prompt = std::move(*prompt);
  }
  parse_agent(fields, run, defaults);
  run.files = fields.texts("files", kFilesPerRunMax).value_or(std::vector<std::string>{});
  const std::int64_t timeout_max = defaults.timeout_max.count();
  run.timeout =
      std::chrono::seconds(fields.integer("timeout_secs", kTimeoutSecondsMin, timeout_max)
                               .value_or(std::min(defaults.timeout.count(), timeout_max)));
  for (const std::string& name :
       fields.texts("include", kIncludesMax).value_or(std::vector<std::string>{})) {
    if (name == "usage") parsed.includes_usage = true;
  }
  if (auto checked = fields.check(); !checked) return std::unexpected(checked.error());
  return parsed;
}

void add_run_routes(Endpoints& endpoints, Runs& runs, RunDefaults defaults) {
  auto kept = std::make_shared<const RunDefaults>(std::move(defaults));
  Runs* to = &runs;
  endpoints.push_back({"POST", "/run", Permit::app, Body::json,
                       [to, kept](Caller caller, Request* request) {
                         return run(to, kept.get(), std::move(caller), request);
                       },
                       true});
}

}  // namespace clawdforge
