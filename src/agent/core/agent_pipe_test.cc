#include "agent/core/agent_pipe.h"

#include "agent/core/agent_fixture.h"

namespace clawdforge {
namespace {

class AgentPipeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    setup_.spec.name = "scripted";
    setup_.start_max = std::chrono::hours(1);
  }

  // What ends the conversation with a program that is sent two messages.
  Failure end_of(const std::string& script) {
    auto child = spawner_->spawn({.argv = {"/bin/sh", "-c", script},
                                  .environment = {{"PATH", "/usr/bin:/bin"}},
                                  .working_dir = root_ / "work"});
    if (!child) return child.error();
    AgentPipe pipe(std::move(*child), setup_);
    return run_to_end(io_, talk(&pipe));
  }
  static Task<Failure> talk(AgentPipe* pipe) {
    pipe->begin_opening();
    pipe->send("one\n");
    std::string heard;
    while (const auto piece = co_await pipe->read()) {
      heard += *piece;
      if (heard.ends_with("deaf\n")) pipe->send("two\n");
    }
    Failure why = co_await pipe->cause_of_end();
    co_await pipe->wind_down();
    co_return why;
  }

  AgentSetup setup_;
};

TEST_F(AgentPipeTest, EndsAnAgentThatHasClosedItsInputAndLives) {
  const Failure why = end_of("read line; exec <&-; echo deaf; exec sleep 1000");
  EXPECT_EQ(why.code, "agent_not_reading");
  EXPECT_EQ(why.message, "scripted has closed its standard input.");
}

TEST_F(AgentPipeTest, HearsHowAnAgentEndsThatHasClosedItsInput) {
  const Failure why = end_of("read line; exec <&-; echo deaf; sleep 0.2; echo last; exit 7");
  EXPECT_EQ(why.code, "agent_exited");
}

}  // namespace
}  // namespace clawdforge
