#include "cli/chat/chat_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/core/uploading.h"
#include "json/json_fields.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kStartMax{300};  // an agent may take long to start

std::string member_text(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(std::string_view()));
}

bool is_about_mode(const Complaint& complaint) {
  return complaint.details.contains("permission_mode_not_");
}

}  // namespace

Asked<json::object> ChatSession::call(std::string method, std::string_view path,
                                      std::string body) const {
  ClientRequest request;
  request.method = std::move(method);
  request.target = fmt::format("/sessions/{}{}", path_part(id_), path);
  request.body = std::move(body);
  auto answer = ask(gateway_, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  return std::move(answer->body);
}

Asked<void> ChatSession::create(const SessionWish& wish) {
  json::object body;
  if (!wish.agent.empty()) body["agent"] = wish.agent;
  if (!wish.model.empty()) body["model"] = wish.model;
  if (!wish.workspace.empty()) body["workspace"] = wish.workspace;
  if (!wish.permission.empty()) body["permission_mode"] = wish.permission;
  if (wish.permission.empty() && wish.prefers_ask) body["permission_mode"] = "ask";
  const auto make = [&] {
    ClientRequest request;
    request.method = "POST";
    request.target = "/sessions";
    request.body = json::serialize(body);
    return ask(gateway_, std::move(request), kStartMax);
  };
  auto made = make();
  if (!made && wish.permission.empty() && wish.prefers_ask && is_about_mode(made.error())) {
    body.erase("permission_mode");
    made = make();
  }
  if (!made) return std::unexpected(made.error());
  id_ = member_text(made->body, "session_id");
  agent_ = member_text(made->body, "agent");
  model_ = member_text(made->body, "model");
  return {};
}

Asked<json::object> ChatSession::attach(const std::string& id) {
  id_ = id;
  auto found = state();
  if (!found) return found;
  agent_ = member_text(*found, "agent");
  model_ = member_text(*found, "model");
  return found;
}

Asked<json::object> ChatSession::state() const { return call("GET", ""); }

Asked<void> ChatSession::cancel() const {
  const auto done = call("POST", "/cancel");
  if (!done) return std::unexpected(done.error());
  return {};
}

Asked<void> ChatSession::close() const {
  const auto done = call("DELETE", "");
  if (!done) return std::unexpected(done.error());
  return {};
}

Asked<json::object> ChatSession::files() const { return call("GET", "/files"); }

Asked<json::object> ChatSession::agents() const {
  ClientRequest request;
  request.method = "GET";
  request.target = "/agents";
  auto answer = ask(gateway_, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  return std::move(answer->body);
}

Asked<std::vector<AgentQuestion>> ChatSession::questions() const {
  const auto open = call("GET", "/permissions");
  if (!open) return std::unexpected(open.error());
  return read_open_questions(json::serialize(*open));
}

Asked<void> ChatSession::answer(const AgentQuestion& question, std::string_view option_kind) const {
  json::object body;
  const auto option = std::ranges::find(question.options, option_kind, &QuestionOption::kind);
  if (option != question.options.end()) {
    body["option_id"] = option->id;
  } else {
    body["decision"] = option_kind.starts_with("allow") ? "allow" : "deny";
  }
  const auto done = call("POST", "/permissions/" + path_part(question.id), json::serialize(body));
  if (!done) return std::unexpected(done.error());
  return {};
}

Asked<std::string> ChatSession::upload(const std::string& path) const {
  const auto brought = upload_file(gateway_, path);
  if (!brought) return std::unexpected(brought.error());
  return member_text(brought->body, "file_token");
}

Asked<std::vector<TailEvent>> ChatSession::events(std::uint64_t after) const {
  const auto page = call("GET", fmt::format("/events?limit=1000&after={}", after));
  if (!page) return std::unexpected(page.error());
  std::vector<TailEvent> out;
  const json::array* list = array_in(*page, "events");
  if (list == nullptr) return out;
  for (const json::value& entry : *list) {
    if (!entry.is_object()) continue;
    const json::object& event = entry.get_object();
    const json::value* data = event.if_contains("data");
    if (data == nullptr) continue;
    out.push_back({static_cast<std::uint64_t>(count_in(event, "id")),
                   read_chat_event(member_text(event, "event"), json::serialize(*data))});
  }
  return out;
}

}  // namespace clawdforge
