#include "agent/acpx/acpx_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using Kind = AcpxTraffic::Kind;
using testing::ElementsAre;

constexpr std::string_view kPrompt =
    R"({"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}})";
constexpr std::string_view kUpdate =
    R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{)"
    R"("sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}})";

std::vector<Kind> kinds_of(const std::vector<std::string_view>& lines) {
  AcpxTraffic traffic;
  std::vector<Kind> kinds;
  for (const std::string_view line : lines) kinds.push_back(traffic.take(line).kind);
  return kinds;
}

TEST(AcpxTraffic, AColdTurnIsToldFromBothSides) {
  EXPECT_THAT(kinds_of({R"({"id":0,"method":"initialize","params":{"protocolVersion":1}})",
                        R"({"id":0,"result":{"protocolVersion":1,"agentInfo":{"version":"9"}}})",
                        R"({"id":1,"method":"session/load","params":{"sessionId":"s1"}})",
                        R"({"id":1,"result":{"configOptions":[]}})", kPrompt, kUpdate,
                        R"({"id":2,"result":{"stopReason":"end_turn"}})", kUpdate}),
              ElementsAre(Kind::nothing, Kind::opening, Kind::loading, Kind::nothing, Kind::asked,
                          Kind::event, Kind::end, Kind::event));
}

TEST(AcpxTraffic, AConversationThatIsReplacedIsSeen) {
  EXPECT_THAT(kinds_of({R"({"id":2,"method":"session/new","params":{"cwd":"/"}})",
                        R"({"id":2,"result":{"sessionId":"s2"}})"}),
              ElementsAre(Kind::beginning, Kind::nothing));
  AcpxTraffic traffic;
  EXPECT_EQ(traffic.take(kPrompt).session_id, "s1");
}

TEST(AcpxTraffic, AQuestionIsToldWithAcpxsAnswer) {
  AcpxTraffic traffic;
  traffic.take(kPrompt);
  // The agent's own number, which is the prompt's as well.
  EXPECT_EQ(traffic
                .take(R"({"id":2,"method":"session/request_permission","params":{"options":[)"
                      R"({"optionId":"yes","kind":"allow_once"}],"toolCall":{"title":"T"}}})")
                .kind,
            Kind::nothing);
  const auto heard =
      traffic.take(R"({"id":2,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}})");
  EXPECT_EQ(heard.kind, Kind::event);
  ASSERT_TRUE(heard.message.question);
  EXPECT_EQ(heard.message.method, "session/request_permission");
  EXPECT_TRUE(heard.message.question->is_answered);
  EXPECT_EQ(heard.message.question->answer, "yes");
  EXPECT_EQ(traffic.take(R"({"id":2,"result":{"stopReason":"end_turn"}})").kind, Kind::end);
  EXPECT_TRUE(traffic.take_questions().empty());
}

TEST(AcpxTraffic, AQuestionWithoutAnAnswerIsCancelled) {
  AcpxTraffic traffic;
  traffic.take(R"({"id":"q","method":"session/request_permission","params":{"options":[]}})");
  const auto questions = traffic.take_questions();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_TRUE(questions[0].question->is_answered);
  EXPECT_FALSE(questions[0].question->answer);
  EXPECT_TRUE(traffic.take_questions().empty());
}

TEST(AcpxTraffic, AnAnswerToTheAgentEndsNoTurn) {
  EXPECT_THAT(kinds_of({kPrompt, R"({"id":2,"method":"fs/read_text_file","params":{}})",
                        R"({"id":2,"error":{"code":-32601,"message":"no"}})",
                        R"({"id":2,"error":{"code":-32603,"message":"its own"}})"}),
              ElementsAre(Kind::asked, Kind::nothing, Kind::nothing, Kind::end));
}

TEST(AcpxTraffic, AnAgentThatAsksLikeAClientDoesNotEndItsTurn) {
  EXPECT_THAT(kinds_of({kPrompt, R"({"id":0,"method":"session/prompt","params":{}})",
                        R"({"id":0,"error":{"code":-32601,"message":"no"}})",
                        R"({"id":2,"result":{"stopReason":"end_turn"}})"}),
              ElementsAre(Kind::asked, Kind::nothing, Kind::nothing, Kind::end));
}

TEST(AcpxTraffic, AStopReasonEndsTheTurnWhateverItsId) {
  EXPECT_THAT(kinds_of({R"({"id":"req-1","method":"session/prompt","params":{}})",
                        R"({"id":"req-2","result":{"stopReason":"refusal"}})",
                        R"({"id":"req-1","result":{"stopReason":"end_turn"}})"}),
              ElementsAre(Kind::asked, Kind::end, Kind::nothing));
}

TEST(AcpxTraffic, AResultWithoutAReasonIsAnEndAsWell) {
  EXPECT_THAT(kinds_of({kPrompt, R"({"id":2,"result":{}})"}), ElementsAre(Kind::asked, Kind::end));
}

TEST(AcpxTraffic, ItsOwnErrorIsNotTheAgents) {
  AcpxTraffic traffic;
  const auto heard = traffic.take(
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32070,"message":"Timed out","data":{)"
      R"("acpxCode":"TIMEOUT","detailCode":"QUEUE_RUNTIME_PROMPT_FAILED","origin":"runtime"}}})");
  EXPECT_EQ(heard.kind, Kind::fault);
  ASSERT_TRUE(heard.fault);
  EXPECT_EQ(heard.fault->code, -32070);
  EXPECT_EQ(heard.fault->acpx_code, "TIMEOUT");
  EXPECT_EQ(heard.fault->detail_code, "QUEUE_RUNTIME_PROMPT_FAILED");
}

TEST(AcpxTraffic, CancelsAreNoEvents) {
  EXPECT_THAT(kinds_of({R"({"method":"session/cancel","params":{"sessionId":"s1"}})",
                        R"({"method":"$/cancel_request","params":{"requestId":2}})",
                        R"({"method":"_of_a_vendor","params":{}})"}),
              ElementsAre(Kind::nothing, Kind::nothing, Kind::event));
}

TEST(AcpxTraffic, WhatIsNoObjectIsSaidToBeNone) {
  EXPECT_THAT(kinds_of({"Debugger attached.", "", "[1]", "null", R"({"half": )"}),
              testing::Each(Kind::no_object));
}

TEST(AcpxAnswer, TellsWhatEachCommandSays) {
  const auto made = acpx_answer(
      R"({"action":"session_ensured","created":true,"acpxRecordId":"r","acpxSessionId":"s"})");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->record_id, "r");
  EXPECT_TRUE(made->is_created);
  const auto cancelled = acpx_answer(R"({"action":"cancel_result","cancelled":true})");
  ASSERT_TRUE(cancelled);
  EXPECT_TRUE(cancelled->is_cancelled);
  const auto shown = acpx_answer(
      R"({"acpxRecordId":"r","acpx":{"config_options":[{"id":"e","category":"thought_level"}]}})");
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->options.size(), 1U);
  EXPECT_EQ(shown->options[0].id, "e");
  const auto failed = acpx_answer(R"({"id":null,"error":{"code":-1,"message":"m"}})");
  ASSERT_TRUE(failed && failed->fault);
  EXPECT_EQ(failed->fault->message, "m");
}

TEST(AcpxAnswer, IsNoneForAnythingElse) {
  for (const char* line : {"", "hello", "[]", "{}", R"({"jsonrpc":"2.0","method":"x"})"}) {
    EXPECT_FALSE(acpx_answer(line)) << line;
  }
}

}  // namespace
}  // namespace clawdforge
