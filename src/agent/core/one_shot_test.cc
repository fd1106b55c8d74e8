#include "agent/core/one_shot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agent/core/program_probe.h"
#include "base/async_tokens.h"
#include "base/run_to_end.h"
#include "base/task_group.h"
#include "base/timer.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr const char* kResult = R"({"type":"result","result":"fine","stop_reason":"end_turn"})";

Task<bool> all_of_it(OneShot* shot, OneShotAnswer* answer) {
  *answer = co_await shot->answer();
  co_await shot->finish();
  co_return true;
}

Task<bool> stopping(Spawner* spawner) {
  co_await spawner->stop();
  co_return true;
}

// A house with one agent: a shell script.
class OneShotTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as the daemon does
    std::string pattern = (fs::temp_directory_path() / "one-shot-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directory(root_ / "work");
    fs::create_directory(root_ / "tmp");
    Spawner::Options options;
    options.kill_grace = 200ms;
    auto made = Spawner::make(io_.get_executor(), options, log_);
    ASSERT_TRUE(made) << made.error().message;
    spawner_ = std::move(*made);
  }
  void TearDown() override {
    if (spawner_) {
      run_to_end(io_, stopping(spawner_.get()));
      EXPECT_EQ(spawner_->alive(), 0U);
    }
    spawner_.reset();
    fs::remove_all(root_);
  }

  void write_agent(const std::string& script) {
    const fs::path path = root_ / "agent";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  OneShotRequest question() const {
    OneShotRequest question;
    question.agent = "claude";
    question.prompt = "the prompt";
    question.model = "m";
    question.working_dir = root_ / "work";
    question.temp_dir = root_ / "tmp";
    return question;
  }

  std::unique_ptr<OneShot> start(OneShotRequest question, OneShots::Options options = {}) {
    if (options.claude_bin == "claude") options.claude_bin = root_ / "agent";
    options.environment.insert({"PATH", "/usr/bin:/bin"});
    OneShots shots(*spawner_, clock_, std::move(options));
    auto started = shots.start(std::move(question));
    EXPECT_TRUE(started) << started.error().message;
    return std::move(*started);
  }

  OneShotAnswer ask(const std::string& script) {
    write_agent(script);
    return ask(question());
  }
  OneShotAnswer ask(OneShotRequest question, OneShots::Options options = {}) {
    const auto shot = start(std::move(question), std::move(options));
    OneShotAnswer answer;
    run_to_end(io_, all_of_it(shot.get(), &answer));
    return answer;
  }

  std::string said(const char* name) const {
    std::ifstream file(root_ / "work" / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  IoContext io_;
  Log log_{LogLevel::error, LogFormat::text};
  ManualClock clock_{TimePoint(1759400000s)};
  fs::path root_;
  std::unique_ptr<Spawner> spawner_;
};

std::string print(const std::string& line) { return "echo '" + line + "'"; }

TEST_F(OneShotTest, GivesTheAnswerAndTheProgramThePrompt) {
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

TEST_F(OneShotTest, AnswersWhileTheProgramStillRuns) {
  const auto begun = std::chrono::steady_clock::now();
  write_agent(print(kResult) + "; exec sleep 600");
  const auto shot = start(question());
  OneShotAnswer answer;
  run_to_end(io_, all_of_it(shot.get(), &answer));
  EXPECT_EQ(answer.text, "fine");
  EXPECT_EQ(answer.exit_code, std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

TEST_F(OneShotTest, NeedsNoProgramThatReads) {
  write_agent("exec 0<&-\n" + print(kResult) + "; exec sleep 600");
  OneShotRequest large = question();
  large.prompt.assign(4'000'000, 'x');
  EXPECT_EQ(ask(large).text, "fine");
  write_agent(print(kResult) + "; exec sleep 600");
  EXPECT_EQ(ask(large).text, "fine");
}

TEST_F(OneShotTest, ReadsAndWritesAtOnce) {
  write_agent(
      "head -c 3000000 /dev/zero | tr '\\0' x; echo; head -c 1000000 /dev/zero >&2\n"
      "cat | wc -c > count\n" +
      print(kResult));
  OneShotRequest large = question();
  large.prompt.assign(4'000'000, 'x');
  const OneShotAnswer answer = ask(large);
  EXPECT_EQ(answer.text, "fine");
  EXPECT_EQ(said("count"), "4000000\n");
}

TEST_F(OneShotTest, TellsHowTheProgramFailed) {
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

TEST_F(OneShotTest, TellsAFailureWithAllThatWasSaidAboutIt) {
  const OneShotAnswer answer =
      ask(R"(echo '{"type":"result","is_error":true,"result":"Not logged in · Please run /login"}')"
          "\necho late >&2; exit 1");
  EXPECT_EQ(answer.failure.value().code, "agent_not_logged_in");
  EXPECT_EQ(answer.failure->message, "Not logged in · Please run /login");
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.error_tail, "late\n");
}

TEST_F(OneShotTest, ReadsALimitByTheClock) {
  EXPECT_EQ(ask("echo '{\"type\":\"result\",\"is_error\":true,"
                "\"result\":\"Claude AI usage limit reached|1759401000\"}'")
                .failure.value()
                .retry_after,
            1000s);
}

TEST_F(OneShotTest, TellsThatTheProgramIsNotThere) {
  OneShots::Options options;
  options.claude_bin = "no-such-program-anywhere";
  const OneShotAnswer answer = ask(question(), std::move(options));
  EXPECT_EQ(answer.failure.value().code, "agent_missing");
  EXPECT_EQ(answer.failure->kind, Errc::unavailable);
  EXPECT_THAT(answer.failure->message, Not(HasSubstr("/")));
}

TEST_F(OneShotTest, MasksTheKeysItPassedOn) {
  write_agent("echo \"key is $ANTHROPIC_API_KEY\" >&2; exit 1");
  OneShots::Options options;
  options.environment["ANTHROPIC_API_KEY"] = "correct horse battery";
  EXPECT_EQ(ask(question(), std::move(options)).error_tail, "key is ***\n");
}

TEST_F(OneShotTest, ShowsNoHalfSecretAtTheTailsBegin) {
  write_agent("printf 'pad %8192s' '' | tr ' ' x >&2; printf 'hunter2 end\\n' >&2; exit 1");
  const std::string tail = ask(question()).error_tail;
  EXPECT_THAT(tail, testing::EndsWith("end\n"));
  EXPECT_LE(tail.size(), 8192U);
}

TEST_F(OneShotTest, PutsALongSystemPromptIntoAFile) {
  write_agent(
      "while [ $# -gt 0 ]; do case $1 in --append-system-prompt-file)"
      " wc -c < \"$2\" > size; stat -c %a \"$2\" > mode; esac; shift; done\n" +
      print(kResult));
  OneShotRequest asked = question();
  asked.system.assign(70'000, 's');
  EXPECT_FALSE(ask(asked).failure);
  EXPECT_EQ(said("size"), "70000\n");
  EXPECT_EQ(said("mode"), "600\n");
}

TEST_F(OneShotTest, StartsNothingWhenTheSystemPromptCannotBeWritten) {
  write_agent("touch started");
  OneShotRequest asked = question();
  asked.system.assign(70'000, 's');
  asked.temp_dir = root_ / "absent";
  OneShots::Options options;
  options.claude_bin = root_ / "agent";
  OneShots shots(*spawner_, clock_, std::move(options));
  const auto started = shots.start(asked);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, Errc::unavailable);
  EXPECT_EQ(started.error().code, "workspace_unavailable");
  EXPECT_EQ(spawner_->alive(), 0U);
}

Task<void> stop_when_it_runs(fs::path mark, OneShot* shot) {
  Timer timer(co_await boost::asio::this_coro::executor);
  while (!fs::exists(mark)) {
    timer.expires_after(5ms);
    co_await timer.async_wait(kAwait);
  }
  shot->stop();
}

TEST_F(OneShotTest, ReturnsSoonWhenItIsStopped) {
  for (const std::string way :
       {"touch started; exec sleep 600", "trap '' TERM; touch started; while :; do sleep 0.1; done",
        "cat > /dev/null; touch started; exec sleep 600"}) {
    fs::remove(root_ / "work" / "started");
    write_agent(way);
    const auto shot = start(question());
    OneShotAnswer answer;
    TaskGroup group(io_.get_executor());
    group.spawn(stop_when_it_runs(root_ / "work" / "started", shot.get()));
    run_to_end(io_, all_of_it(shot.get(), &answer), 30s);
    EXPECT_TRUE(answer.failure) << way;
    EXPECT_EQ(spawner_->alive(), 0U);
  }
}

TEST_F(OneShotTest, EndsAFlood) {
  const OneShotAnswer answer = ask("exec yes");
  EXPECT_EQ(answer.failure.value().code, "agent_output_too_large");
}

TEST_F(OneShotTest, KnowsItsProcess) {
  write_agent(print(kResult));
  const auto shot = start(question());
  const ProcessMark mark = shot->mark();
  EXPECT_GT(mark.pid, 0);
  EXPECT_GT(mark.start_time, 0);
  EXPECT_EQ(mark.boot_id.size(), 36U);
  OneShotAnswer answer;
  run_to_end(io_, all_of_it(shot.get(), &answer));
}

TEST_F(OneShotTest, CallsTheDemoWithoutTheLogin) {
  write_agent("printf '%s\\n' \"$@\" > arguments; env > env; " + print(kResult));
  OneShotRequest asked = question();
  asked.agent = "demo";
  OneShots::Options options;
  options.demo_program = root_ / "agent";
  options.environment["ANTHROPIC_API_KEY"] = "sk-ant-12345678";
  EXPECT_EQ(ask(asked, std::move(options)).text, "fine");
  EXPECT_THAT(said("arguments"), testing::StartsWith("demo-agent\n-p\n"));
  EXPECT_THAT(said("env"), Not(HasSubstr("ANTHROPIC")));
}

Task<bool> look_once(ProgramProbe* probe) {
  co_await probe->look();
  co_return true;
}

using ProgramProbeTest = OneShotTest;

TEST_F(ProgramProbeTest, FindsTheVersion) {
  write_agent("echo \"$1 \x1b[1m2.1.325\" '(Claude Code)'; echo more");
  ProgramProbe probe(io_.get_executor(), *spawner_, root_ / "agent", {{"PATH", "/usr/bin:/bin"}},
                     root_ / "work");
  EXPECT_FALSE(probe.finding().is_present);
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, "--version [1m2.1.325 (Claude Code)");
}

TEST_F(ProgramProbeTest, NoticesThatTheProgramHasGone) {
  write_agent("echo 1.0");
  ProgramProbe probe(io_.get_executor(), *spawner_, root_ / "agent", {{"PATH", "/usr/bin:/bin"}},
                     root_ / "work");
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  write_agent("echo 1.0; exit 1");
  run_to_end(io_, look_once(&probe));
  EXPECT_FALSE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, "");
  fs::remove(root_ / "agent");
  run_to_end(io_, look_once(&probe));
  EXPECT_FALSE(probe.finding().is_present);
}

TEST_F(ProgramProbeTest, BoundsWhatItReads) {
  write_agent("head -c 1000000 /dev/zero | tr '\\0' v");
  ProgramProbe probe(io_.get_executor(), *spawner_, root_ / "agent", {{"PATH", "/usr/bin:/bin"}},
                     root_ / "work");
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, std::string(kVersionCharactersMax - 1, 'v') + "…");
}

Task<bool> run_it(ProgramProbe* probe) {
  co_await probe->run();
  co_return true;
}

Task<void> stop_probe_when(ProgramProbe* probe, fs::path mark) {
  Timer timer(co_await boost::asio::this_coro::executor);
  while (!fs::exists(mark)) {
    timer.expires_after(5ms);
    co_await timer.async_wait(kAwait);
  }
  probe->stop();
}

TEST_F(ProgramProbeTest, StopsWhileItLooksAndBetween) {
  for (const std::string script : {"touch looked; exec sleep 600", "touch looked; echo 1"}) {
    fs::remove(root_ / "work" / "looked");
    write_agent(script);
    ProgramProbe probe(io_.get_executor(), *spawner_, root_ / "agent", {{"PATH", "/usr/bin:/bin"}},
                       root_ / "work");
    TaskGroup group(io_.get_executor());
    group.spawn(stop_probe_when(&probe, root_ / "work" / "looked"));
    run_to_end(io_, run_it(&probe), 30s);
    EXPECT_EQ(spawner_->alive(), 0U);
  }
}

}  // namespace
}  // namespace clawdforge
