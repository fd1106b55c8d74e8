#include "peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "piped_program.h"
#include "raw_http.h"
#include "session_turns.h"

namespace clawdforge {
namespace {

constexpr const char* kNode = "/node_modules/.bin/node";
constexpr const char* kAcpxScript = "/node_modules/acpx/dist/cli.js";
constexpr std::string_view kToken = "bench-peer-token";

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

void say_left_out(std::string_view name, const std::string& path) {
  fmt::print(stderr, "\nbench: {} IS LEFT OUT: there is no {}\n\n", name, path);
}

bool is_acpx_in(const std::string& peers) {
  for (const char* part : {kNode, kAcpxScript}) {
    if (std::filesystem::exists(peers + part)) continue;
    say_left_out("acpx", peers + part);
    return false;
  }
  return true;
}

// A conversation of its own in the sandbox agent.
class SandboxTurn : public Turn {
 public:
  SandboxTurn(std::uint16_t port, int number)
      : connection_(port), path_(fmt::format("/v1/acp/bench-{}", number)) {
    ask(path_ + "?agent=claude",
        R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,)"
        R"("clientCapabilities":{}}})");
    const std::string made =
        ask(path_, R"({"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp",)"
                   R"("mcpServers":[]}})");
    constexpr std::string_view kKey = R"("sessionId":")";
    const auto at = made.find(kKey);
    if (at == std::string::npos) give_up("the sandbox agent has no session: " + made);
    session_ = made.substr(at + kKey.size(), made.find('"', at + kKey.size()) - at - kKey.size());
  }

  double once() override {
    const std::string body = fmt::format(
        R"({{"jsonrpc":"2.0","id":{},"method":"session/prompt","params":{{"sessionId":"{}",)"
        R"("prompt":[{{"type":"text","text":"{}"}}]}}}})",
        ++last_id_, session_, kPrompt);
    const auto begin = SteadyClock::now();
    const std::string answer = ask(path_, body);
    const double taken = microseconds_since(begin);
    if (!answer.contains("end_turn")) give_up("the sandbox agent's turn: " + answer);
    return taken;
  }

 private:
  std::string ask(const std::string& path, const std::string& body) {
    const Answer answer = connection_.ask(json_request(path, kToken, body));
    if (answer.status != 200) {
      give_up(fmt::format("the sandbox agent answered {}: {}", answer.status, answer.body));
    }
    return answer.body;
  }

  Connection connection_;
  const std::string path_;
  std::string session_;
  int last_id_ = 2;
};

}  // namespace

std::unique_ptr<Acpx> Acpx::in(const std::string& peers, const std::string& agent,
                               const std::string& directory) {
  if (!is_acpx_in(peers)) return nullptr;
  std::filesystem::create_directories(directory);
  return std::unique_ptr<Acpx>(new Acpx(peers + kNode, peers + kAcpxScript, agent, directory));
}

std::string Acpx::program_in(const std::string& peers, const std::string& directory) {
  if (!is_acpx_in(peers)) return "";
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/acpx";
  std::ofstream(path) << fmt::format("#!/bin/sh\nexec '{}{}' '{}{}' \"$@\"\n", peers, kNode, peers,
                                     kAcpxScript);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

Acpx::Acpx(std::string node, std::string script, std::string agent, std::string directory)
    : node_(std::move(node)),
      script_(std::move(script)),
      agent_(std::move(agent)),
      directory_(std::move(directory)) {}

Acpx::~Acpx() {
  if (opened_ > 0) PipedProgram(command({"sessions", "close", "bench-1"}), environment()).end();
}

// acpx leaves a process that owns the session; it ends by itself if this benchmark does not end it.
std::vector<std::string> Acpx::command(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {node_,           script_,    "--agent", agent_,
                                  "--approve-all", "--format", "json",    "--json-strict",
                                  "--cwd",         directory_, "--ttl",   "60"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::vector<std::string> Acpx::environment() const {
  return {"PATH=/usr/bin:/bin", "HOME=" + directory_, "TMPDIR=" + directory_};
}

double Acpx::open() {
  const std::string name = fmt::format("bench-{}", ++opened_);
  const auto begin = SteadyClock::now();
  PipedProgram child(command({"sessions", "new", "--name", name}), environment());
  child.line();
  const double taken = microseconds_since(begin);
  return taken;
}

Acpx::Taken Acpx::prompt(std::string_view text) {
  Taken taken;
  const auto begin = SteadyClock::now();
  PipedProgram child(command({"prompt", "-s", "bench-1", std::string(text)}), environment());
  child.close_input();
  do {
    ++taken.lines;
  } while (!child.line().contains(R"("stopReason")"));
  taken.to_stop = microseconds_since(begin);
  taken.cpu = child.end();
  return taken;
}

pid_t Acpx::owner() {
  PipedProgram child(command({"status", "-s", "bench-1"}), environment());
  const std::string line(child.line());
  pid_t pid = 0;
  constexpr std::string_view kKey = R"("pid":)";
  const auto at = line.find(kKey);
  if (at != std::string::npos) {
    std::from_chars(line.data() + at + kKey.size(), line.data() + line.size(), pid);
  }
  return pid;
}

std::unique_ptr<SandboxAgent> SandboxAgent::in(const std::string& peers, const std::string& agent,
                                               const std::string& directory) {
  const std::string program =
      peers + "/node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent";
  if (!is_program(program)) {
    say_left_out("@sandbox-agent/cli", program);
    return nullptr;
  }
  // Where it looks for the agents that it knows: ours takes the place of one of them.
  const std::string bin = directory + "/.local/share/sandbox-agent/bin";
  std::filesystem::create_directories(bin + "/agent_processes");
  std::filesystem::create_symlink(agent, bin + "/claude");
  std::filesystem::create_symlink(agent, bin + "/agent_processes/claude-acp");
  return std::unique_ptr<SandboxAgent>(new SandboxAgent(program, directory, free_port()));
}

SandboxAgent::SandboxAgent(const std::string& program, const std::string& directory,
                           std::uint16_t port)
    : server_({program, "server", "--no-telemetry", "--token", std::string(kToken), "--host",
               "127.0.0.1", "--port", std::to_string(port)},
              {"PATH=/usr/bin:/bin", "HOME=" + directory, "SANDBOX_AGENT_REQUIRE_PREINSTALL=1"},
              port) {}

std::unique_ptr<Turn> SandboxAgent::turn() {
  return std::make_unique<SandboxTurn>(server_.port(), ++turns_);
}

}  // namespace clawdforge
