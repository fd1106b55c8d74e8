#include "agent/claude/cli_failure.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace clawdforge {
namespace {

AgentSpec spec_of(const std::string& name) {
  AgentSpec spec;
  spec.name = name;
  spec.install_hint = "Install it.";
  return spec;
}

TEST(CliFailure, TellsSilentEndsApart) {
  const auto told = [](ExitStatus status, bool has_output = false) {
    return failure_of(spec_of("claude"), SilentEnd{.status = status,
                                                   .has_output = has_output,
                                                   .is_too_large = false,
                                                   .error_tail = "boom"});
  };
  EXPECT_EQ(told(Exited{1}).code, "agent_exit");
  EXPECT_EQ(told(Exited{1}).message, "claude exit 1");
  EXPECT_EQ(told(Exited{0}, true).code, "agent_nonsense");
  EXPECT_EQ(told(Exited{0}, true).message, "claude exit 0");
  EXPECT_EQ(told(Exited{0}).code, "agent_silent");
  EXPECT_EQ(told(Signaled{9}).code, "agent_signal");
  EXPECT_EQ(told(Signaled{9}).message, "claude signal 9");
  EXPECT_EQ(told(Unknown{}).code, "agent_lost");
  EXPECT_EQ(told(NotStarted{ENOENT}).code, "agent_missing");
  EXPECT_EQ(told(NotStarted{ENOENT}).kind, Errc::unavailable);
  EXPECT_TRUE(told(NotStarted{ENOENT}).message.starts_with("Install it."));
  EXPECT_EQ(told(NotStarted{EIO}).code, "agent_not_started");
  EXPECT_EQ(told(NotStarted{EAGAIN}).code, "no_resources");
  EXPECT_GT(told(NotStarted{EAGAIN}).retry_after.count(), 0);
  EXPECT_EQ(told(Exited{1}).kind, Errc::agent_failed);
}

TEST(CliFailure, TellsAFloodAndAPromptThatIsTooLong) {
  EXPECT_EQ(failure_of(spec_of("demo"), SilentEnd{Signaled{15}, true, true, ""}).code,
            "agent_output_too_large");
  const Failure failure =
      failure_of(spec_of("claude"),
                 SilentEnd{Exited{1}, false, false, "Error: piped stdin input exceeds 10MB."});
  EXPECT_EQ(failure.code, "prompt_too_long");
  EXPECT_EQ(failure.kind, Errc::too_large);
  EXPECT_EQ(failure.message, "claude exit 1");
}

}  // namespace
}  // namespace clawdforge
