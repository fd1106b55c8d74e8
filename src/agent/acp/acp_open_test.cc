#include "agent/acp/acp_failure.h"
#include "agent/acp/acp_fixture.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;

using AcpOpenTest = AcpTest;

// An agent with a list of models, of which one has efforts.
constexpr const char* kModels = R"py(
current = {"model": "m1", "effort": "low"}
def options():
    listed = [{"id": "the-model", "category": "model", "type": "select",
               "currentValue": current["model"],
               "options": [{"value": "m1", "name": "1"}, {"value": "m2", "name": "2"}]}]
    if current["model"] == "m2":
        listed.append({"id": "think", "category": "thought_level", "currentValue": current["effort"],
                       "options": [{"value": "low"}, {"value": "high"}]})
    return {"configOptions": listed}
def choose(m):
    key = {"the-model": "model", "think": "effort"}[m["params"]["configId"]]
    value = m["params"]["value"]
    if value not in ["m1", "m2", "low", "high"]: return fault(m, -32602, "Invalid value")
    if value != "low": current[key] = value
    reply(m, options())
on["session/set_config_option"] = choose
on["session/new"] = lambda m: reply(m, {"sessionId": "s1", **options()})
)py";

TEST_F(AcpOpenTest, ChoosesTheModelAndThenTheEffort) {
  start(kModels);
  Conversation conversation;
  conversation.model = "m2";
  conversation.effort = "high";
  const auto opened = open(conversation);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(log(), HasSubstr(R"("configId":"the-model","value":"m2")"));
  EXPECT_THAT(log(), HasSubstr(R"("configId":"think","value":"high")"));
}

TEST_F(AcpOpenTest, ChoosesAlsoWhatTheAgentSaysIsChosen) {
  start(kModels);
  Conversation conversation;
  conversation.model = "m1";
  ASSERT_TRUE(open(conversation));
  EXPECT_THAT(log(), HasSubstr(R"("configId":"the-model","value":"m1")"));
}

TEST_F(AcpOpenTest, RefusesWhatTheAgentDoesNotKnow) {
  struct Case {
    const char* behaviour;
    const char* model;
    const char* effort;
    const char* code;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {kModels, "m3", "", "unknown_model",
       "scripted does not know the model m3. It knows: m1, m2."},
      {kModels, "m1", "high", "effort_not_supported", nullptr},
      {kModels, "m2", "huge", "effort_not_supported", nullptr},
      {"", "m1", "", "model_not_supported", nullptr},
      {"", "", "high", "effort_not_supported", nullptr},
      // It says yes and does nothing.
      {R"py(
more = {"configOptions": [{"id": "model", "currentValue": "m1", "options": [{"value": "m1"}]}]}
on["session/set_config_option"] = lambda m: reply(m, more)
)py",
       "m3", "", "unknown_model", "scripted does not know the model m3. It knows: m1."},
  };
  for (const Case& one : cases) {
    start(one.behaviour);
    Conversation conversation;
    conversation.model = one.model;
    conversation.effort = one.effort;
    const auto opened = open(conversation);
    ASSERT_FALSE(opened) << one.model << one.effort;
    EXPECT_EQ(opened.error().kind, Errc::invalid);
    EXPECT_EQ(opened.error().code, one.code);
    if (one.sentence != nullptr) EXPECT_EQ(opened.error().message, one.sentence);
  }
}

TEST_F(AcpOpenTest, TakesTheShortNamesOfClaudesModels) {
  start(R"py(
name = "@agentclientprotocol/claude-agent-acp"
more = {"configOptions": [{"id": "model", "category": "model", "currentValue": "default"}]}
on["session/set_config_option"] = lambda m: reply(m, {"configOptions": [
    {"id": "model", "category": "model", "currentValue": "claude-sonnet-5"}]})
)py");
  Conversation conversation;
  conversation.model = "sonnet";
  EXPECT_TRUE(open(conversation));
}

TEST_F(AcpOpenTest, TellsClaudeAllOfItEachTime) {
  for (const std::string id : {"", "old-1"}) {
    start(R"py(
name = "@agentclientprotocol/claude-agent-acp"
abilities = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
on["session/resume"] = lambda m: reply(m, {})
)py");
    Conversation conversation;
    conversation.agent_session_id = id;
    conversation.system = "Be brief.";
    ASSERT_TRUE(open(conversation));
    EXPECT_EQ(turn().text, "echo: hello");
    EXPECT_THAT(log(), HasSubstr(R"("_meta":{"systemPrompt":{"append":"Be brief."})"));
    EXPECT_THAT(log(), HasSubstr(R"("settingSources":[])"));
    EXPECT_THAT(log(), HasSubstr(R"("prompt":[{"type":"text","text":"hello"}])"));
  }
}

TEST_F(AcpOpenTest, GivesTheSystemPromptToOtherAgentsWithTheFirstPrompt) {
  start();
  Conversation conversation;
  conversation.system = "Be brief.";
  ASSERT_TRUE(open(conversation));
  EXPECT_EQ(turn("one").text, "echo: one");
  EXPECT_EQ(turn("two").text, "echo: two");
  EXPECT_EQ(count(log(), "Be brief."), 1U);
  EXPECT_THAT(log(),
              HasSubstr(R"([{"type":"text","text":"Be brief."},{"type":"text","text":"one"}])"));
  EXPECT_THAT(log(), Not(HasSubstr("_meta")));
}

TEST_F(AcpOpenTest, LetsClaudeAskWhateverItsOwnerHasSet) {
  const std::string lax = R"py(
name = "@agentclientprotocol/claude-agent-acp"
on["session/set_config_option"] = on["session/set_mode"] = lambda m: reply(m, {})
)py";
  start(
      lax +
      R"py(more = {"configOptions": [{"id": "mode", "category": "mode", "currentValue": "acceptEdits"}]}
)py");
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), HasSubstr(R"("configId":"mode","value":"default")"));

  start(lax + "more = {'modes': {'currentModeId': 'bypassPermissions'}}\n");
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), HasSubstr(R"("modeId":"default")"));

  start(lax + "more = {'modes': {'currentModeId': 'default'}}\n");
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), Not(HasSubstr("set_mode")));

  AgentSetup setup;
  setup.spec.applies_owner_settings = true;
  start(lax + "more = {'modes': {'currentModeId': 'plan'}}\n", setup);
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), Not(HasSubstr("set_mode")));
  EXPECT_THAT(log(), Not(HasSubstr("settingSources")));
}

TEST_F(AcpOpenTest, AuthenticatesOnlyWhereItIsToldTo) {
  AgentSetup setup;
  setup.spec.auth_method = "api-key";
  start("on['authenticate'] = lambda m: reply(m, {})\n", setup);
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), HasSubstr(R"("method":"authenticate","params":{"methodId":"api-key"})"));
}

TEST_F(AcpOpenTest, RefusesAnotherProtocolAndNonsense) {
  start("on['initialize'] = lambda m: reply(m, {'protocolVersion': 2})\n");
  EXPECT_EQ(open().error().code, "agent_protocol");
  start("on['session/new'] = lambda m: reply(m, {})\n");
  EXPECT_EQ(open().error().code, "agent_nonsense");
  start();
  Conversation conversation;
  conversation.mcp_servers = "{}";
  EXPECT_EQ(open(conversation).error().code, "invalid_mcp_servers");
}

TEST_F(AcpOpenTest, GivesLaterWhatWasSaidWhileItOpened) {
  start(std::string(kModels) + R"py(
def choose_loudly(m):
    update("available_commands_update", availableCommands=[])
    for i in range(40): text("x" * 50000)
    choose(m)
on["session/set_config_option"] = choose_loudly
)py");
  Conversation conversation;
  conversation.model = "m2";
  ASSERT_TRUE(open(conversation));
  const auto shown = static_cast<std::size_t>(gauges_.early_bytes->value());
  const AgentNews news = next();
  EXPECT_EQ(gauges_.early_bytes->value(), 0);
  ASSERT_FALSE(news.events.empty());
  EXPECT_THAT(news.events[0].json, HasSubstr("available_commands_update"));
  std::size_t bytes = 0;
  for (const AgentEvent& event : news.events) bytes += event.json.size();
  EXPECT_GT(bytes, kAgentEarlyBytesMax / 2);
  EXPECT_LE(bytes, kAgentEarlyBytesMax);
  EXPECT_EQ(shown, bytes);
}

AgentSetup setup_with_mode(const std::string& agent_mode) {
  AgentSetup setup;
  setup.spec.modes[PermissionMode::approve_reads].agent_mode = agent_mode;
  return setup;
}

TEST_F(AcpOpenTest, PutsTheAgentIntoTheModeThatThePermissionModeNeeds) {
  start(R"py(
on["session/set_mode"] = lambda m: reply(m, {})
)py",
        setup_with_mode("read-only"));
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), HasSubstr(R"("modeId":"read-only")"));

  start(R"py(
more = {"configOptions": [{"id": "mode", "category": "mode", "type": "select",
                           "currentValue": "full", "options": [{"value": "read-only"}]}]}
on["session/set_config_option"] = lambda m: reply(m, more)
)py",
        setup_with_mode("read-only"));
  const auto refused = open();  // it stays in its mode
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "agent_error");
  EXPECT_THAT(refused.error().message, HasSubstr("read-only"));
}

TEST_F(AcpOpenTest, AnAgentThatDoesNotTakeTheModeIsNotUsed) {
  start(R"py(
on["session/set_mode"] = lambda m: fault(m, -32602, "no such mode")
)py",
        setup_with_mode("read-only"));
  EXPECT_FALSE(open());
}

TEST_F(AcpOpenTest, GivesANewConversationATitleWhereTheAgentTakesOne) {
  AgentSetup setup;
  setup.spec.takes_title = true;
  start(R"py(
on["session/set_title"] = lambda m: reply(m, {})
)py",
        setup);
  ASSERT_TRUE(open());
  EXPECT_THAT(log(), HasSubstr(R"("title":"clawdforge session")"));

  start(R"py(
on["session/set_title"] = lambda m: fault(m, -32601, "Method not found")
)py",
        setup);
  EXPECT_TRUE(open()) << "an older adapter makes no titles";

  start(R"py(
on["session/set_title"] = lambda m: fault(m, -32603, "broken")
)py",
        setup);
  EXPECT_FALSE(open());
}

TEST(AcpFailure, TellsTheKindsOfErrorApart) {
  struct Case {
    AcpError error;
    Errc kind;
    const char* code;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {{-32000, "Authentication required", ""},
       Errc::unavailable,
       "agent_not_logged_in",
       "Log in."},
      {{-32603, "Internal error: 401", "authentication_failed"},
       Errc::unavailable,
       "agent_not_logged_in",
       "Log in."},
      {{-32603, "Internal error: slow down", "rate_limit"},
       Errc::over_quota,
       "account_limit",
       "slow down"},
      {{-32603, "no such model", "model_not_found"},
       Errc::invalid,
       "unknown_model",
       "no such model"},
      {{-32603, "busy", "overloaded"}, Errc::agent_failed, "api_overloaded", "busy"},
      {{-32603, "broken", "server_error"}, Errc::agent_failed, "api_error", "broken"},
      {{-32603, "Prompt is too long", "invalid_request"},
       Errc::too_large,
       "prompt_too_long",
       "Prompt is too long"},
      {{-32603, "odd token=abcdefgh", "something_new"},
       Errc::agent_failed,
       "agent_error",
       "odd token=***"},
      {{-32602, "", ""}, Errc::agent_failed, "agent_error", "x reported error -32602."},
  };
  AgentSpec spec;
  spec.name = "x";
  spec.login_hint = "Log in.";
  for (const Case& one : cases) {
    const Failure failure = failure_of(one.error, spec, std::nullopt, {});
    EXPECT_EQ(failure.kind, one.kind) << one.error.message;
    EXPECT_EQ(failure.code, one.code) << one.error.message;
    EXPECT_EQ(failure.message, one.sentence);
    EXPECT_EQ(failure.retry_after.count(), 0);
  }
  const AcpError limit{-32603, "Claude AI usage limit reached|1759401000", "rate_limit"};
  EXPECT_EQ(failure_of(limit, spec, 1759400000, {}).retry_after.count(), 1000);
}

// The ledger would keep it, and it could not be cut without being another id.
TEST_F(AcpOpenTest, TakesNoEndlessIdOfAConversation) {
  for (const char* id : {"'i' * 2000", "'a\\0b'"}) {
    start(std::string("on['session/new'] = lambda m: reply(m, {'sessionId': ") + id + "})\n");
    const auto opened = open();
    ASSERT_FALSE(opened) << id;
    EXPECT_EQ(opened.error().code, "agent_nonsense") << id;
  }
}

// They are kept for as long as the agent lives.
TEST_F(AcpOpenTest, KeepsNoEndlessListOfOptions) {
  start(R"py(
more = {"configOptions": [{"id": "o%d" % i, "options": []} for i in range(100)] +
                         [{"id": "model", "currentValue": "m1", "options": [{"value": "m1"}]}]}
)py");
  Conversation conversation;
  conversation.model = "m1";
  EXPECT_EQ(open(std::move(conversation)).error().code, "model_not_supported");
}

}  // namespace
}  // namespace clawdforge
