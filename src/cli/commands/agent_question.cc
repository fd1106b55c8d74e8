#include "cli/commands/agent_question.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kTokenLife = 4 * kQuestionMax;  // two starts, a turn and a rest
constexpr std::string_view kQuestion = "Reply with the single word pong.";

struct Question {
  const Destination& to;
  const Screen& screen;
  const std::string& agent;
};

Asked<GatewayAnswer> post(const Question& question, std::string target, const json::object& body) {
  ClientRequest request;
  request.method = "POST";
  request.target = std::move(target);
  request.body = json::serialize(body);
  return ask_and_wait(question.to, std::move(request),
                      {.timeout = kQuestionMax,
                       .live_line = "asking " + question.agent,
                       .screen = &question.screen,
                       .interrupted = "cancelled: the gateway ends the question."});
}

// In a session, for an agent that has no runs.
Asked<std::string> ask_in_session(const Question& question) {
  const auto made = post(question, "/sessions", {{"agent", question.agent}});
  if (!made) return std::unexpected(made.error());
  const std::string path = "/sessions/" + path_part(field_of(made->body, "session_id"));
  const auto answer = post(question, path + "/turn", {{"prompt", kQuestion}});
  ClientRequest closing;
  closing.method = "DELETE";
  closing.target = path;
  const auto closed = ask(question.to, std::move(closing));
  if (!answer) return std::unexpected(answer.error());
  if (!closed) return std::unexpected(closed.error());
  return field_of(answer->body, "text");
}

Asked<std::string> ask_with(const Question& question) {
  const auto answer = post(question, "/run", {{"prompt", kQuestion}, {"agent", question.agent}});
  if (answer) return field_of(answer->body, "result");
  // 422: the agent cannot be asked in this way.
  if (answer.error().details.contains("422")) return ask_in_session(question);
  return std::unexpected(answer.error());
}

Asked<std::string> ask_as_new_app(const Invocation& invocation, const std::string& agent) {
  auto to = find_destination(invocation, TokenKind::none);
  if (!to) return std::unexpected(to.error());
  const std::string app = fmt::format("agent-check-{}", ::getpid());
  // Where this program is killed, the token ends by itself.
  const json::object order = {{"name", app},
                              {"agents", {agent}},
                              {"expires_at", unix_seconds(SystemClock().now() + kTokenLife)}};
  const auto minted =
      ask(invocation, TokenKind::admin, "POST", "/admin/tokens", json::serialize(order));
  if (!minted) return std::unexpected(minted.error());
  to->token = Secret(field_of(minted->body, "token"));
  auto answer = ask_with({*to, invocation.screen, agent});
  const auto revoked = ask(invocation, TokenKind::admin, "DELETE", "/admin/tokens/" + app);
  if (answer && !revoked) return std::unexpected(revoked.error());
  return answer;
}

}  // namespace

Asked<std::string> ask_agent(const Invocation& invocation, const std::string& agent) {
  const auto to = find_destination(invocation, TokenKind::app);
  if (!to && to.error().exit_code == kExitNoToken) return ask_as_new_app(invocation, agent);
  if (!to) return std::unexpected(to.error());
  return ask_with({*to, invocation.screen, agent});
}

}  // namespace clawdforge
