#include "cli/dialogue/transcript.h"

#include <gtest/gtest.h>

#include "cli/dialogue/line_diff.h"
#include "cli/dialogue/plain_view.h"

namespace clawdforge {
namespace {

std::string plain(const StyledLines& lines) {
  std::string out;
  for (const StyledText& line : lines) out += plain_of(line) + "\n";
  return out;
}

std::string update(std::string_view fields) {
  return R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{)" +
         std::string(fields) + "}}}";
}

ChatEvent text_event(const std::string& text) {
  return read_chat_event(
      "update",
      update(R"("sessionUpdate":"agent_message_chunk","content":{"type":"text","text":")" + text +
             "\"}"));
}

ChatEvent end_event() {
  return read_chat_event(
      "done", R"({"ok":true,"turn_index":1,"usage":{"input_tokens":3,"output_tokens":4},)"
              R"("cost_usd":0.5,"stop_reason":"end_turn","duration_ms":1500})");
}

ChatEvent question_event() {
  return read_chat_event(
      "permission",
      R"({"id":"q1","turn_index":1,"title":"Edit a","kind":"edit","expires_at":123,"options":[)"
      R"({"option_id":"o1","name":"Yes","kind":"allow_once"}],)"
      R"("message":{"params":{"toolCall":{"rawInput":{"path":"a"}}}}})");
}

const ChatTime kStart{};
const ChatTime kLater = kStart + std::chrono::milliseconds(400);

TEST(ChatEvent, IsReadFromTheStream) {
  EXPECT_EQ(std::get<AgentText>(text_event("hello")).text, "hello");
  const auto question = std::get<AgentQuestion>(question_event());
  EXPECT_TRUE(question.is_open);
  EXPECT_EQ(question.input, R"({"path":"a"})");
  EXPECT_EQ(question.options.front().kind, "allow_once");
  const auto end = std::get<ChatTurnEnd>(end_event());
  EXPECT_EQ(usage_text(end), "3 in · 4 out · $0.5000 · 1.5 s");
  EXPECT_TRUE(std::holds_alternative<Unshown>(read_chat_event("update", "not json")));
  EXPECT_TRUE(std::holds_alternative<Unshown>(read_chat_event("new-kind", "{}")));
  EXPECT_TRUE(std::holds_alternative<ReaderCut>(read_chat_event("shutdown", "{}")));
}

TEST(Transcript, SettlesBlocksOfTextAndKeepsTheOpenOne) {
  Transcript transcript;
  transcript.apply(text_event("# One\\n\\nTwo"), kStart);
  auto frame = transcript.next_frame(40, kStart);
  EXPECT_EQ(plain(frame.settled), "One\n");
  EXPECT_EQ(plain(frame.live), "\nTwo\n");
  transcript.apply(text_event(" and three."), kStart);
  transcript.apply(end_event(), kStart);
  frame = transcript.next_frame(40, kStart);
  EXPECT_EQ(plain(frame.settled), "\nTwo and three.\n\n3 in · 4 out · $0.5000 · 1.5 s\n");
  EXPECT_TRUE(frame.live.empty());
  EXPECT_EQ(plain(transcript.last_lines(40, 3, kStart)),
            "Two and three.\n\n3 in · 4 out · $0.5000 · 1.5 s\n");
}

TEST(Transcript, DrawsThePartOfAnAnswerThatIsSettledAgain) {
  Transcript transcript;
  transcript.apply(text_event("one two\\n\\nthree four"), kStart);
  transcript.next_frame(40, kStart);
  EXPECT_EQ(plain(transcript.last_lines(4, 10, kStart)), "one\ntwo\n");
  EXPECT_EQ(plain(transcript.next_frame(6, kStart).live), "\nthree\nfour\n");
}

TEST(Transcript, ShowsAToolCallAsOneLineThatLives) {
  Transcript transcript;
  transcript.apply(
      read_chat_event("update", update(R"("sessionUpdate":"tool_call","toolCallId":"t",)"
                                       R"("title":"Edit a.cc","status":"in_progress")")),
      kStart);
  transcript.apply(text_event("Meanwhile."), kStart);
  auto frame = transcript.next_frame(60, kLater);
  EXPECT_EQ(plain(frame.settled), "");
  EXPECT_EQ(plain(frame.live), "○ Edit a.cc  0.4 s\n\nMeanwhile.\n");
  transcript.apply(
      read_chat_event(
          "update",
          update(
              R"("sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed",)"
              R"("content":[{"type":"diff","path":"a.cc","oldText":"a\nb\n","newText":"a\nc\nd\n"}])")),
      kLater);
  frame = transcript.next_frame(60, kLater);
  EXPECT_EQ(plain(frame.settled), "● Edit a.cc  +2 −1  0.4 s\n");
  EXPECT_EQ(plain(transcript.tool(0)->details(60)), "  a.cc\n      a\n    - b\n    + c\n    + d\n");
}

TEST(Transcript, AsksAndSaysWhatWasDecided) {
  Transcript transcript;
  transcript.apply(question_event(), kStart);
  transcript.apply(question_event(), kStart);  // also listed as open: it is the same
  ASSERT_NE(transcript.open_question(), nullptr);
  EXPECT_EQ(plain(transcript.next_frame(80, kStart).live),
            "? Edit a (edit)\n  y once · a always in this session · n no · ? what exactly\n");
  transcript.apply(read_chat_event("permission_resolved",
                                   R"({"id":"q1","decision":"allow","option_id":"o1","by":"app"})"),
                   kStart);
  EXPECT_EQ(transcript.open_question(), nullptr);
  EXPECT_EQ(plain(transcript.next_frame(80, kStart).settled), "? Edit a (edit)  allowed\n");
}

TEST(Transcript, ShowsAPlanOnceWhileNothingFollowsIt) {
  const auto plan = [](const char* status) {
    return read_chat_event("update", update(std::string(R"("sessionUpdate":"plan","entries":[)") +
                                            R"({"content":"Read","status":")" + status + "\"}]"));
  };
  Transcript transcript;
  transcript.apply(plan("pending"), kStart);
  EXPECT_EQ(plain(transcript.next_frame(80, kStart).live), "☐ Read\n");
  transcript.apply(plan("completed"), kStart);
  EXPECT_EQ(plain(transcript.next_frame(80, kStart).live), "☑ Read\n");
}

TEST(Transcript, LeavesOutWhatATerminalWouldObey) {
  Transcript transcript;
  transcript.apply(text_event("a\\u001b[31mb\\u001b]0;t\\u0007c"), kStart);
  transcript.apply(
      read_chat_event("update", update(R"("sessionUpdate":"tool_call","toolCallId":"t",)"
                                       R"("title":"x\u001b[2Jy\nz")")),
      kStart);
  const auto frame = transcript.next_frame(60, kStart);
  EXPECT_EQ(plain(frame.settled) + plain(frame.live), "abc\n\n○ xy z  0.0 s\n");
}

TEST(Transcript, ForgetsWhatIsOld) {
  Transcript transcript;
  for (int i = 0; i < 2000; ++i) {
    transcript.add_note("note");
    transcript.next_frame(80, kStart);
  }
  EXPECT_LE(transcript.last_lines(80, 10000, kStart).size(), 2 * kKeptItemsMax);
}

TEST(PlainView, WritesTheAnswerAndNothingElseToStandardOutput) {
  PlainView view;
  view.apply(text_event("Hello \\u001b[1mworld"), kStart);
  view.apply(question_event(), kStart);
  view.apply(text_event("More."), kStart);
  view.apply(end_event(), kStart);
  const auto out = view.take();
  EXPECT_EQ(out.answer, "Hello worldMore.\n");
  EXPECT_EQ(out.messages,
            "? Edit a (edit): answer with a line y, a, n or ?\n3 in · 4 out · $0.5000 · 1.5 s\n");
}

TEST(LineDiff, FindsTheFewestChanges) {
  const LineDiff diff = line_diff("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n");
  EXPECT_EQ(diff.added, 2U);
  EXPECT_EQ(diff.removed, 1U);
  EXPECT_EQ(line_diff("", "a\nb").added, 2U);
  EXPECT_EQ(line_diff("same", "same").lines.size(), 1U);
  const LineDiff large = line_diff(std::string(4000, '\n'), "x\n");
  EXPECT_EQ(large.removed, 4000U);
}

}  // namespace
}  // namespace clawdforge
