#include "api/native/permission_routes.h"

#include <boost/json.hpp>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/native/session_routes.h"
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

Task<Response> answer(Sessions* sessions, Caller caller, Request* request) {
  std::string ignored;
  const auto choice = parse_choice(request->body, &ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!choice) co_return problem(choice.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
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
      {"GET", "/sessions/{id}/permissions", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return list(all, std::move(caller), request); }});
  endpoints.push_back(
      {"POST", "/sessions/{id}/permissions/{permission}", Permit::app, Body::json,
       [all](Caller caller, Request* request) { return answer(all, std::move(caller), request); },
       false, kSmallBodyBytesMax});
}

}  // namespace clawdforge
