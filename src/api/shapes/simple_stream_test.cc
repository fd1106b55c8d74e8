#include "api/shapes/simple_stream.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

std::string told_update(const std::string& fields) {
  return R"({"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":)" +
         fields + "}}}";
}

TEST(SimpleStream, TellsPiecesAsTheyCome) {
  SimpleStream stream;
  const std::string text = R"("agent_message_chunk","content":{"type":"text","text":"hi"})";
  EXPECT_EQ(stream.take(told_update(text), 1), R"({"type":"text","content":"hi"})");
  EXPECT_EQ(stream.take(told_update(text), 1), R"({"type":"text","content":"hi"})");
  const std::string thought = R"("agent_thought_chunk","content":{"type":"text","text":"hm"})";
  EXPECT_EQ(stream.take(told_update(thought), 1), R"({"type":"thinking","content":"hm"})");
  EXPECT_EQ(stream.take(told_update(R"("plan","entries":[])"), 1), "");
  EXPECT_EQ(stream.take("no JSON", 1), "");
}

TEST(SimpleStream, TellsAToolOnceWhenItIsWhole) {
  SimpleStream stream;
  EXPECT_EQ(
      stream.take(told_update(R"("tool_call","toolCallId":"t","title":"Read","status":"pending",)"
                              R"("rawInput":{"path":"a"})"),
                  1),
      "");
  EXPECT_EQ(
      stream.take(told_update(R"("tool_call_update","toolCallId":"t","status":"in_progress")"), 1),
      "");
  EXPECT_EQ(stream.take(told_update(R"("tool_call_update","toolCallId":"t","status":"completed",)"
                                    R"("rawOutput":"text")"),
                        1),
            R"({"type":"tool_call","name":"Read","args":{"path":"a"},"result":"text"})");
  EXPECT_EQ(stream.take(told_update(R"("tool_call_update","toolCallId":"t","title":"Read",)"
                                    R"("status":"completed")"),
                        1),
            "");
  // The same id in another turn is another call.
  EXPECT_EQ(stream.take(
                told_update(R"("tool_call","toolCallId":"t","title":"Run","status":"failed")"), 2),
            R"({"type":"tool_call","name":"Run","args":{},"result":null})");
}

TEST(SimpleStream, ForgetsTheOldestOfTooManyTools) {
  SimpleStream stream;
  for (std::size_t i = 0; i <= kSimpleToolsMax; ++i) {
    const std::string id = std::to_string(i);
    EXPECT_EQ(stream.take(told_update(R"("tool_call","title":"T","toolCallId":")" + id + "\""), 1),
              "");
  }
  const auto ended = [&stream](const std::string& id) {
    return stream.take(
        told_update(R"("tool_call_update","status":"completed","toolCallId":")" + id + "\""), 1);
  };
  EXPECT_EQ(ended("1"), R"({"type":"tool_call","name":"T","args":{},"result":null})");
  EXPECT_EQ(ended("0"), "");
}

}  // namespace
}  // namespace clawdforge
