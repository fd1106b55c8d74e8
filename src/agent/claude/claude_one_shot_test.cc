#include "agent/claude/claude_one_shot.h"

#include "agent/core/agent_fixture.h"
#include "agent/core/process_starter.h"
#include "base/async/async_tokens.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr const char* kResult = R"({"type":"result","result":"fine","stop_reason":"end_turn"})";

Task<bool> all_of_it(OneShotAgent* shot, OneShotAnswer* answer) {
  *answer = co_await shot->answer();
  co_await shot->finish();
  co_return true;
}

// With one agent: a shell script.
class ClaudeOneShotTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    AgentProtocols protocols;
    protocols.one_shots[OneShotProtocol::claude_print] = {
        .arguments = claude_one_shot_arguments,
        .make = [](std::unique_ptr<Child> child, AgentSetup setup, const OneShotRequest& asked) {
          return std::make_unique<ClaudeOneShot>(std::move(child), std::move(setup), asked);
        }};
    starter_ = std::make_unique<ProcessStarter>(
        ProcessStarter::Dependencies{catalog_, *spawner_, clock_, metrics_, log_},
        ProcessStarter::Options{.protocols = std::move(protocols),
                                .environment = {{"PATH", "/usr/bin:/bin"}},
                                .start_max = 60s});
  }

  void write_agent(const std::string& script) { write_program("agent", script); }

  AgentSpec spec() const {
    AgentSpec spec;
    spec.name = "claude";
    spec.one_shot_protocol = OneShotProtocol::claude_print;
    spec.one_shot_command = {root_ / "bin" / "agent"};
    return spec;
  }
  static OneShotRequest request() {
    OneShotRequest request;
    request.prompt = "the prompt";
    request.model = "m";
    return request;
  }

  std::unique_ptr<OneShotAgent> start(OneShotRequest request, AgentSpec spec) {
    auto started = starter_->start_one_shot(order_for(std::move(spec)), std::move(request));
    EXPECT_TRUE(started) << started.error().message;
    return std::move(*started);
  }
  std::unique_ptr<OneShotAgent> start(OneShotRequest request) {
    return start(std::move(request), spec());
  }

  OneShotAnswer ask(const std::string& script) {
    write_agent(script);
    return ask(request());
  }
  OneShotAnswer ask(OneShotRequest request) { return ask(std::move(request), spec()); }
  OneShotAnswer ask(OneShotRequest request, AgentSpec spec) {
    const auto shot = start(std::move(request), std::move(spec));
    OneShotAnswer answer;
    run_to_end(io_, all_of_it(shot.get(), &answer));
    return answer;
  }

  std::string said(const char* name) const { return content(name); }

  ManualClock clock_{TimePoint(1759400000s)};
  const AgentCatalog catalog_{{}};
  std::unique_ptr<ProcessStarter> starter_;
};

std::string print(const std::string& line) { return "echo '" + line + "'"; }

TEST_F(ClaudeOneShotTest, GivesTheAnswerAndTheProgramThePrompt) {
  const OneShotAnswer answer = ask(
      "cat > prompt; printf '%s\\n' \"$@\" > arguments; pwd > where; env > env\n" + print(kResult));
  EXPECT_FALSE(answer.failure);
  EXPECT_EQ(answer.text, "fine");
  EXPECT_EQ(answer.stop_reason, "end_turn");
  EXPECT_EQ(said("prompt"), "the prompt");
  EXPECT_EQ(said("where"), (root_ / "work").string() + "\n");
  EXPECT_THAT(said("arguments"), HasSubstr("-p\n--output-format\njson\n--model\nm\n"));
  EXPECT_THAT(said("arguments"), Not(HasSubstr("the prompt")));
  EXPECT_THAT(said("env"), HasSubstr("TMPDIR=" + (root_ / "tmp").string()));
}

TEST_F(ClaudeOneShotTest, AnswersWhileTheProgramStillRuns) {
  const auto begun = std::chrono::steady_clock::now();
  write_agent(print(kResult) + "; exec sleep 600");
  const auto shot = start(request());
  OneShotAnswer answer;
  run_to_end(io_, all_of_it(shot.get(), &answer));
  EXPECT_EQ(answer.text, "fine");
  EXPECT_EQ(answer.exit_code, std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

TEST_F(ClaudeOneShotTest, NeedsNoProgramThatReads) {
  write_agent("exec 0<&-\n" + print(kResult) + "; exec sleep 600");
  OneShotRequest large = request();
  large.prompt.assign(4'000'000, 'x');
  EXPECT_EQ(ask(large).text, "fine");
  write_agent(print(kResult) + "; exec sleep 600");
  EXPECT_EQ(ask(large).text, "fine");
}

TEST_F(ClaudeOneShotTest, ReadsAndWritesAtOnce) {
  write_agent(
      "head -c 3000000 /dev/zero | tr '\\0' x; echo; head -c 1000000 /dev/zero >&2\n"
      "cat | wc -c > count\n" +
      print(kResult));
  OneShotRequest large = request();
  large.prompt.assign(4'000'000, 'x');
  const OneShotAnswer answer = ask(large);
  EXPECT_EQ(answer.text, "fine");
  EXPECT_EQ(said("count"), "4000000\n");
}

TEST_F(ClaudeOneShotTest, TellsHowTheProgramFailed) {
  const OneShotAnswer exited = ask("echo boom token=abcdefgh >&2; exit 3");
  ASSERT_TRUE(exited.failure);
  EXPECT_EQ(exited.failure->code, "agent_exit");
  EXPECT_EQ(exited.failure->message, "claude exit 3");
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_EQ(exited.error_tail, "boom token=***\n");

  const OneShotAnswer killed = ask("kill -9 $$");
  EXPECT_EQ(killed.failure.value().message, "claude signal 9");
  EXPECT_EQ(killed.exit_signal, 9);

  EXPECT_EQ(ask("exit 0").failure.value().code, "agent_silent");
  EXPECT_EQ(ask("echo nonsense").failure.value().code, "agent_nonsense");
  EXPECT_EQ(ask("echo '{\"type\":\"result\",\"resu'").failure.value().code, "agent_nonsense");
}

TEST_F(ClaudeOneShotTest, TellsAFailureWithAllThatWasSaidAboutIt) {
  const OneShotAnswer answer =
      ask(R"(echo '{"type":"result","is_error":true,"result":"Not logged in · Please run /login"}')"
          "\necho late >&2; exit 1");
  EXPECT_EQ(answer.failure.value().code, "agent_not_logged_in");
  EXPECT_EQ(answer.failure->message, "Not logged in · Please run /login");
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.error_tail, "late\n");
}

TEST_F(ClaudeOneShotTest, ReadsALimitByTheClock) {
  EXPECT_EQ(ask("echo '{\"type\":\"result\",\"is_error\":true,"
                "\"result\":\"Claude AI usage limit reached|1759401000\"}'")
                .failure.value()
                .retry_after,
            1000s);
}

TEST_F(ClaudeOneShotTest, TellsThatTheProgramIsNotThere) {
  AgentSpec absent = spec();
  absent.one_shot_command = {"no-such-program-anywhere"};
  const OneShotAnswer answer = ask(request(), std::move(absent));
  EXPECT_EQ(answer.failure.value().code, "agent_missing");
  EXPECT_EQ(answer.failure->kind, Errc::unavailable);
  EXPECT_THAT(answer.failure->message, Not(HasSubstr("/")));
}

TEST_F(ClaudeOneShotTest, MasksTheKeysItPassedOn) {
  write_agent("echo \"key is $ANTHROPIC_API_KEY\" >&2; exit 1");
  AgentSpec with_key = spec();
  with_key.set_env["ANTHROPIC_API_KEY"] = "correct horse battery";
  EXPECT_EQ(ask(request(), std::move(with_key)).error_tail, "key is ***\n");
}

TEST_F(ClaudeOneShotTest, ShowsNoHalfSecretAtTheTailsBegin) {
  write_agent("printf 'pad %8192s' '' | tr ' ' x >&2; printf 'hunter2 end\\n' >&2; exit 1");
  const std::string tail = ask(request()).error_tail;
  EXPECT_THAT(tail, testing::EndsWith("end\n"));
  EXPECT_LE(tail.size(), 8192U);
}

TEST_F(ClaudeOneShotTest, NamesTheFileOfTheSystemPrompt) {
  write_agent(
      "while [ $# -gt 0 ]; do case $1 in --append-system-prompt-file)"
      " cat \"$2\" > system; esac; shift; done\n" +
      print(kResult));
  OneShotRequest asked = request();
  asked.system_file = root_ / "tmp" / "system-prompt.txt";
  std::ofstream(asked.system_file) << "be brief";
  EXPECT_FALSE(ask(asked).failure);
  EXPECT_EQ(said("system"), "be brief");
}

Task<void> stop_when_it_runs(fs::path mark, OneShotAgent* shot) {
  Timer timer(co_await boost::asio::this_coro::executor);
  while (!fs::exists(mark)) {
    timer.expires_after(5ms);
    co_await timer.async_wait(kAwait);
  }
  shot->stop();
}

TEST_F(ClaudeOneShotTest, ReturnsSoonWhenItIsStopped) {
  for (const std::string way :
       {"touch started; exec sleep 600", "trap '' TERM; touch started; while :; do sleep 0.1; done",
        "cat > /dev/null; touch started; exec sleep 600"}) {
    fs::remove(root_ / "work" / "started");
    write_agent(way);
    const auto shot = start(request());
    OneShotAnswer answer;
    TaskGroup group(io_.get_executor());
    group.spawn(stop_when_it_runs(root_ / "work" / "started", shot.get()));
    run_to_end(io_, all_of_it(shot.get(), &answer), 30s);
    EXPECT_TRUE(answer.failure) << way;
    EXPECT_EQ(spawner_->alive(), 0U);
  }
}

TEST_F(ClaudeOneShotTest, EndsAFlood) {
  const OneShotAnswer answer = ask("exec yes");
  EXPECT_EQ(answer.failure.value().code, "agent_output_too_large");
}

TEST_F(ClaudeOneShotTest, KnowsItsProcess) {
  write_agent(print(kResult));
  const auto shot = start(request());
  const ProcessMark mark = shot->mark();
  EXPECT_GT(mark.pid, 0);
  EXPECT_GT(mark.start_time, 0);
  EXPECT_EQ(mark.boot_id.size(), 36U);
  OneShotAnswer answer;
  run_to_end(io_, all_of_it(shot.get(), &answer));
}

TEST_F(ClaudeOneShotTest, CallsTheAgentsOwnCommand) {
  write_agent("printf '%s\\n' \"$@\" > arguments; " + print(kResult));
  AgentSpec demo = spec();
  demo.one_shot_command.emplace_back("demo-agent");
  EXPECT_EQ(ask(request(), demo).text, "fine");
  EXPECT_THAT(said("arguments"), testing::StartsWith("demo-agent\n-p\n"));
  EXPECT_THAT(said("arguments"), HasSubstr("--setting-sources\n"));
  demo.applies_owner_settings = true;
  EXPECT_EQ(ask(request(), demo).text, "fine");
  EXPECT_THAT(said("arguments"), Not(HasSubstr("--setting-sources")));
}

}  // namespace
}  // namespace clawdforge
