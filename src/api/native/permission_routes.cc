#include "api/native/permission_routes.h"

#include <algorithm>
#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/native/session_routes.h"
#include "api/shapes/session_state.h"
#include "json/json_members.h"
#include "transcript/journal_json.h"

namespace clawdforge {
namespace {

Task<Response> list(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto questions = co_await sessions->questions(caller.app->name, *id);
  if (!questions) co_return problem(questions.error(), request->id);
  std::string body = R"({"permissions":[)";
  for (const OpenQuestion& question : *questions) {
    if (body.back() != '[') body += ',';
    body += question_json(question.id, question.turn_index, unix_seconds(question.asked_at),
                          unix_seconds(question.expires_at), question.asked, {});
  }
  body += "]}";
  co_return json_response(std::move(body));
}

// The agent's own words, beside what each list of questions says.
void append_asked(std::string& body, const AskedQuestion& asked) {
  const OpenQuestion& question = asked.question;
  body += question_json(question.id, question.turn_index, unix_seconds(question.asked_at),
                        unix_seconds(question.expires_at), question.asked, {});
  body.pop_back();
  append_member(body, "session_id", asked.session_id.str());
  append_member(body, "app_name", asked.app.str());
  append_member(body, "session_title", title_in(asked.meta));
  append_member(body, "agent", asked.agent);
  append_name(body, "tool");
  body += question.tool.empty() ? std::string_view("null") : std::string_view(question.tool);
  append_member(body, "truncated", question.is_tool_cut);
  body += '}';
}

Task<Response> list_all(const Sessions* sessions, Caller caller) {
  std::optional<AppName> app;
  if (caller.kind == CallerKind::app) app = caller.app->name;
  std::string body = R"({"permissions":[)";
  for (const AskedQuestion& asked : sessions->open_questions(app)) {
    if (body.back() != '[') body += ',';
    append_asked(body, asked);
  }
  body += "]}";
  co_return json_response(std::move(body));
}

// A person who has not seen all of what is asked must not allow it by a click.
Result<void> check_seen(const Sessions& sessions, const Caller& caller, const Request& request,
                        const PermissionChoice& choice) {
  if (!caller.browser || (choice.allows && !*choice.allows)) return {};
  for (const AskedQuestion& asked : sessions.open_questions(caller.app->name)) {
    const OpenQuestion& question = asked.question;
    if (question.id != request.params.back() || !question.is_tool_cut) continue;
    const auto option = std::ranges::find(question.asked.options, choice.option_id.value_or(""),
                                          &PermissionOption::option_id);
    if (option != question.asked.options.end() && !option->kind.starts_with("allow")) return {};
    return fail(Errc::invalid, "question_too_long",
                "What is asked for is longer than the page can show; answer it by the API.");
  }
  return {};
}

Task<Response> answer(Sessions* sessions, Caller caller, Request* request) {
  std::string ignored;
  auto choice = parse_choice(request->body, &ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!choice) co_return problem(choice.error(), request->id);
  if (caller.is_owner) choice->by = "owner";
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto seen = check_seen(*sessions, caller, *request, *choice);
  if (!seen) co_return problem(seen.error(), request->id);
  const auto answered =
      co_await sessions->answer(caller.app->name, *id, request->params.back(), *choice);
  if (!answered) co_return problem(answered.error(), request->id);
  co_return json_response(R"({"ok":true})");
}

}  // namespace

Result<PermissionChoice> parse_choice(std::string_view body, std::string* ignored) {
  auto object = parse_json_object(body);
  if (!object) return std::unexpected(object.error());
  Fields fields(*object);
  PermissionChoice choice;
  choice.option_id = fields.text("option_id");
  if (const auto decision = fields.text("decision")) {
    choice.allows = *decision == "allow";
    if (*decision != "allow" && *decision != "deny") {
      fields.wrong("decision", "must be allow or deny");
    }
  }
  if (!fields.has("option_id") && !fields.has("decision")) {
    fields.wrong("option_id", "is required, or decision");
  } else if (fields.has("option_id") && fields.has("decision")) {
    fields.wrong("decision", "cannot go with option_id");
  }
  if (auto checked = fields.check(ignored); !checked) return std::unexpected(checked.error());
  return choice;
}

void add_permission_routes(Endpoints& endpoints, Sessions& sessions) {
  Sessions* const all = &sessions;
  endpoints.push_back(
      {"GET", "/permissions", Permit::app_or_admin, Body::none,
       [all](Caller caller, Request*) { return list_all(all, std::move(caller)); }});
  endpoints.push_back(
      {"GET", "/sessions/{id}/permissions", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return list(all, std::move(caller), request); }});
  endpoints.push_back(
      {"POST", "/sessions/{id}/permissions/{permission}", Permit::app, Body::json,
       [all](Caller caller, Request* request) { return answer(all, std::move(caller), request); },
       false, kSmallBodyBytesMax});
}

}  // namespace clawdforge
