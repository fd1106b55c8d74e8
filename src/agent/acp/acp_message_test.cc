#include "agent/acp/acp_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>

#include "agent/acp/acp_request.h"
#include "agent/failure/masking.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace {

using testing::ElementsAre;

AcpMessage read(std::string_view line) {
  auto message = acp_message(std::string(line));
  EXPECT_TRUE(message) << line;
  return message.value_or(AcpMessage{});
}

std::string update(const std::string& fields) {
  return R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{)" +
         fields + "}}}";
}

TEST(AcpMessage, TellsTheKindsApart) {
  struct Case {
    const char* line;
    AcpKind kind;
    const char* id;
    const char* method;
  };
  const std::vector<Case> cases = {
      {R"({"id":0,"result":{}})", AcpKind::response, "0", ""},
      {R"({"id":"req-1","result":null})", AcpKind::response, "\"req-1\"", ""},
      {R"({"id":7,"error":{"code":-32000,"message":"no"}})", AcpKind::response, "7", ""},
      {R"({"id":7,"result":{},"error":null})", AcpKind::response, "7", ""},
      {R"({"id":null,"error":{}})", AcpKind::response, "null", ""},
      {R"({"error":{}})", AcpKind::response, "null", ""},
      {R"({"id":-3,"method":"fs/read_text_file","params":{}})", AcpKind::request, "-3",
       "fs/read_text_file"},
      {R"({"id":"a\"b","method":"x"})", AcpKind::request, R"("a\"b")", "x"},
      {R"({"id":null,"method":"x"})", AcpKind::request, "null", "x"},
      {R"({"method":"_auth/status_update"})", AcpKind::notification, "", "_auth/status_update"},
      {R"({"method":17,"params":3})", AcpKind::notification, "", ""},
      {R"({"id":4})", AcpKind::notification, "", ""},
      {R"({})", AcpKind::notification, "", ""},
  };
  for (const Case& one : cases) {
    const AcpMessage message = read(one.line);
    EXPECT_EQ(message.kind, one.kind) << one.line;
    EXPECT_EQ(message.id, one.id) << one.line;
    EXPECT_EQ(message.method, one.method) << one.line;
    EXPECT_EQ(message.json, one.line);
  }
}

TEST(AcpMessage, RefusesWhatIsNoObject) {
  for (const std::string line :
       {"", " ", "\r", "null", "17", "\"text\"", "[{}]", "{", "{}x", "{} {}", "warning: {}",
        "{'a':1}", "{\"a\":\"\x01\"}", "{\"a\":\xff}"}) {
    EXPECT_FALSE(acp_message(line)) << line;
  }
}

TEST(AcpMessage, RefusesMoreDepthThanAnyAgentNeeds) {
  const auto nested = [](std::size_t depth) {
    return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(acp_message(nested(kAgentJsonDepthMax - 1)));
  EXPECT_FALSE(acp_message(nested(kAgentJsonDepthMax)));
  EXPECT_FALSE(acp_message(nested(1'000'000)));
}

TEST(AcpMessage, RepairsALine) {
  EXPECT_EQ(read(" \t{\"a\":1}\r").json, R"({"a":1})");
  EXPECT_EQ(read("{\"a\":\r\"b\rc\"}").json, R"({"a": "b c"})");
  EXPECT_EQ(read("{\"a\":\"\xff\"}").json, "{\"a\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(read(R"({"a":"\ud83d"})").json, R"({"a":"\ufffd"})");
  EXPECT_EQ(read(R"({"a":"\\ud83d"})").json, R"({"a":"\\ud83d"})");
  EXPECT_EQ(read("{\"a\":\"\xed\xa0\x80 \\udc00\"}").json,
            "{\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \\ufffd\"}");
}

TEST(AcpMessage, ReadsTextInBothNestings) {
  EXPECT_EQ(read(update(R"("sessionUpdate":"agent_message_chunk",)"
                        R"("content":{"type":"text","text":"hi"})"))
                .text,
            "hi");
  EXPECT_EQ(read(R"({"method":"session/update","params":{"sessionUpdate":"agent_message_chunk",)"
                 R"("content":{"type":"text","text":"flat"}}})")
                .text,
            "flat");
  // The same object with its fields in another order.
  EXPECT_EQ(read(R"({"params":{"update":{"content":{"text":"hi"},)"
                 R"("sessionUpdate":"agent_message_chunk"},"sessionId":"s"},)"
                 R"("method":"session/update"})")
                .text,
            "hi");
  EXPECT_EQ(read(update(R"("sessionUpdate":"agent_thought_chunk","content":{"text":"hm"})")).text,
            "");
  EXPECT_EQ(read(update(R"("sessionUpdate":"agent_message_chunk","content":"bare")")).text, "");
}

TEST(AcpMessage, ReadsToolCallsAndCost) {
  const AcpMessage call =
      read(update(R"("toolCallId":"t1","sessionUpdate":"tool_call","kind":"execute")"));
  EXPECT_EQ(call.tool_call_id, "t1");
  EXPECT_EQ(call.tool_kind, "execute");
  EXPECT_EQ(read(update(R"("sessionUpdate":"usage_update","used":1,"size":2,)"
                        R"("cost":{"amount":0.25,"currency":"USD"})"))
                .cost_usd,
            0.25);
  for (const std::string cost : {R"({"amount":3,"currency":"credits"})", R"({"amount":-1})",
                                 R"({"amount":"1"})", "null", "7"}) {
    EXPECT_EQ(read(update(R"("sessionUpdate":"usage_update","cost":)" + cost)).cost_usd,
              std::nullopt)
        << cost;
  }
}

TEST(AcpMessage, ReadsAPermissionQuestion) {
  const AcpMessage message =
      read(R"({"id":5,"method":"session/request_permission","params":{"toolCall":{)"
           R"("toolCallId":"t1","title":"touch x","kind":"execute"},"options":[)"
           R"({"optionId":"yes","name":"Yes","kind":"allow_once"},7,{"name":"no id"},)"
           R"({"optionId":"no","kind":"something_new"}],"sessionId":"s"}})");
  ASSERT_TRUE(message.question);
  EXPECT_EQ(message.question->ask_id, "5");
  EXPECT_EQ(message.question->title, "touch x");
  EXPECT_EQ(message.question->kind, "execute");
  EXPECT_EQ(message.tool_call_id, "t1");
  ASSERT_EQ(message.question->options.size(), 2U);
  EXPECT_EQ(message.question->options[0].option_id, "yes");
  EXPECT_EQ(message.question->options[0].name, "Yes");
  EXPECT_EQ(message.question->options[1].kind, "something_new");

  EXPECT_TRUE(read(R"({"id":5,"method":"session/request_permission"})").question);
  EXPECT_FALSE(read(R"({"method":"session/request_permission"})").question);
}

TEST(AcpMessage, ReadsTheEndOfATurn) {
  const AcpMessage message =
      read(R"({"id":11,"result":{"stopReason":"end_turn","usage":{"inputTokens":24,)"
           R"("outputTokens":18,"cachedReadTokens":3,"cachedWriteTokens":4}}})");
  ASSERT_TRUE(message.result);
  EXPECT_EQ(message.result->stop_reason, "end_turn");
  EXPECT_EQ(message.result->usage, (Usage{24, 18, 3, 4}));
  EXPECT_EQ(read(R"({"id":1,"result":{"stopReason":")" + std::string(65, 'x') + "\"}}")
                .result.value()
                .stop_reason,
            "");

  const AcpMessage failed =
      read(R"({"id":1,"error":{"code":-32603,"message":"no","data":{"errorKind":"rate_limit"}}})");
  EXPECT_EQ(failed.error.value().code, -32603);
  EXPECT_EQ(failed.error->message, "no");
  EXPECT_EQ(failed.error->kind, "rate_limit");
}

TEST(AcpMessage, ReadsWhatAnAgentCanDo) {
  const AcpResult result =
      read(R"({"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,)"
           R"("sessionCapabilities":{"resume":{}}},"agentInfo":{"name":"x","version":"1.2"}}})")
          .result.value();
  EXPECT_EQ(result.protocol_version, 1);
  EXPECT_TRUE(result.can_load);
  EXPECT_TRUE(result.can_resume);
  EXPECT_EQ(result.agent_name, "x");
  EXPECT_EQ(result.agent_version, "1.2");
  EXPECT_FALSE(read(R"({"id":0,"result":{"agentCapabilities":{"sessionCapabilities":)"
                    R"({"resume":null}}}})")
                   .result.value()
                   .can_resume);
}

TEST(AcpMessage, ReadsOptionsFlatAndInGroups) {
  const AcpResult result =
      read(R"({"id":1,"result":{"sessionId":"s1","modes":{"currentModeId":"plan"},)"
           R"("configOptions":[{"id":"m","category":"model","type":"select","currentValue":"a",)"
           R"("options":[{"value":"a"},{"group":"g","options":[{"value":"b"},{"value":"c"}]}]},)"
           R"({"id":"fast","type":"boolean","currentValue":true},null]}})")
          .result.value();
  EXPECT_EQ(result.session_id, "s1");
  EXPECT_EQ(result.mode, "plan");
  ASSERT_EQ(result.options.size(), 2U);
  EXPECT_EQ(result.options[0].current, "a");
  EXPECT_THAT(result.options[0].values, ElementsAre("a", "b", "c"));
  EXPECT_EQ(result.options[1].current, "");
}

TEST(AcpMessage, ReadsAnyLineWithoutHarm) {
  rc::check([](const std::string& bytes, bool in_object) {
    std::string line = in_object ? "{\"a\":\"" + bytes + "\"}" : bytes;
    std::erase(line, '\n');
    const auto message = acp_message(line);
    if (!message) return;
    RC_ASSERT(valid_utf8(message->json) == message->json);
    RC_ASSERT(message->json.find_first_of("\r\n") == std::string::npos);
    boost::json::error_code error;
    boost::json::parse(message->json, error);
    RC_ASSERT(!error);
  });
}

boost::json::object parsed(const std::string& line) {
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return boost::json::parse(line).as_object();
}

TEST(AcpRequest, WritesValidLinesWhateverIsInThem) {
  const std::string odd = "a\"b\\c\nd\r\x01\xff";
  const std::string whole = "a\"b\\c\nd\r\x01\xef\xbf\xbd";
  const auto prompt = parsed(acp_request(3, "session/prompt", prompt_params(odd, {odd, "p"})));
  EXPECT_EQ(prompt.at("id"), 3);
  EXPECT_EQ(prompt.at("params").at("sessionId").as_string(), whole);
  EXPECT_EQ(prompt.at("params").at("prompt").at(0).at("text").as_string(), whole);
  EXPECT_EQ(prompt.at("params").at("prompt").at(1).at("type").as_string(), "text");

  const auto cancel = parsed(acp_notification("session/cancel", cancel_params(odd)));
  EXPECT_FALSE(cancel.contains("id"));
  EXPECT_EQ(parsed(set_option_params("s", "model", odd)).at("value").as_string(), whole);
  EXPECT_EQ(parsed(set_mode_params("s", odd)).at("modeId").as_string(), whole);
  EXPECT_EQ(parsed(authenticate_params(odd)).at("methodId").as_string(), whole);
  EXPECT_EQ(parsed(initialize_params()).at("protocolVersion"), 1);
  EXPECT_EQ(parsed(initialize_params()).at("clientCapabilities").at("terminal"), false);
}

TEST(AcpRequest, EchoesTheIdOfAQuestion) {
  for (const std::string id : {"0", "-7", "\"a\\\"b\"", "null"}) {
    const AcpMessage asked = read(R"({"method":"x","id":)" + id + "}");
    EXPECT_EQ(parsed(unknown_method_answer(asked.id)).at("id"), boost::json::parse(id));
    EXPECT_EQ(parsed(permission_answer(asked.id, "yes")).at("id"), boost::json::parse(id));
  }
  EXPECT_EQ(permission_answer("4", "a\"b"),
            R"({"jsonrpc":"2.0","id":4,"result":{"outcome":{"outcome":"selected",)"
            R"("optionId":"a\"b"}}})");
  EXPECT_EQ(permission_answer("4", std::nullopt),
            R"({"jsonrpc":"2.0","id":4,"result":{"outcome":{"outcome":"cancelled"}}})");
}

TEST(AcpRequest, TellsClaudeWhoseSettingsCount) {
  Conversation conversation;
  conversation.working_dir = "/w";
  conversation.system = "Be brief.";
  conversation.mcp_servers = "[ {\"name\":\"a\",\n\"command\":\"b\"} ]";
  const auto params = [&](AcpDialect dialect, std::string_view id = {}) {
    return parsed(session_params(conversation, dialect, id).value());
  };
  const auto claude = params({.is_claude = true, .takes_system = true}, "s1");
  EXPECT_EQ(claude.at("sessionId"), "s1");
  EXPECT_EQ(claude.at("cwd"), "/w");
  EXPECT_EQ(claude.at("mcpServers").at(0).at("name"), "a");
  EXPECT_EQ(claude.at("_meta").at("systemPrompt").at("append"), "Be brief.");
  const auto& options = claude.at("_meta").at("claudeCode").at("options").as_object();
  EXPECT_TRUE(options.at("settingSources").as_array().empty());
  EXPECT_EQ(options.at("strictMcpConfig"), true);
  EXPECT_EQ(options.at("promptSuggestions"), false);
  EXPECT_TRUE(options.contains("title"));

  const auto owners = params({.is_claude = true, .takes_system = true, .owner_settings = true});
  EXPECT_FALSE(owners.contains("sessionId"));
  EXPECT_FALSE(
      owners.at("_meta").at("claudeCode").at("options").as_object().contains("settingSources"));
  EXPECT_FALSE(params({}).contains("_meta"));
  conversation.mcp_servers = "";
  EXPECT_TRUE(params({}).at("mcpServers").as_array().empty());
  for (const std::string bad : {"{}", "[", "x"}) {
    conversation.mcp_servers = bad;
    EXPECT_FALSE(session_params(conversation, {}, {})) << bad;
  }
}

}  // namespace
}  // namespace clawdforge
