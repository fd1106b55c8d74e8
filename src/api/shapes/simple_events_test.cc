#include "api/shapes/simple_events.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>
#include <vector>

namespace clawdforge {
namespace {

using Lines = std::vector<std::string>;

std::string update(const std::string& fields, bool is_nested = true) {
  const std::string inner = is_nested ? R"("sessionId":"s","update":{)" + fields + "}" : fields;
  return R"({"jsonrpc":"2.0","method":"session/update","params":{)" + inner + "}}";
}

std::string chunk(const std::string& kind, const std::string& text, bool is_nested = true) {
  return update(
      R"("sessionUpdate":")" + kind + R"(","content":{"type":"text","text":")" + text + "\"}",
      is_nested);
}

std::string tool(const std::string& kind, const std::string& fields) {
  return update(R"("sessionUpdate":")" + kind + R"(","toolCallId":"t1")" + fields);
}

TEST(SimpleEvents, TranslatesEachKind) {
  struct Case {
    const char* what;
    Lines raw;
    const char* simple;
  };
  const std::vector<Case> cases = {
      {"nothing", {}, "[]"},
      {"adjacent text is one",
       {chunk("agent_message_chunk", "a"), chunk("agent_message_chunk", "b")},
       R"([{"type":"text","content":"ab"}])"},
      {"what is dropped does not part it",
       {chunk("agent_message_chunk", "a"), update(R"("sessionUpdate":"usage_update")"),
        chunk("agent_message_chunk", "b", false)},
       R"([{"type":"text","content":"ab"}])"},
      {"thoughts are apart from text",
       {chunk("agent_thought_chunk", "t"), chunk("agent_thought_chunk", "u"),
        chunk("agent_message_chunk", "a"), chunk("agent_thought_chunk", "v")},
       R"([{"type":"thinking","content":"tu"},{"type":"text","content":"a"},{"type":"thinking","content":"v"}])"},
      {"a tool call is one with what follows, where it was made",
       {tool("tool_call", R"(,"title":"Terminal","name":"Bash","rawInput":{})"),
        chunk("agent_message_chunk", "a"),
        tool("tool_call_update", R"(,"title":"ls","rawInput":{"command":"ls"})"),
        tool("tool_call_update", R"(,"status":"completed","rawOutput":"ok")"),
        chunk("agent_message_chunk", "b")},
       R"([{"type":"tool_call","name":"Bash","args":{"command":"ls"},"result":"ok"},{"type":"text","content":"ab"}])"},
      {"a tool without a name has its title, and its content for a result",
       {tool("tool_call", R"(,"title":"Read")"),
        tool(
            "tool_call_update",
            R"(,"content":[{"type":"content","content":{"type":"text","text":"one"}},)"
            R"({"type":"diff","path":"p"},{"type":"content","content":{"type":"text","text":"two"}}])")},
       R"([{"type":"tool_call","name":"Read","args":{},"result":"one\ntwo"}])"},
      {"the tool's own output counts more than its content",
       {tool("tool_call", R"(,"name":"x","rawInput":[1],"rawOutput":{"a":1})"),
        tool("tool_call_update", R"(,"rawOutput":null,"content":[{"content":{"text":"shown"}}])")},
       R"([{"type":"tool_call","name":"x","args":{},"result":{"a":1}}])"},
      {"a tool that has not answered",
       {tool("tool_call", "")},
       R"([{"type":"tool_call","name":"","args":{},"result":null}])"},
      {"an update of a call that was never told",
       {tool("tool_call_update", R"(,"status":"completed")")},
       "[]"},
      {"an update that stands for its call",
       {tool("tool_call_update", R"(,"name":"x","rawOutput":1)")},
       R"([{"type":"tool_call","name":"x","args":{},"result":1}])"},
      {"everything else",
       {"", "x", "[]", "{}", R"({"id":3,"result":{"stopReason":"end_turn"}})",
        R"({"id":4,"method":"session/request_permission","params":{}})",
        R"({"method":"session/update"})", R"({"method":"session/update","params":{"update":3}})",
        chunk("user_message_chunk", "u"), chunk("something_new", "u"),
        chunk("agent_message_chunk", "")},
       "[]"},
  };
  for (const Case& one : cases) EXPECT_EQ(simple_events(one.raw), one.simple) << one.what;
}

TEST(SimpleEvents, KeepsAllTextAndNeverHasTwoOfAKindSideBySide) {
  rc::check([](const std::vector<std::uint8_t>& kinds) {
    Lines raw;
    std::string said;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::string text = std::to_string(i) + ";";
      const bool is_text = kinds[i] % 3 == 0;
      raw.push_back(chunk(is_text             ? "agent_message_chunk"
                          : kinds[i] % 3 == 1 ? "agent_thought_chunk"
                                              : "plan",
                          text, kinds[i] % 2 == 0));
      if (is_text) said += text;
    }
    std::string found;
    std::string before;
    const auto events = boost::json::parse(simple_events(raw));
    for (const auto& event : events.as_array()) {
      const std::string type(event.at("type").as_string());
      RC_ASSERT(type != before);
      before = type;
      if (type == "text") found += event.at("content").as_string();
    }
    RC_ASSERT(found == said);
  });
}

}  // namespace
}  // namespace clawdforge
