#include "agent/demo/demo_acp.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/demo/demo_wire.h"
#include "agent/demo/demo_words.h"

namespace clawdforge {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr int kPatienceMs = 20'000;

struct Turn {
  std::vector<std::string> kinds;  // of the updates, and methods of the requests
  std::string text;
  json::object end;  // the response
};

// One process of the agent, as a thread with two pipes.
class Agent {
 public:
  explicit Agent(const std::string& temp_dir) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    EXPECT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
    to_ = in[1];
    from_ = out[0];
    thread_ = std::thread([this, in, out, temp_dir] {
      exit_code_ = demo_acp(in[0], out[1], temp_dir);
      close(in[0]);
      close(out[1]);
    });
  }
  ~Agent() {
    end();
    close(from_);
  }

  // Closes its input and gives its exit code.
  int end() {
    if (to_ >= 0) close(to_);
    to_ = -1;
    if (thread_.joinable()) thread_.join();
    return exit_code_;
  }

  void send(std::string line) {
    line += '\n';
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t count = write(to_, line.data() + sent, line.size() - sent);
      ASSERT_GT(count, 0);
      sent += static_cast<std::size_t>(count);
    }
  }

  // The next message; empty: it has ended.
  json::object hear() {
    std::size_t end = 0;
    while ((end = heard_.find('\n')) == std::string::npos) {
      pollfd watched{from_, POLLIN, 0};
      EXPECT_EQ(poll(&watched, 1, kPatienceMs), 1) << "it says nothing";
      std::array<char, 65536> piece;
      const ssize_t count = read(from_, piece.data(), piece.size());
      if (count <= 0) return {};
      heard_.append(piece.data(), static_cast<std::size_t>(count));
    }
    const json::value message = json::parse(heard_.substr(0, end));
    heard_.erase(0, end + 1);
    EXPECT_EQ(message.at("jsonrpc"), "2.0");
    return message.as_object();
  }

  void request(int id, std::string_view method, const json::object& params) {
    send(json::serialize(
        json::object{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}));
  }

  json::object ask(std::string_view method, const json::object& params) {
    request(++last_id_, method, params);
    return heard_until_end().end;
  }

  // All up to the response to the last request, which permission questions do not hold up.
  Turn heard_until_end() {
    Turn turn;
    while (true) {
      const json::object message = hear();
      if (message.empty()) return turn;
      if (!message.contains("method")) {
        EXPECT_EQ(message.at("id"), last_id_);
        turn.end = message;
        return turn;
      }
      note(message, turn);
    }
  }

  std::string begin(const json::object& meta = {}) {
    const json::object answer =
        ask("session/new", {{"cwd", "/"}, {"mcpServers", json::array()}, {"_meta", meta}});
    id_ = std::string(answer.at("result").at("sessionId").as_string());
    return id_;
  }

  json::object load(std::string_view method, const std::string& id) {
    id_ = id;
    return ask(method, {{"sessionId", id}, {"cwd", "/"}, {"mcpServers", json::array()}});
  }

  void prompt(std::string_view text) {
    const json::object block{{"type", "text"}, {"text", text}};
    request(++last_id_, "session/prompt", {{"sessionId", id_}, {"prompt", json::array{block}}});
  }

  Turn turn(std::string_view text) {
    prompt(text);
    return heard_until_end();
  }

  void cancel() {
    send(R"({"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":")" + id_ + "\"}}");
  }

  std::string permission = "allow-once";  // empty: cancelled
  std::vector<json::object> questions;

 private:
  void note(const json::object& message, Turn& turn) {
    const json::object& params = message.at("params").as_object();
    EXPECT_EQ(params.at("sessionId").as_string(), std::string_view(id_));
    if (message.contains("id")) {
      turn.kinds.emplace_back(message.at("method").as_string());
      questions.push_back(params);
      json::object outcome{{"outcome", "cancelled"}};
      if (!permission.empty()) outcome = {{"outcome", "selected"}, {"optionId", permission}};
      return send(json::serialize(json::object{
          {"jsonrpc", "2.0"}, {"id", message.at("id")}, {"result", {{"outcome", outcome}}}}));
    }
    const json::object& update = params.at("update").as_object();
    turn.kinds.emplace_back(update.at("sessionUpdate").as_string());
    if (turn.kinds.back() == "agent_message_chunk") {
      turn.text += update.at("content").at("text").as_string();
    }
  }

  int to_ = -1;
  int from_ = -1;
  std::thread thread_;
  int exit_code_ = -1;
  std::string heard_;
  std::string id_;
  int last_id_ = 0;
};

class DemoAcp : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "demo-acp-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    temp_dir = name;
  }
  void TearDown() override { std::filesystem::remove_all(temp_dir); }

  std::string temp_dir;
};

std::string_view stop_reason(const Turn& turn) {
  return turn.end.at("result").at("stopReason").as_string();
}

int error_code(const json::object& answer) {
  return static_cast<int>(answer.at("error").at("code").as_int64());
}

TEST_F(DemoAcp, IntroducesItself) {
  Agent agent(temp_dir);
  const json::object answer = agent.ask("initialize", {{"protocolVersion", 1}});
  const json::object& result = answer.at("result").as_object();
  EXPECT_EQ(result.at("protocolVersion"), 1);
  EXPECT_EQ(result.at("agentInfo").at("name"), "clawdforge-demo");
  EXPECT_EQ(result.at("agentCapabilities").at("loadSession"), true);
  EXPECT_TRUE(result.at("agentCapabilities").at("sessionCapabilities").at("resume").is_object());
  EXPECT_EQ(agent.end(), 0);
}

TEST_F(DemoAcp, SaysWhatWasSaidAndCounts) {
  Agent agent(temp_dir);
  agent.begin();
  const Turn turn = agent.turn("Hello \"you\" \xf0\x9f\xa6\x80");
  EXPECT_EQ(turn.text, "You said: Hello \"you\" \xf0\x9f\xa6\x80");
  EXPECT_THAT(turn.kinds, testing::ElementsAre("agent_message_chunk", "usage_update"));
  EXPECT_EQ(stop_reason(turn), "end_turn");
  const json::object& usage = turn.end.at("result").at("usage").as_object();
  EXPECT_EQ(usage.at("inputTokens"), 16);
  EXPECT_EQ(usage.at("outputTokens"), 26);
  EXPECT_EQ(usage.at("totalTokens"), 42);
}

TEST_F(DemoAcp, ShowsWhatTheWordsAskFor) {
  Agent agent(temp_dir);
  agent.begin();
  const Turn turn = agent.turn("Think, PLAN and use a tool!");
  EXPECT_THAT(turn.kinds,
              testing::ElementsAre("agent_thought_chunk", "plan", "tool_call", "tool_call_update",
                                   "agent_message_chunk", "usage_update"));
  EXPECT_EQ(turn.text, "You said: Think, PLAN and use a tool!");
  EXPECT_EQ(agent.turn("/tmp/think/plan.tool thinking").kinds.size(), 2U) << "a path, and others";
}

TEST_F(DemoAcp, AsksForPermissionAndSaysWhatItWasTold) {
  Agent agent(temp_dir);
  agent.begin();
  EXPECT_EQ(agent.turn("permission").text, "I was allowed to execute.");
  EXPECT_EQ(agent.questions.back().at("toolCall").at("kind"), "execute");
  agent.permission = "reject-once";
  EXPECT_EQ(agent.turn("permission read").text, "I was not allowed to read.");
  EXPECT_EQ(agent.questions.back().at("toolCall").at("kind"), "read");
  agent.permission = "";
  EXPECT_EQ(agent.turn("permission edit").text, "I was not told whether I may edit.");
}

TEST_F(DemoAcp, IsCancelledWhileItIsSlow) {
  Agent agent(temp_dir);
  agent.begin();
  agent.prompt("slow 10000");
  agent.hear();
  agent.cancel();
  EXPECT_EQ(stop_reason(agent.heard_until_end()), "cancelled");
  EXPECT_EQ(agent.turn("again").text, "You said: again");
}

TEST_F(DemoAcp, IsCancelledWhileItAsks) {
  Agent agent(temp_dir);
  agent.begin();
  agent.prompt("permission");
  while (!agent.hear().contains("id")) {
  }
  agent.cancel();
  EXPECT_EQ(stop_reason(agent.heard_until_end()), "cancelled");
  agent.send(R"({"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}})");
  EXPECT_EQ(agent.turn("permission").text, "I was allowed to execute.")
      << "the late answer is not taken";
}

TEST_F(DemoAcp, IsCancelledWhileItTellsAtLength) {
  Agent agent(temp_dir);
  agent.begin();
  agent.prompt("long 1000000");
  agent.cancel();
  EXPECT_EQ(stop_reason(agent.heard_until_end()), "cancelled");
  const Turn turn = agent.turn("long 3000");
  EXPECT_EQ(turn.kinds.size(), 3001U);
  EXPECT_THAT(turn.text, HasSubstr("Line 3000 of 3000."));
}

TEST_F(DemoAcp, RemembersAlsoInALaterProcess) {
  std::string id;
  {
    Agent agent(temp_dir);
    id = agent.begin();
    EXPECT_THAT(agent.turn("What do you remember?").text, HasSubstr("nothing"));
    EXPECT_EQ(agent.turn("remember the blue model").text, "I will remember: the blue model");
  }
  Agent loaded(temp_dir);
  loaded.request(99, "initialize", {});
  loaded.hear();
  loaded.load("session/resume", id);
  const Turn turn = loaded.turn("so what do you remember, please?");
  EXPECT_THAT(turn.text, HasSubstr("\n2. remember the blue model"));
}

TEST_F(DemoAcp, ReplaysWhenItLoadsAndNotWhenItResumes) {
  std::string id;
  {
    Agent agent(temp_dir);
    id = agent.begin();
    agent.turn("hello");
  }
  std::ofstream(temp_dir + "/clawdforge-" + id + ".jsonl", std::ios::app) << "\n[\"cut of";
  for (const auto& [method, count] : {std::pair("session/load", 2U), {"session/resume", 0U}}) {
    Agent agent(temp_dir);
    agent.request(1, method, {{"sessionId", id}, {"cwd", "/"}, {"mcpServers", json::array()}});
    std::size_t heard = 0;
    while (agent.hear().contains("method")) ++heard;
    EXPECT_EQ(heard, count) << method;
  }
  Agent agent(temp_dir);
  EXPECT_EQ(error_code(agent.load("session/load", "demo-" + std::string(32, '0'))), -32002);
  EXPECT_EQ(error_code(agent.load("session/load", "../../etc/passwd")), -32002);
}

TEST_F(DemoAcp, TakesModelEffortAndSystemPrompt) {
  Agent agent(temp_dir);
  const std::string id = agent.begin({{"systemPrompt", {{"append", "Be brief."}}}});
  EXPECT_EQ(agent.turn("which model?").text, "The model is demo-small, the effort is medium.");
  const auto set = [&](std::string_view option, std::string_view value) {
    return agent.ask("session/set_config_option",
                     {{"sessionId", id}, {"configId", option}, {"value", value}});
  };
  EXPECT_EQ(set("model", "demo-large").at("result").at("configOptions").at(0).at("currentValue"),
            "demo-large");
  EXPECT_TRUE(set("effort", "xhigh").contains("result"));
  EXPECT_EQ(error_code(set("model", "gpt")), -32602);
  EXPECT_EQ(error_code(set("colour", "red")), -32602);
  EXPECT_EQ(agent.turn("model").text, "The model is demo-large, the effort is xhigh.");
  EXPECT_EQ(agent.turn("system").text, "My system prompt is: Be brief.");
  EXPECT_TRUE(
      agent.ask("session/set_mode", {{"sessionId", id}, {"modeId", "x"}}).contains("result"));
  agent.begin({{"systemPrompt", "Only this."}});
  EXPECT_EQ(agent.turn("system").text, "My system prompt is: Only this.");
  agent.begin();
  EXPECT_EQ(agent.turn("system").text, "I was given no system prompt.");
}

TEST_F(DemoAcp, FailsAndCrashesWhenItIsTold) {
  Agent agent(temp_dir);
  agent.begin();
  EXPECT_EQ(error_code(agent.turn("fail").end), -32603);
  EXPECT_EQ(agent.turn("still there?").text, "You said: still there?");
  const Turn turn = agent.turn("crash");
  EXPECT_TRUE(turn.end.empty());
  EXPECT_FALSE(turn.text.empty());
  EXPECT_EQ(agent.end(), 3);
}

TEST_F(DemoAcp, RefusesWhatItDoesNotUnderstand) {
  Agent agent(temp_dir);
  agent.begin();
  const auto refusal = [&](std::string line) {
    agent.send(std::move(line));
    return error_code(agent.hear());
  };
  EXPECT_EQ(refusal("not json"), -32700);
  EXPECT_EQ(refusal("[]"), -32600);
  EXPECT_EQ(refusal(R"({"id":"a","method":"session/fork","params":{}})"), -32601);
  EXPECT_EQ(refusal(R"({"id":1,"method":"session/new","params":{"cwd":"x"}})"), -32602);
  EXPECT_EQ(refusal(R"({"id":1,"method":"session/new","params":{"cwd":"/x"}})"), -32602);
  EXPECT_EQ(refusal(R"({"id":1,"method":"session/prompt","params":{"sessionId":"?"}})"), -32002);
  EXPECT_EQ(refusal(std::string(kDemoLineBytesMax + 1, 'x')), -32600);
  agent.send(R"({"jsonrpc":"2.0","method":"_unknown/notification"})");
  EXPECT_EQ(agent.turn("well?").text, "You said: well?");
}

TEST_F(DemoAcp, KeepsATextOnlyUpToItsLimit) {
  Agent agent(temp_dir);
  agent.begin();
  const std::string prompt(40'000, 'x');
  EXPECT_EQ(agent.turn(prompt).text, "You said: " + prompt);
  EXPECT_LT(agent.turn("what do you remember").text.size(), 17'000U);
}

TEST(DemoWords, CountsAreBounded) {
  EXPECT_EQ(demo_wish("slow").slow_count, 10);
  EXPECT_EQ(demo_wish("slow 3").slow_count, 3);
  EXPECT_EQ(demo_wish("slow 0").slow_count, 10);
  EXPECT_EQ(demo_wish("slow 99999999999999999999").slow_count, 10);
  EXPECT_EQ(demo_wish("slow 99999999").slow_count, 10'000);
  EXPECT_EQ(demo_wish("long x").long_count, 1'000);
  EXPECT_EQ(demo_wish("how long, 5?").long_count, 5);
  EXPECT_EQ(demo_wish("").long_count, 0);
}

TEST(DemoWords, AFirstRememberIsTheOnlyWord) {
  const DemoWish wish = demo_wish("  Remember: to fail\n");
  EXPECT_EQ(wish.to_remember, "to fail");
  EXPECT_FALSE(wish.is_fail);
  EXPECT_TRUE(demo_wish("I remember, fail").is_fail);
  EXPECT_FALSE(demo_wish("I remember").is_recall);
}

}  // namespace
}  // namespace clawdforge
