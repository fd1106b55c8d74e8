#include "transcript/journal_json.h"

#include <gtest/gtest.h>

#include <chrono>

namespace clawdforge {
namespace {

// These bytes are in ledgers: a change here needs a reader of both.
TEST(JournalJson, OfATurnThatWentWell) {
  TurnOutcome outcome;
  outcome.turn_index = 2;
  outcome.text = "say \"hi\"";
  outcome.stop_reason = "end_turn";
  outcome.duration = std::chrono::milliseconds(15);
  EXPECT_EQ(closing_json(SessionId("s-1"), outcome),
            R"({"ok":true,"session_id":"s-1","turn_index":2,"text":"say \"hi\"","usage":null,)"
            R"("cost_usd":null,"stop_reason":"end_turn","duration_ms":15})");
  outcome.is_text_truncated = true;
  outcome.is_events_truncated = true;
  outcome.usage = Usage{1, 2, 3, 4};
  outcome.cost_usd = 0.5;
  outcome.is_resumed = false;
  EXPECT_EQ(closing_json(SessionId("s-1"), outcome),
            R"({"ok":true,"session_id":"s-1","turn_index":2,"text":"say \"hi\"",)"
            R"("text_truncated":true,"events_truncated":true,"usage":{"input_tokens":1,)"
            R"("output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4},"cost_usd":0.5,)"
            R"("resumed":false,"stop_reason":"end_turn","duration_ms":15})");
}

TEST(JournalJson, OfATurnThatFailed) {
  TurnOutcome outcome;
  outcome.turn_index = 3;
  outcome.failure.emplace();
  outcome.failure->code = "timeout";
  outcome.failure->message = "It took too long.";
  outcome.error_tail = "tail";
  outcome.stop_reason = "timeout";
  outcome.text = "half";
  EXPECT_EQ(closing_json(SessionId("s-1"), outcome),
            R"({"ok":false,"session_id":"s-1","turn_index":3,"error":"It took too long.",)"
            R"("stderr":"tail","code":"timeout","detail":"It took too long.",)"
            R"("stop_reason":"timeout","duration_ms":0})");
}

TEST(JournalJson, OfAQuestionAndItsAnswer) {
  const PermissionRequest question{
      .ask_id = "0",
      .title = "say \"hi\"",
      .kind = "edit",
      .options = {{"yes", "Yes", "allow_once"}, {"no", "No", "reject_once"}},
      .is_answered = false,
      .answer = {}};
  const std::string told =
      R"({"id":"p-1","turn_index":3,"title":"say \"hi\"","kind":"edit","options":[)"
      R"({"option_id":"yes","name":"Yes","kind":"allow_once"},)"
      R"({"option_id":"no","name":"No","kind":"reject_once"}],)"
      R"("asked_at":1700000000,"expires_at":)";
  EXPECT_EQ(question_json("p-1", 3, 1700000000, 1700000120, question, {}), told + "1700000120}");
  EXPECT_EQ(question_json("p-1", 3, 1700000000, {}, question, R"({"id":0})"),
            told + R"(null,"message":{"id":0}})");
  EXPECT_EQ(resolution_json("p", "allow", "yes", "rule"),
            R"({"id":"p","decision":"allow","option_id":"yes","by":"rule"})");
  EXPECT_EQ(resolution_json("p", "cancelled", {}, "cancel"),
            R"({"id":"p","decision":"cancelled","option_id":null,"by":"cancel"})");
}

}  // namespace
}  // namespace clawdforge
