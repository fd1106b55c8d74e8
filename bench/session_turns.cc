#include "session_turns.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace clawdforge {
namespace {

std::string text_behind(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) give_up(fmt::format("no {} in {}", key, text));
  text.remove_prefix(at + key.size());
  return std::string(text.substr(0, text.find('"')));
}

class DirectTurn : public Turn {
 public:
  explicit DirectTurn(const std::string& program) : agent_(program) {}
  double once() override {
    const auto begin = SteadyClock::now();
    agent_.prompt(kPrompt);
    return microseconds_since(begin);
  }

 private:
  DirectAgent agent_;
};

class SessionTurn : public Turn {
 public:
  SessionTurn(const Gateway& gateway, const std::string& id)
      : connection_(gateway.server.port()),
        request_(turn_request(id.empty() ? make_session(connection_, gateway.token) : id,
                              gateway.token, kPrompt, false)) {}

  double once() override {
    const auto begin = SteadyClock::now();
    const Answer answer = connection_.ask(request_);
    const double taken = microseconds_since(begin);
    if (answer.status != 200 || !answer.body.contains("end_turn")) {
      give_up(fmt::format("a turn was answered with {}: {}", answer.status, answer.body));
    }
    return taken;
  }

 private:
  Connection connection_;
  const std::string request_;
};

}  // namespace

DirectAgent::DirectAgent(const std::string& program) : child_({program}, {"PATH=/usr/bin:/bin"}) {
  child_.write(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,)"
               R"("clientCapabilities":{}}})"
               "\n");
  child_.line();
  child_.write(
      R"({"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}})"
      "\n");
  session_ = text_behind(child_.line(), R"("sessionId":")");
}

std::size_t DirectAgent::prompt(std::string_view text) {
  child_.write(fmt::format(
      R"({{"jsonrpc":"2.0","id":{},"method":"session/prompt","params":{{"sessionId":"{}",)"
      R"("prompt":[{{"type":"text","text":"{}"}}]}}}})"
      "\n",
      ++last_id_, session_, text));
  std::size_t lines = 1;
  while (!child_.line().contains(R"("stopReason")")) ++lines;
  return lines;
}

std::unique_ptr<Turn> direct_turn(const std::string& program) {
  return std::make_unique<DirectTurn>(program);
}

std::vector<std::string> session_settings(const std::string& directory, const std::string& program,
                                          const std::vector<std::string>& more) {
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/bench.toml";
  std::ofstream(path) << fmt::format(
      "[agents.instant]\ncommand = [\"{0}\"]\npermission_modes = [\"approve_reads\"]\n"
      "[agents.through-acpx]\nprotocol = \"acpx\"\ncommand = [\"{0}\"]\n"
      "permission_modes = [\"approve_reads\"]\n",
      program);
  std::vector<std::string> settings = {"CLAWDFORGE_CONFIG=" + path,
                                       "CLAWDFORGE_MAX_LIVE_SESSIONS=500"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::string make_session(Connection& connection, const std::string& token, std::string_view agent) {
  const Answer answer =
      connection.ask(json_request("/sessions", token, fmt::format(R"({{"agent":"{}"}})", agent)));
  if (answer.status != 200) give_up("no session: " + answer.body);
  return text_behind(answer.body, R"("session_id":")");
}

void close_session(Connection& connection, const std::string& token, const std::string& id) {
  const Answer answer = connection.ask(
      fmt::format("DELETE /sessions/{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
                  "\r\n",
                  id, token));
  if (answer.status != 200) give_up("a session was not closed: " + answer.body);
}

std::string turn_request(const std::string& id, const std::string& token, std::string_view prompt,
                         bool is_streamed) {
  return json_request(fmt::format("/sessions/{}/turn", id), token,
                      fmt::format(R"({{"prompt":"{}","stream":{}}})", prompt, is_streamed));
}

std::unique_ptr<Turn> session_turn(const Gateway& gateway) {
  return std::make_unique<SessionTurn>(gateway, "");
}

std::unique_ptr<Turn> session_turn(const Gateway& gateway, const std::string& id) {
  return std::make_unique<SessionTurn>(gateway, id);
}

Commits commits_of(const Gateway& gateway) {
  Connection connection(gateway.server.port());
  const std::string text = connection.ask(get_request("/metrics", gateway.token, "*/*")).body;
  const auto number = [&](std::string_view key) {
    const auto at = text.find(key);
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size(), nullptr);
  };
  return {.count = number("\nclawdforge_ledger_commit_seconds_count "),
          .seconds = number("\nclawdforge_ledger_commit_seconds_sum ")};
}

}  // namespace clawdforge
