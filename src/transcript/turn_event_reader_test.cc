#include "transcript/turn_event_reader.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "transcript/journal_json.h"

namespace clawdforge {
namespace {

std::string update(const std::string& fields, bool is_nested = true) {
  const std::string inner = is_nested ? R"("sessionId":"s","update":{)" + fields + "}" : fields;
  return R"({"jsonrpc":"2.0","method":"session/update","params":{)" + inner + "}}";
}

class TurnEvents : public ::testing::Test {
 protected:
  // The event as this kind; fails the test where it is another one.
  template <class Kind>
  const Kind& as(TurnEvent event) {
    event_ = std::move(event);
    EXPECT_TRUE(std::holds_alternative<Kind>(event_)) << event_.index();
    return std::get<Kind>(event_);
  }
  template <class Kind>
  const Kind& message(const std::string& text) {
    return as<Kind>(reader_.read_message(text));
  }
  template <class Kind>
  const Kind& line(EventKind kind, const std::string& json) {
    line_.clear();
    append_event_line(line_, Event{.id = 7, .turn_index = 2, .kind = kind, .json = json});
    line_.pop_back();
    return as<Kind>(reader_.read_line(event_in(line_).value()));
  }

  TurnEventReader reader_;
  TurnEvent event_;
  std::string line_;
};

TEST_F(TurnEvents, OfTextAndThoughtsInEitherNesting) {
  for (const bool is_nested : {true, false}) {
    EXPECT_EQ(message<TextPiece>(update(R"("sessionUpdate":"agent_message_chunk","content":)"
                                        R"({"type":"text","text":"a\u00e9"})",
                                        is_nested))
                  .text,
              "a\u00e9");
    EXPECT_EQ(message<ThoughtPiece>(update(R"("sessionUpdate":"agent_thought_chunk","content":)"
                                           R"({"type":"text","text":"hm"})",
                                           is_nested))
                  .text,
              "hm");
  }
  EXPECT_EQ(message<TextPiece>(update(R"("sessionUpdate":"agent_message_chunk","content":3)")).text,
            "");
}

TEST_F(TurnEvents, OfATool) {
  const ToolReport& call = message<ToolReport>(update(
      R"("sessionUpdate":"tool_call","toolCallId":"t1","title":"ls","name":"Bash",)"
      R"("kind":"execute","status":"pending","rawInput":{"command":"ls"},"rawOutput":null)"));
  EXPECT_TRUE(call.is_call);
  EXPECT_EQ(call.call_id, "t1");
  EXPECT_EQ(call.name, "Bash");
  EXPECT_EQ(call.title, "ls");
  EXPECT_EQ(call.kind, "execute");
  EXPECT_EQ(call.status, "pending");
  EXPECT_EQ(boost::json::serialize(*call.input), R"({"command":"ls"})");
  EXPECT_EQ(call.output, nullptr);
  const ToolReport& more = message<ToolReport>(
      update(R"("sessionUpdate":"tool_call_update","rawOutput":[1],"content":[{"content":)"
             R"({"text":"one"}},{"type":"diff"},{"content":{"text":"two"}}])"));
  EXPECT_FALSE(more.is_call);
  EXPECT_FALSE(more.call_id || more.name || more.title);
  EXPECT_EQ(boost::json::serialize(*more.output), "[1]");
  EXPECT_EQ(shown_text(*more.content), "one\ntwo");
}

TEST_F(TurnEvents, OfAPlanAndOfUsage) {
  const Plan& plan = message<Plan>(
      update(R"("sessionUpdate":"plan","entries":[{"content":"look","priority":"high",)"
             R"("status":"pending"},7])"));
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps.front().text, "look");
  EXPECT_EQ(plan.steps.front().status, "pending");
  EXPECT_EQ(message<UsageReport>(
                update(R"("sessionUpdate":"usage_update","cost":{"amount":0.5,"currency":"USD"})"))
                .cost_usd,
            0.5);
  EXPECT_EQ(message<UsageReport>(
                update(R"("sessionUpdate":"usage_update","cost":{"amount":0.5,"currency":"EUR"})"))
                .cost_usd,
            std::nullopt);
}

constexpr const char* kAsked =
    R"({"id":"7","method":"session/request_permission","params":{"toolCall":{"toolCallId":"t1",)"
    R"("kind":"edit","name":"Edit"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},)"
    R"({"name":"none"}]}})";

TEST_F(TurnEvents, OfAQuestionAndItsAnswer) {
  const Question& question = message<Question>(kAsked);
  EXPECT_EQ(question.id, "");
  EXPECT_EQ(question.call_id, "t1");
  EXPECT_EQ(question.asked.ask_id, R"("7")");
  EXPECT_EQ(question.asked.title, "Edit");
  EXPECT_EQ(question.asked.kind, "edit");
  ASSERT_EQ(question.asked.options.size(), 1u);
  EXPECT_EQ(question.asked.options.front().option_id, "y");

  const PermissionRequest asked = question.asked;
  const Question& kept =
      line<Question>(EventKind::permission, question_json("p-1", 2, 5, {}, asked, kAsked));
  EXPECT_EQ(kept.id, "p-1");
  EXPECT_EQ(kept.asked.title, "Edit");
  const QuestionAnswer& answer = line<QuestionAnswer>(EventKind::permission_resolved,
                                                      resolution_json("p-1", "allow", "y", "app"));
  EXPECT_EQ(answer.id, "p-1");
  EXPECT_EQ(answer.decision, "allow");
  EXPECT_EQ(answer.by, "app");
}

TEST_F(TurnEvents, OfTheAgentsLastWord) {
  const AgentStop& stop = message<AgentStop>(
      R"({"id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2}}})");
  EXPECT_EQ(stop.stop_reason, "end_turn");
  EXPECT_EQ(stop.usage, (Usage{1, 2, 0, 0}));
  const std::string long_word(kAgentStopReasonBytesMax + 1, 'x');
  EXPECT_EQ(
      message<AgentStop>(R"({"id":3,"result":{"stopReason":")" + long_word + R"("}})").stop_reason,
      "");
}

TEST_F(TurnEvents, OfATurnsEnd) {
  TurnOutcome outcome;
  outcome.stop_reason = "end_turn";
  outcome.usage = Usage{1, 2, 3, 4};
  outcome.cost_usd = 0.25;
  const TurnClosed& done = line<TurnClosed>(EventKind::done, closing_json(SessionId("s"), outcome));
  EXPECT_TRUE(done.is_ok);
  EXPECT_EQ(done.stop_reason, "end_turn");
  EXPECT_EQ(done.usage, (Usage{1, 2, 3, 4}));
  EXPECT_EQ(done.cost_usd, 0.25);
  outcome.failure.emplace();
  outcome.failure->code = "timeout";
  outcome.failure->message = "Too long.";
  const TurnClosed& failed =
      line<TurnClosed>(EventKind::failed, closing_json(SessionId("s"), outcome));
  EXPECT_FALSE(failed.is_ok);
  EXPECT_EQ(failed.code, "timeout");
  EXPECT_EQ(failed.message, "Too long.");
}

TEST_F(TurnEvents, OfAJournalsUpdateIsTheAgentsMessage) {
  const std::string said =
      update(R"("sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"})");
  EXPECT_EQ(line<TextPiece>(EventKind::update, said).text, "a");
}

TEST_F(TurnEvents, OfWhatWeDoNotKnow) {
  for (const char* text :
       {"", "x", "[]", "{}", R"({"id":3,"result":{}})", R"({"id":3,"error":{"code":1}})",
        R"({"id":3,"error":{},"result":{"stopReason":"x"}})", R"({"method":"session/update"})",
        R"({"id":1,"method":"session/update","params":{"sessionUpdate":"plan"}})",
        R"({"method":"session/request_permission","params":{}})", R"({"method":7})",
        R"({"method":"session/update","params":{"update":{"sessionUpdate":"something_new"}}})"}) {
    EXPECT_TRUE(std::holds_alternative<UnknownMessage>(reader_.read_message(text))) << text;
  }
}

// What is kept of a question for as long as it is open, and in the audit for ever.
TEST(TurnEventReader, CutsWhatIsKeptOfAQuestion) {
  const std::string word(kAgentKindBytesMax, 'k');
  const std::string label(kAgentLabelBytesMax, 'l');
  std::string options = R"({"optionId":")" + label + R"(","name":")" + label + R"(é","kind":")" +
                        word + R"("},{"optionId":")" + label + R"(l","kind":"allow_once"})";
  for (std::size_t i = 0; i < kQuestionOptionsMax; ++i) options += R"(,{"optionId":"o"})";
  const std::string message =
      R"({"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"toolCall":)"
      R"({"kind":")" +
      word + R"(k","title":")" + label + R"(é"},"options":[)" + options + "]}}";
  TurnEventReader reader;
  const TurnEvent event = reader.read_message(message);
  const auto* question = std::get_if<Question>(&event);
  ASSERT_NE(question, nullptr);
  EXPECT_EQ(question->asked.kind, "");
  EXPECT_EQ(question->asked.title, label);
  ASSERT_EQ(question->asked.options.size(), kQuestionOptionsMax);
  EXPECT_EQ(question->asked.options[0].option_id, label);
  EXPECT_EQ(question->asked.options[0].name, label);
  EXPECT_EQ(question->asked.options[0].kind, word);
  EXPECT_EQ(question->asked.options[1].option_id, "o");
}

TEST(TurnEventReader, TakesNoKindWithControlCharacters) {
  TurnEventReader reader;
  const TurnEvent event = reader.read_message(
      R"({"jsonrpc":"2.0","method":"session/update","params":{"update":)"
      R"({"sessionUpdate":"tool_call","toolCallId":"t","kind":"re\u0000ad"}}})");
  const auto* report = std::get_if<ToolReport>(&event);
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->kind, "");
}

}  // namespace
}  // namespace clawdforge
