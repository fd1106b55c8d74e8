#include "agent/acp/acp_agent.h"

#include "agent/acp/acp_fixture.h"
#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

using AcpAgentTest = AcpTest;

TEST_F(AcpAgentTest, HoldsTurnsAndCountsWhatTheyCost) {
  start(R"py(
cost = 0
def prompt(m):
    global cost
    cost += 0.25
    text("a"); text("b")
    update("usage_update", used=1, size=2, cost={"amount": cost, "currency": "USD"})
    reply(m, {"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 4}})
on["session/prompt"] = prompt
)py");
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->agent_session_id, "s1");
  EXPECT_EQ(opened->version, "9.9");
  EXPECT_FALSE(opened->is_loaded);
  EXPECT_FALSE(opened->can_load);
  for (int i = 0; i < 3; ++i) {
    const Turn held = turn();
    ASSERT_TRUE(held.end);
    EXPECT_EQ(held.text, "ab");
    EXPECT_FALSE(held.end->failure);
    EXPECT_EQ(held.end->stop_reason, "end_turn");
    EXPECT_EQ(held.end->usage, (Usage{3, 4, 0, 0}));
    EXPECT_EQ(held.end->cost_usd, 0.25);
    ASSERT_EQ(held.events.size(), 4U);
    EXPECT_THAT(held.events[0].json, HasSubstr(R"("text": "a")"));
    EXPECT_THAT(held.events[3].json, HasSubstr(R"("stopReason": "end_turn")"));
  }
  EXPECT_EQ(count(log(), "\"initialize\""), 1U);
  EXPECT_EQ(count(log(), "\"session/new\""), 1U);
  EXPECT_EQ(count(log(), "authenticate"), 0U);
}

TEST_F(AcpAgentTest, LoadsAConversationWithoutItsHistory) {
  start(R"py(
abilities = {"loadSession": True}
def load(m):
    update("user_message_chunk", content={"type": "text", "text": "old"})
    text("old answer")
    update("usage_update", cost={"amount": 99, "currency": "USD"})
    reply(m, None)
    update("available_commands_update", availableCommands=[])
def prompt(m):
    update("usage_update", cost={"amount": 2.5, "currency": "USD"})
    echo(m)
on.update({"session/load": load, "session/prompt": prompt})
)py");
  Conversation conversation;
  conversation.agent_session_id = "old-1";
  conversation.cost_usd_so_far = 2;
  conversation.mcp_servers = R"([{"name":"tools"}])";
  const auto opened = open(conversation);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->is_loaded);
  EXPECT_TRUE(opened->can_load);
  EXPECT_EQ(opened->agent_session_id, "old-1");
  const Turn held = turn("new");
  EXPECT_EQ(held.text, "echo: new");
  EXPECT_EQ(held.end.value().cost_usd, 0.5);
  for (const AgentEvent& event : held.events) EXPECT_THAT(event.json, Not(HasSubstr("old")));
  EXPECT_THAT(log(), HasSubstr(R"("method":"session/load","params":{"sessionId":"old-1")"));
  EXPECT_THAT(log(), HasSubstr(R"("mcpServers":[{"name":"tools"}])"));
  EXPECT_THAT(log(), HasSubstr(R"("params":{"sessionId":"old-1","prompt")"));
}

TEST_F(AcpAgentTest, CountsFromZeroWhenTheAgentDoes) {
  start(R"py(
abilities = {"loadSession": True}
def prompt(m):
    update("usage_update", cost={"amount": 0.5, "currency": "USD"})
    echo(m)
on.update({"session/load": lambda m: reply(m, {}), "session/prompt": prompt})
)py");
  Conversation conversation;
  conversation.agent_session_id = "old-1";
  conversation.cost_usd_so_far = 2;
  ASSERT_TRUE(open(conversation));
  EXPECT_EQ(turn().end.value().cost_usd, 0.5);
  EXPECT_EQ(turn().end.value().cost_usd, 0.0);
}

TEST_F(AcpAgentTest, ResumesRatherThanLoads) {
  start(R"py(
abilities = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
on["session/resume"] = lambda m: reply(m, {})
)py");
  Conversation conversation;
  conversation.agent_session_id = "old-1";
  const auto opened = open(conversation);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->is_loaded);
  EXPECT_EQ(count(log(), "session/load"), 0U);
}

TEST_F(AcpAgentTest, BeginsAnotherConversationWhenItsOwnIsGone) {
  for (const std::string abilities :
       {R"({"loadSession": True})", R"({"sessionCapabilities": {"resume": {}}})", "{}"}) {
    start("abilities = " + abilities + R"py(
on["session/load"] = on["session/resume"] = lambda m: fault(m, -32002, "Resource not found")
)py");
    Conversation conversation;
    conversation.agent_session_id = "old-1";
    conversation.system = "Be brief.";
    const auto opened = open(conversation);
    ASSERT_TRUE(opened) << abilities;
    EXPECT_FALSE(opened->is_loaded);
    EXPECT_EQ(opened->agent_session_id, "s1");
    EXPECT_EQ(turn().text, "echo: hello");
    EXPECT_THAT(
        log(), HasSubstr(R"([{"type":"text","text":"Be brief."},{"type":"text","text":"hello"}])"));
  }
}

TEST_F(AcpAgentTest, TellsThatTheOwnerIsNotLoggedIn) {
  for (const std::string method : {"initialize", "session/new", "session/resume"}) {
    start(R"py(abilities = {"sessionCapabilities": {"resume": {}}}
on[")py" + method +
          R"py("] = lambda m: fault(m, -32000, "Authentication required")
)py");
    Conversation conversation;
    if (method == "session/resume") conversation.agent_session_id = "old-1";
    const auto opened = open(conversation);
    ASSERT_FALSE(opened) << method;
    EXPECT_EQ(opened.error().kind, Errc::unavailable);
    EXPECT_EQ(opened.error().code, "agent_not_logged_in");
    EXPECT_EQ(opened.error().message, "Log in.");
  }
  start(R"py(on["session/prompt"] = lambda m: fault(m, -32000, "Authentication required"))py");
  ASSERT_TRUE(open());
  const Turn held = turn();
  EXPECT_EQ(held.end.value().failure.value().code, "agent_not_logged_in");
  EXPECT_FALSE(held.death);
}

TEST_F(AcpAgentTest, TellsHowItsProcessEndedInEachStep) {
  Conversation conversation;
  conversation.agent_session_id = "old-1";
  conversation.model = "m2";
  const std::string able = R"py(
abilities = {"loadSession": True}
more = {"configOptions": [{"id": "model", "category": "model", "currentValue": "m1"}]}
on["session/load"] = lambda m: reply(m, more)
)py";
  for (const std::string method : {"initialize", "session/load", "session/set_config_option"}) {
    start(able + "on['" + method + "'] = lambda m: sys.exit(7)\n");
    const auto opened = open(conversation);
    ASSERT_FALSE(opened) << method;
    EXPECT_EQ(opened.error().kind, Errc::agent_failed);
    EXPECT_EQ(opened.error().code, "agent_exited");
    EXPECT_EQ(opened.error().message, "scripted exited with code 7.");
  }
  start("on['session/new'] = lambda m: os.kill(os.getpid(), signal.SIGKILL)\n");
  EXPECT_EQ(open().error().message, "scripted was ended by signal 9.");

  start("on['session/prompt'] = lambda m: (text('half'), sys.exit(3))\n");
  ASSERT_TRUE(open());
  const Turn held = turn();
  EXPECT_EQ(held.text, "half");
  EXPECT_FALSE(held.end);
  EXPECT_EQ(held.death.value().message, "scripted exited with code 3.");
  EXPECT_EQ(next().death.value().code, "agent_exited");
}

TEST_F(AcpAgentTest, TakesALastLineWithoutItsEnd) {
  start(R"py(
def prompt(m):
    sys.stdout.write(json.dumps({"id": m["id"], "result": {"stopReason": "end_turn"}}))
    sys.stdout.flush()
    sys.exit(0)
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  EXPECT_EQ(turn().end.value().stop_reason, "end_turn");
  EXPECT_TRUE(next().death);
}

TEST_F(AcpAgentTest, WaitsForNoStepLongerThanItsDeadline) {
  for (const std::string method :
       {"initialize", "session/new", "session/load", "session/set_config_option"}) {
    AgentSetup setup;
    setup.start_max = 1s;
    start(R"py(abilities = {"loadSession": True}
more = {"configOptions": [{"id": "model", "category": "model", "currentValue": "m1"}]}
on["session/load"] = lambda m: reply(m, more)
on[")py" + method +
              R"py("] = lambda m: None
)py",
          setup);
    Conversation conversation;
    conversation.model = "m2";
    if (method == "session/load") conversation.agent_session_id = "old-1";
    const auto begun = std::chrono::steady_clock::now();
    const auto opened = open(conversation);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 1s);
    ASSERT_FALSE(opened) << method;
    EXPECT_EQ(opened.error().kind, Errc::timed_out) << method;
    EXPECT_EQ(opened.error().code, "agent_start_timeout");
    EXPECT_THAT(log(), HasSubstr(method));
  }
}

TEST_F(AcpAgentTest, GivesEachStepItsOwnTime) {
  AgentSetup setup;
  setup.start_max = 3s;
  // Together longer than the deadline of one.
  start(R"py(
slow = lambda f: lambda m: (time.sleep(1.2), f(m))
on = {k: slow(f) for k, f in on.items()}
more = {"configOptions": [{"id": "model", "currentValue": "m1"}]}
on["session/set_config_option"] = slow(lambda m: reply(m, {}))
)py",
        setup);
  Conversation conversation;
  conversation.model = "m2";
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(open(conversation));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, setup.start_max);
}

TEST_F(AcpAgentTest, TellsThatItsProgramIsNotThere) {
  start_program({"no-such-agent-anywhere"});
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Errc::unavailable);
  EXPECT_EQ(opened.error().code, "agent_not_found");
  EXPECT_THAT(opened.error().message, testing::StartsWith("Install it. If it is installed, "));
}

TEST_F(AcpAgentTest, SkipsAndCountsWhatIsNoMessage) {
  start(R"py(
def prompt(m):
    for line in ["warning", "", "[]", "{", '{"id":77,"result":{}}', '{"id":1,"result":{}}']: say(line)
    say(' \r')
    echo(m)
on["session/prompt"] = prompt
say("starting up {}")
)py");
  ASSERT_TRUE(open());
  const Turn held = turn();
  EXPECT_EQ(held.text, "echo: hello");
  EXPECT_EQ(held.events.size(), 2U);
  EXPECT_EQ(held.skipped_lines, 6U);
}

TEST_F(AcpAgentTest, PassesOnWhatItDoesNotKnow) {
  start(R"py(
def prompt(m):
    update("something_new", x=1)
    say({"jsonrpc": "2.0", "method": "_vendor/note", "params": [1]})
    say({"method": "session/update",
         "params": {"sessionUpdate": "agent_message_chunk", "content": {"text": "flat"}}})
    reply(m, {"stopReason": "a_new_reason", "more": {}})
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  const Turn held = turn();
  ASSERT_EQ(held.events.size(), 4U);
  EXPECT_THAT(held.events[0].json, HasSubstr("something_new"));
  EXPECT_THAT(held.events[1].json, HasSubstr("_vendor/note"));
  EXPECT_EQ(held.text, "flat");
  EXPECT_EQ(held.end.value().stop_reason, "a_new_reason");
}

TEST_F(AcpAgentTest, RefusesRequestsItDoesNotKnowAlsoWhileItOpens) {
  start(R"py(
def early(m):
    answer = ask("a\"1", "terminal/create", command="x")
    assert answer["error"]["code"] == -32601 and answer["id"] == "a\"1", answer
    assert permission(2, toolCallId="t")["result"]["outcome"] == {"outcome": "cancelled"}
    reply(m, {"sessionId": "s1"})
def prompt(m):
    for method in ["fs/read_text_file", "elicitation/create", "session/something"]:
        answer = ask(0, method, path="/etc/passwd")
        assert answer["error"]["code"] == -32601 and answer["id"] == 0, answer
    echo(m)
on.update({"session/new": early, "session/prompt": prompt})
)py");
  ASSERT_TRUE(open()) << agent_->error_tail();
  const Turn held = turn();
  EXPECT_EQ(held.events.size(), 2U) << agent_->error_tail();
  EXPECT_EQ(held.text, "echo: hello");
}

TEST_F(AcpAgentTest, AnswersAQuestionOnceAndKnowsItsKind) {
  start(R"py(
def prompt(m):
    update("tool_call", toolCallId="t1", title="Terminal", kind="execute")
    text(json.dumps(permission("q", toolCallId="t1", title="touch x")["result"]))
    text(json.dumps(permission(0, toolCallId="t2", title="look", kind="read")["result"]))
    reply(m, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  agent_->begin_turn("go");
  std::vector<PermissionRequest> questions;
  std::string text;
  bool is_over = false;
  while (!is_over) {
    const AgentNews news = next();
    ASSERT_FALSE(news.death) << agent_->error_tail();
    for (const AgentEvent& event : news.events) {
      text += event.text;
      is_over = is_over || event.end;
      if (!event.question) continue;
      questions.push_back(*event.question);
      agent_->answer(event.question->ask_id, questions.size() == 1 ? "yes" : "no");
      agent_->answer(event.question->ask_id, "again");
      agent_->answer("unknown", "yes");
    }
  }
  ASSERT_EQ(questions.size(), 2U);
  EXPECT_EQ(questions[0].kind, "execute");
  EXPECT_EQ(questions[0].title, "touch x");
  EXPECT_EQ(questions[0].options.size(), 2U);
  EXPECT_EQ(questions[1].kind, "read");
  EXPECT_EQ(text, R"({"outcome": {"outcome": "selected", "optionId": "yes"}})"
                  R"({"outcome": {"outcome": "selected", "optionId": "no"}})");
  EXPECT_EQ(count(log(), "again"), 0U);
}

TEST_F(AcpAgentTest, CancelsOnceAndWithItEveryQuestion) {
  start(R"py(
def prompt(m):
    if m["params"]["prompt"][-1]["text"] == "plain": return echo(m)
    say({"jsonrpc": "2.0", "id": "open", "method": "session/request_permission", "params": {}})
    assert wait_for_line()["method"] == "session/cancel"
    answer = wait_for_line()
    assert answer["id"] == "open" and answer["result"]["outcome"]["outcome"] == "cancelled"
    answer = permission("late", toolCallId="t")
    assert answer["id"] == "late" and answer["result"]["outcome"]["outcome"] == "cancelled"
    reply(m, {"stopReason": "cancelled"})
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  agent_->cancel();  // of nothing
  agent_->begin_turn("go");
  ASSERT_TRUE(next().events.at(0).question);
  agent_->cancel();
  agent_->cancel();
  agent_->answer("\"open\"", "yes");
  const Turn held = rest_of_turn();
  ASSERT_TRUE(held.end) << agent_->error_tail();
  EXPECT_EQ(held.end->stop_reason, "cancelled");
  EXPECT_TRUE(held.events.at(0).question);
  EXPECT_EQ(count(log(), "session/cancel"), 1U);
  EXPECT_EQ(turn("plain").text, "echo: plain");
}

TEST_F(AcpAgentTest, TakesTheErrorOfACancelledTurnForItsEnd) {
  start(R"py(
def prompt(m):
    text("begun")
    wait_for_line()
    fault(m, -32800, "Request cancelled")
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  agent_->begin_turn("go");
  next();
  agent_->cancel();
  const Turn held = rest_of_turn();
  EXPECT_EQ(held.end.value().stop_reason, "cancelled");
  EXPECT_FALSE(held.end->failure);
}

TEST_F(AcpAgentTest, GivesWhatIsSaidAfterTheTurn) {
  start(R"py(
def prompt(m):
    echo(m)
    update("session_info_update", title="late")
    time.sleep(0.05)
    text("later")
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  Turn held = turn();
  std::string after;
  while (!after.contains("later")) {
    const AgentNews news = next();
    ASSERT_FALSE(news.death);
    for (const AgentEvent& event : news.events) {
      EXPECT_FALSE(event.end);
      after += event.json;
    }
  }
  EXPECT_EQ(turn("second").text.substr(0, 12), "echo: second");
}

TEST_F(AcpAgentTest, TellsAFailedTurnFromADeadAgent) {
  start(R"py(
def prompt(m):
    words = m["params"]["prompt"][-1]["text"]
    if words == "limit": fault(m, -32603, "Internal error: Too many", {"errorKind": "rate_limit"})
    elif words == "odd": reply(m, {})
    else: echo(m)
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  const Turn limited = turn("limit");
  EXPECT_EQ(limited.end.value().failure.value().code, "account_limit");
  EXPECT_EQ(limited.end->failure->kind, Errc::over_quota);
  EXPECT_EQ(limited.end->failure->message, "Too many");
  EXPECT_EQ(limited.events.size(), 1U);
  EXPECT_EQ(turn("odd").end.value().failure.value().code, "agent_nonsense");
  EXPECT_EQ(turn("fine").text, "echo: fine");
}

TEST_F(AcpAgentTest, EndsAnAgentWhoseLinesNeverEnd) {
  start(R"py(
def prompt(m):
    sys.stdout.write("x" * (33 << 20))
    sys.stdout.flush()
    time.sleep(600)
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  const Turn held = turn();
  EXPECT_EQ(held.death.value().code, "agent_line_too_long");
  EXPECT_EQ(held.death->kind, Errc::agent_failed);
}

TEST_F(AcpAgentTest, TakesALongLine) {
  start(R"py(
def prompt(m):
    text("x" * (8 << 20))
    reply(m, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  EXPECT_EQ(turn().text.size(), std::size_t{8} << 20);
}

TEST_F(AcpAgentTest, EndsAnAgentThatDoesNotRead) {
  start("on['session/new'] = lambda m: (reply(m, {'sessionId': 's1'}), time.sleep(600))\n");
  ASSERT_TRUE(open());
  agent_->begin_turn(std::string(kAgentOutboxBytesMax / 2, 'x'));
  EXPECT_GT(static_cast<std::size_t>(gauges_.outbox_bytes->value()), kAgentOutboxBytesMax / 2);
  agent_->begin_turn(std::string(kAgentOutboxBytesMax / 2, 'x'));
  EXPECT_EQ(rest_of_turn().death.value().code, "agent_not_reading");
  end_agent();
  EXPECT_EQ(gauges_.outbox_bytes->value(), 0);
}

// Its id would be kept while the question is open, and be sent back.
TEST_F(AcpAgentTest, EndsAnAgentThatAsksWithAnEndlessId) {
  start("on['session/prompt'] = lambda m: permission('i' * 2000)\n");
  ASSERT_TRUE(open());
  const Turn held = turn();
  ASSERT_TRUE(held.death);
  EXPECT_EQ(held.death->code, "agent_nonsense");
  EXPECT_TRUE(held.events.empty());
}

TEST_F(AcpAgentTest, CleansAStopReason) {
  start("on['session/prompt'] = lambda m: reply(m, {'stopReason': 'end\\0_turn'})\n");
  ASSERT_TRUE(open());
  EXPECT_EQ(turn().end.value().stop_reason, "end_turn");
}

TEST_F(AcpAgentTest, AnswersAQuestionTooManyAsCancelled) {
  start(R"py(
def prompt(m):
    for i in range(257):
        say({"jsonrpc": "2.0", "id": "q%d" % i, "method": "session/request_permission",
             "params": {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": []}})
    answer = wait_for_line()
    text(json.dumps([answer["id"], answer["result"]]))
    reply(m, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
)py");
  ASSERT_TRUE(open());
  const Turn held = turn();
  EXPECT_EQ(held.text, R"(["q256", {"outcome": {"outcome": "cancelled"}}])");
  const auto is_open = [](const AgentEvent& event) {
    return event.question && !event.question->is_answered;
  };
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(held.events, is_open)),
            kAgentQuestionsMax);
}

Task<void> stop_later(AcpAgent* agent, std::filesystem::path mark) {
  Timer timer(co_await boost::asio::this_coro::executor);
  while (!std::filesystem::exists(mark)) {
    timer.expires_after(5ms);
    co_await timer.async_wait(kAwait);
  }
  agent->stop();
}

TEST_F(AcpAgentTest, ReturnsSoonWhenItIsStopped) {
  for (const std::string behaviour : {"open('mark', 'w')\nwhile True: time.sleep(600)",
                                      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('mark', "
                                      "'w')\nwhile True: time.sleep(600)",
                                      "on['session/prompt'] = lambda m: open('mark', 'w')\n",
                                      // A flood, which must leave the thread to others.
                                      "on['session/prompt'] = lambda m: [open('mark', 'w') and "
                                      "say('x' * 10000) for i in range(1 << 30)]\n"}) {
    std::filesystem::remove(root_ / "work" / "mark");
    start(behaviour);
    TaskGroup group(io_.get_executor());
    group.spawn(stop_later(agent_.get(), root_ / "work" / "mark"));
    if (const auto opened = open()) {
      EXPECT_EQ(turn().death.value().code, "agent_exited");
    } else {
      EXPECT_EQ(opened.error().code, "agent_exited");
      EXPECT_EQ(opened.error().message, "scripted was ended.");
    }
    end_agent();
    EXPECT_EQ(group.size(), 0U);
    EXPECT_EQ(spawner_->alive(), 0U);
  }
}

Task<void> hear(AcpAgent* agent, std::optional<AgentNews>* news) { *news = co_await agent->next(); }

TEST_F(AcpAgentTest, EndsPolitelyAlsoWhileAReaderWaits) {
  start(R"py(
import atexit
atexit.register(lambda: open("bye", "w"))
)py");
  ASSERT_TRUE(open());
  std::optional<AgentNews> news;
  TaskGroup group(io_.get_executor());
  group.spawn(hear(agent_.get(), &news));
  io_.restart();
  io_.poll();
  end_agent();
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->death);
  EXPECT_TRUE(std::filesystem::exists(root_ / "work" / "bye"));
  EXPECT_EQ(spawner_->alive(), 0U);
}

TEST_F(AcpAgentTest, EndsFirmlyWhoDoesNotLeave) {
  start("on['session/prompt'] = lambda m: (echo(m), time.sleep(600))\n");
  ASSERT_TRUE(open());
  turn();
  end_agent();
  EXPECT_EQ(spawner_->alive(), 0U);
  start();  // never opened
  end_agent();
  EXPECT_EQ(spawner_->alive(), 0U);
}

TEST_F(AcpAgentTest, ShowsWhatItComplainedAboutButNoSecrets) {
  AgentSetup setup;
  setup.secrets = {"correct horse"};
  start("sys.stderr.write('the correct horse\\n')\nsys.exit(1)\n", setup);
  EXPECT_FALSE(open());
  EXPECT_EQ(agent_->error_tail(), "the ***\n");
}

}  // namespace
}  // namespace clawdforge
