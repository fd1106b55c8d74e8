// A small agent that speaks the Agent Client Protocol, whose behaviour each test bends with a few
// lines of Python.
#pragma once

#include "agent/acp/acp_agent.h"
#include "agent/core/agent_fixture.h"

namespace clawdforge {

// It logs each line that it reads. A test replaces entries of `on`, or what they use.
inline constexpr const char* kScriptedAgent = R"py(
import json, os, signal, sys, time
log = open("log", "a", buffering=1)
def say(message):
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()
def reply(m, result): say({"jsonrpc": "2.0", "id": m["id"], "result": result})
def fault(m, code, message, data=None):
    say({"jsonrpc": "2.0", "id": m["id"], "error": {"code": code, "message": message, "data": data}})
def update(what, **fields):
    say({"jsonrpc": "2.0", "method": "session/update",
         "params": {"sessionId": "s1", "update": {"sessionUpdate": what, **fields}}})
def text(words): update("agent_message_chunk", content={"type": "text", "text": words})
def wait_for_line():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    log.write(line)
    return json.loads(line)
def ask(id, method, **params):
    say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    return wait_for_line()
def permission(id, **call):
    return ask(id, "session/request_permission", toolCall=call, sessionId="s1",
               options=[{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                        {"optionId": "no", "name": "No", "kind": "reject_once"}])
name, abilities, more = "scripted", {}, {}
def echo(m):
    text("echo: " + m["params"]["prompt"][-1]["text"])
    reply(m, {"stopReason": "end_turn"})
on = {"initialize": lambda m: reply(m, {"protocolVersion": 1, "agentCapabilities": abilities,
                                        "agentInfo": {"name": name, "version": "9.9"}}),
      "session/new": lambda m: reply(m, {"sessionId": "s1", **more}),
      "session/prompt": echo}
)py";
inline constexpr const char* kScriptedAgentLoop = R"py(
while True:
    m = wait_for_line()
    if m.get("method") in on: on[m["method"]](m)
)py";

class AcpTest : public AgentTest {
 protected:
  void TearDown() override {
    end_agent();
    AgentTest::TearDown();
  }

  // Starts the scripted agent as `agent_`.
  void start(const std::string& behaviour = "", AgentSetup setup = {}) {
    const std::string path = root_ / "agent.py";
    std::ofstream(path) << kScriptedAgent << behaviour << kScriptedAgentLoop;
    start_program({"/usr/bin/python3", "-S", path}, std::move(setup));
  }
  void start_program(std::vector<std::string> argv, AgentSetup setup = {}) {
    end_agent();
    std::filesystem::remove(root_ / "work" / "log");
    if (setup.spec.name.empty()) setup.spec.name = "scripted";
    setup.gauges = gauges_;
    setup.spec.install_hint = "Install it.";
    setup.spec.login_hint = "Log in.";
    auto child = spawner_->spawn({.argv = std::move(argv),
                                  .environment = {{"PATH", "/usr/bin:/bin"}},
                                  .working_dir = root_ / "work"});
    ASSERT_TRUE(child) << child.error().message;
    agent_ = std::make_unique<AcpAgent>(std::move(*child), std::move(setup));
  }
  void end_agent() {
    if (agent_) run_to_end(io_, done(agent_->finish(false)));
    agent_.reset();
  }

  Opening open(Conversation conversation = {}) {
    conversation.working_dir = root_ / "work";
    conversation.temp_dir = root_ / "tmp";
    return run_to_end(io_, agent_->open(std::move(conversation)));
  }
  AgentNews next() { return run_to_end(io_, agent_->next()); }

  // One turn: all events up to its end, or until the agent's death.
  struct Turn {
    std::vector<AgentEvent> events;
    std::string text;
    std::optional<TurnEnd> end;
    std::optional<Failure> death;
    std::size_t skipped_lines = 0;
  };
  Turn turn(const std::string& prompt = "hello") {
    agent_->begin_turn(prompt);
    return rest_of_turn();
  }
  Turn rest_of_turn() {
    Turn turn;
    while (!turn.end && !turn.death) {
      AgentNews news = next();
      turn.skipped_lines += news.skipped_lines;
      turn.death = news.death;
      for (AgentEvent& event : news.events) {
        turn.text += event.text;
        if (event.end) turn.end = event.end;
        turn.events.push_back(std::move(event));
      }
    }
    return turn;
  }

  // What the agent has read.
  std::string log() const { return content("log"); }
  static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  const AgentGauges gauges_ = AgentGauges::in(metrics_);
  std::unique_ptr<AcpAgent> agent_;
};

}  // namespace clawdforge
