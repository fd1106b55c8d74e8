#include "agent/claude_stream/claude_translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>

#include "agent/claude_stream/stream_cli.h"
#include "agent/claude_stream/tool_words.h"
#include "transcript/turn_event_reader.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;

class ClaudeTranslatorTest : public testing::Test {
 protected:
  ClaudeReading read(std::string_view line) {
    auto reading = translator_.read(line);
    EXPECT_TRUE(reading) << line;
    return reading ? std::move(*reading) : ClaudeReading{};
  }
  // The only message that the line is told by.
  boost::json::object update(std::string_view line) {
    const ClaudeReading reading = read(line);
    EXPECT_EQ(reading.said.size(), 1U) << line;
    if (reading.said.size() != 1) return {};
    auto message = boost::json::parse(reading.said.front().json).as_object();
    return message.at("params").at("update").as_object();
  }

  ClaudeTranslator translator_{"s1", "/place"};
};

TEST_F(ClaudeTranslatorTest, PiecesAreToldOnceWithTheIdOfTheirMessage) {
  EXPECT_TRUE(
      read(R"({"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}})")
          .said.empty());
  const auto piece = update(
      R"({"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}}})");
  EXPECT_EQ(piece.at("messageId"), "m1");
  EXPECT_EQ(piece.at("content").at("text"), "hi");
  EXPECT_TRUE(
      read(R"({"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"hi"}]}})")
          .said.empty());
  EXPECT_EQ(
      update(
          R"({"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"own"}]}})")
          .at("content")
          .at("text"),
      "own");
}

TEST_F(ClaudeTranslatorTest, ATextThatIsWholeAndAnErrorOfTheApi) {
  EXPECT_TRUE(
      read(R"({"type":"assistant","is_api_error_message":true,"message":{"id":"m","content":)"
           R"([{"type":"text","text":"API Error"}]}})")
          .said.empty());
  EXPECT_TRUE(read(R"({"type":"assistant","parent_tool_use_id":"t","message":{"id":"m","content":)"
                   R"([{"type":"text","text":"of an agent below"}]}})")
                  .said.empty());
}

TEST_F(ClaudeTranslatorTest, AToolCallIsCompletedByLaterLines) {
  const auto begun =
      update(R"({"type":"stream_event","event":{"type":"content_block_start","content_block":)"
             R"({"type":"tool_use","id":"t1","name":"Read","input":{}}}})");
  EXPECT_EQ(begun.at("sessionUpdate"), "tool_call");
  EXPECT_EQ(begun.at("title"), "Read File");
  const auto whole = update(
      R"({"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Read",)"
      R"("input":{"file_path":"/place/a.txt","offset":3,"limit":2}}]}})");
  EXPECT_EQ(whole.at("sessionUpdate"), "tool_call_update");
  EXPECT_EQ(whole.at("title"), "Read a.txt (3 - 4)");
  EXPECT_EQ(boost::json::serialize(whole.at("locations")), R"([{"path":"/place/a.txt","line":3}])");
  const auto done = update(
      R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"```x"}]}})");
  EXPECT_EQ(done.at("status"), "completed");
  EXPECT_EQ(done.at("content").at(0).at("content").at("text"), "````\n```x\n````");
}

TEST_F(ClaudeTranslatorTest, AQuestionHasItsInputAndRulesForTheSessionOnly) {
  const ClaudeReading reading =
      read(R"({"type":"control_request","request_id":"r\"1","request":{"subtype":"can_use_tool",)"
           R"("tool_name":"Bash","tool_use_id":"t1","input":{"command":"ls"},)"
           R"("permission_suggestions":[{"type":"addRules","destination":"localSettings"}]}})");
  ASSERT_TRUE(reading.question);
  const ClaudeQuestion& question = *reading.question;
  EXPECT_EQ(question.request_id, "r\"1");
  EXPECT_EQ(question.input, R"({"command":"ls"})");
  EXPECT_EQ(question.updates, R"([{"type":"addRules","destination":"session"}])");
  EXPECT_EQ(question.asked.kind, "execute");
  TurnEventReader reader;
  const TurnEvent event = reader.read_message(question.json);
  ASSERT_TRUE(std::holds_alternative<Question>(event));
  EXPECT_EQ(std::get<Question>(event).asked.ask_id, question.asked.ask_id);
  EXPECT_EQ(std::get<Question>(event).asked.options.size(), 3U);
}

TEST_F(ClaudeTranslatorTest, AResultTellsWhoseItIsAndWhatItCost) {
  const auto ours = read(
      R"({"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":2,)"
      R"("modelUsage":{"a":{"contextWindow":9},"b":{"contextWindow":7}},)"
      R"("model_usage_since_last_result":{"a":{"costUSD":0.5},"b":{"costUSD":0.25}}})");
  ASSERT_TRUE(ours.end);
  EXPECT_TRUE(ours.end->is_of_prompt);
  EXPECT_EQ(ours.end->cost_since_last, 0.75);
  EXPECT_EQ(ours.end->context_size, 9);
  const auto own = read(
      R"({"type":"result","result":"x","is_error":false,"origin":{"kind":"task-notification"}})");
  ASSERT_TRUE(own.end);
  EXPECT_FALSE(own.end->is_of_prompt);
}

TEST_F(ClaudeTranslatorTest, WhatIsNoObjectIsNotRead) {
  for (const char* line : {"", "x", "[1]", "null", "{\"half\":"}) {
    EXPECT_FALSE(translator_.read(line)) << line;
  }
  EXPECT_TRUE(translator_.read("{\"type\":\"assistant\",\"x\":\"\xff\"}"));
}

TEST_F(ClaudeTranslatorTest, WhateverIsSaidIsToldAsValidLines) {
  rc::check([] {
    ClaudeTranslator translator("s", "/w");
    const auto word = *rc::gen::element<std::string>("assistant", "user", "stream_event", "result",
                                                     "control_request", "system", "new");
    const auto text = *rc::gen::string<std::string>();
    boost::json::object block = {
        {"type", "tool_use"}, {"id", "t"}, {"name", text}, {"input", {{text, 1}}}};
    boost::json::object message = {
        {"type", word},
        {"message", {{"id", text}, {"content", {block}}}},
        {"request", {{"subtype", "can_use_tool"}, {"input", {{text, text}}}}},
        {"request_id", text}};
    const auto reading = translator.read(boost::json::serialize(message));
    if (!reading) return;  // bytes that no repair makes text
    for (const ClaudeSaid& said : reading->said) {
      RC_ASSERT(!said.json.contains('\n'));
      RC_ASSERT(boost::json::parse(said.json).is_object());
    }
    if (reading->question) RC_ASSERT(boost::json::parse(reading->question->json).is_object());
  });
}

StartOrder start_order() {
  StartOrder order;
  order.conversation_id = "0190a6b2-0000-7000-8000-000000000001";
  return order;
}

TEST(ClaudeStreamCli, AConversationIsBegunOrLoadedByItsId) {
  StartOrder order = start_order();
  auto arguments = claude_stream_arguments(order);
  EXPECT_THAT(arguments, testing::IsSupersetOf({"--session-id", order.conversation_id.c_str(),
                                                "--strict-mcp-config"}));
  order.loads_conversation = true;
  order.spec.applies_owner_settings = true;
  arguments = claude_stream_arguments(order);
  EXPECT_THAT(arguments, testing::Contains("--resume"));
  EXPECT_THAT(arguments, Not(testing::Contains("--setting-sources")));
  order.conversation_id = "--dangerously-skip-permissions";
  EXPECT_THAT(claude_stream_arguments(order), Not(testing::Contains(order.conversation_id)));
}

TEST(ClaudeStreamCli, McpServersAreTakenFromTheProtocolsList) {
  const auto body = set_mcp_servers_body(
      R"([{"name":"a","command":"x","args":["1"],"env":[{"name":"K","value":"v"}]},)"
      R"({"type":"sse","name":"b","url":"http://h","headers":[{"name":"H","value":"w"}]}])");
  ASSERT_TRUE(body);
  EXPECT_EQ(
      *body,
      R"({"subtype":"mcp_set_servers","servers":{"a":{"type":"stdio","command":"x","args":["1"],)"
      R"("env":{"K":"v"}},"b":{"type":"sse","url":"http://h","headers":{"H":"w"}}}})");
  EXPECT_FALSE(set_mcp_servers_body("{}"));
}

TEST(ClaudeStreamCli, APromptThatBeginsWithASlashIsText) {
  EXPECT_THAT(user_message("/clear"), HasSubstr(R"("content":"\n/clear")"));
  EXPECT_THAT(user_message("x /clear"), HasSubstr(R"("content":"x /clear")"));
}

}  // namespace
}  // namespace clawdforge
