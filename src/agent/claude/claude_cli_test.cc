#include "agent/claude/claude_cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

OneShotRequest request() {
  OneShotRequest request;
  request.prompt = "hello";
  request.model = "sonnet";
  return request;
}

TEST(ClaudeArguments, AreThoseOfAOneShotWithoutTheOwnersSettings) {
  EXPECT_THAT(claude_arguments(request(), false),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet", "--setting-sources",
                          "", "--strict-mcp-config", "--no-session-persistence"));
  EXPECT_THAT(claude_arguments(request(), true),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet"));
}

TEST(ClaudeArguments, CarryTheSystemPromptAndTheEffort) {
  OneShotRequest asked = request();
  asked.system_file = "/tmp/s";
  asked.effort = "low";
  EXPECT_THAT(claude_arguments(asked, true),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet",
                          "--append-system-prompt-file", "/tmp/s", "--effort", "low"));
  asked.system_mode = SystemMode::replace;
  EXPECT_THAT(claude_arguments(asked, true), Contains("--system-prompt-file"));
}

TEST(ClaudeArguments, NeverHoldThePrompt) {
  EXPECT_THAT(claude_arguments(request(), false), Not(Contains("hello")));
}

TEST(PromptText, IsThePromptItself) { EXPECT_EQ(prompt_text(request()), "hello"); }

TEST(PromptText, IsNoCommand) {
  OneShotRequest asked = request();
  asked.prompt = "/model haiku";
  EXPECT_EQ(prompt_text(asked), "\n/model haiku");
  asked.prompt = " /model haiku";
  EXPECT_EQ(prompt_text(asked), " /model haiku");
}

TEST(PromptText, ListsTheAttachments) {
  OneShotRequest asked = request();
  asked.attachments = {"attachment-1.txt", "attachment-2.png"};
  EXPECT_EQ(
      prompt_text(asked),
      "hello\n\nAttached files in the current directory:\n- attachment-1.txt\n- attachment-2.png");
}

}  // namespace
}  // namespace clawdforge
