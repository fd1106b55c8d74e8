#include "agent/claude/claude_cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

OneShotRequest question() {
  OneShotRequest question;
  question.agent = "claude";
  question.prompt = "hello";
  question.model = "sonnet";
  return question;
}

TEST(ClaudeArguments, AreThoseOfAOneShotWithoutTheOwnersSettings) {
  EXPECT_THAT(claude_arguments(question(), false, ""),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet", "--setting-sources",
                          "", "--strict-mcp-config", "--no-session-persistence"));
  EXPECT_THAT(claude_arguments(question(), true, ""),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet"));
}

TEST(ClaudeArguments, CarryTheSystemPromptAndTheEffort) {
  OneShotRequest asked = question();
  asked.system = "be brief";
  asked.effort = "low";
  EXPECT_THAT(claude_arguments(asked, true, ""),
              ElementsAre("-p", "--output-format", "json", "--model", "sonnet",
                          "--append-system-prompt", "be brief", "--effort", "low"));
  asked.system_mode = SystemMode::replace;
  EXPECT_THAT(claude_arguments(asked, true, ""), Contains("--system-prompt"));
  EXPECT_THAT(claude_arguments(asked, true, "/tmp/s"), Contains("--system-prompt-file"));
  EXPECT_THAT(claude_arguments(asked, true, "/tmp/s"), Contains("/tmp/s"));
  EXPECT_THAT(claude_arguments(asked, true, "/tmp/s"), Not(Contains("be brief")));
}

TEST(ClaudeArguments, NeverHoldThePrompt) {
  EXPECT_THAT(claude_arguments(question(), false, ""), Not(Contains("hello")));
}

TEST(NeedsFile, IsTrueForWhatNoArgumentCanCarry) {
  EXPECT_FALSE(needs_file(""));
  EXPECT_FALSE(needs_file(std::string(kSystemArgumentBytesMax, 'x')));
  EXPECT_TRUE(needs_file(std::string(kSystemArgumentBytesMax + 1, 'x')));
  EXPECT_TRUE(needs_file(std::string_view("a\0b", 3)));
}

TEST(PromptText, IsThePromptItself) { EXPECT_EQ(prompt_text(question()), "hello"); }

TEST(PromptText, IsNoCommand) {
  OneShotRequest asked = question();
  asked.prompt = "/model haiku";
  EXPECT_EQ(prompt_text(asked), "\n/model haiku");
  asked.prompt = " /model haiku";
  EXPECT_EQ(prompt_text(asked), " /model haiku");
}

TEST(PromptText, ListsTheAttachments) {
  OneShotRequest asked = question();
  asked.attachments = {"attachment-1.txt", "attachment-2.png"};
  EXPECT_EQ(
      prompt_text(asked),
      "hello\n\nAttached files in the current directory:\n- attachment-1.txt\n- attachment-2.png");
}

const Environment kOurs = {{"PATH", "/bin"},
                           {"HOME", "/home/x"},
                           {"LC_ALL", "C"},
                           {"https_proxy", "http://p"},
                           {"ANTHROPIC_API_KEY", "sk-ant-12345678"},
                           {"CLAWDFORGE_ADMIN_TOKEN", "secret-admin-token"},
                           {"IS_SANDBOX", "1"},
                           {"AWS_SECRET_ACCESS_KEY", "aws-secret"},
                           {"TMPDIR", "/ours"},
                           {"LD_PRELOAD", "x.so"}};

TEST(PlainEnvironment, HasNoLogin) {
  EXPECT_THAT(plain_environment(kOurs, {}),
              ElementsAre(Pair("HOME", "/home/x"), Pair("LC_ALL", "C"), Pair("PATH", "/bin")));
}

TEST(ClaudeEnvironment, PassesOnWhatIsAllowedOrNamed) {
  const Environment environment = claude_environment(
      kOurs, {"AWS_SECRET_ACCESS_KEY", "CLAWDFORGE_ADMIN_TOKEN", "NOT_SET"}, {}, "/run/tmp");
  EXPECT_THAT(environment, Contains(Pair("ANTHROPIC_API_KEY", "sk-ant-12345678")));
  EXPECT_THAT(environment, Contains(Pair("https_proxy", "http://p")));
  EXPECT_THAT(environment, Contains(Pair("AWS_SECRET_ACCESS_KEY", "aws-secret")));
  EXPECT_THAT(environment, Contains(Pair("TMPDIR", "/run/tmp")));
  EXPECT_THAT(environment, Contains(Pair("CLAUDE_CODE_TMPDIR", "/run/tmp")));
  EXPECT_THAT(environment, Contains(Pair("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")));
  EXPECT_THAT(environment, Contains(Pair("CLAUDE_CODE_MAX_RETRIES", "2")));
  for (const char* name : {"CLAWDFORGE_ADMIN_TOKEN", "IS_SANDBOX", "LD_PRELOAD", "NOT_SET"}) {
    EXPECT_THAT(environment, Not(Contains(Key(name)))) << name;
  }
}

TEST(ClaudeEnvironment, LetsTheOwnerDecide) {
  const Environment environment = claude_environment(kOurs, {},
                                                     {{"CLAUDE_CODE_MAX_RETRIES", "7"},
                                                      {"EXTRA", "yes"},
                                                      {"TMPDIR", "/elsewhere"},
                                                      {"CLAWDFORGE_X", "no"}},
                                                     "/run/tmp");
  EXPECT_THAT(environment, Contains(Pair("CLAUDE_CODE_MAX_RETRIES", "7")));
  EXPECT_THAT(environment, Contains(Pair("EXTRA", "yes")));
  EXPECT_THAT(environment, Contains(Pair("TMPDIR", "/run/tmp")));
  EXPECT_THAT(environment, Not(Contains(Key("CLAWDFORGE_X"))));
}

TEST(SecretsIn, AreTheValuesOfKeysAndTokens) {
  EXPECT_THAT(secrets_in({{"ANTHROPIC_API_KEY", "sk-ant-12345678"},
                          {"CLAUDE_CODE_OAUTH_TOKEN", "oat-12345"},
                          {"X_TOKEN", "short"},
                          {"HOME", "/home/somebody"}}),
              ElementsAre("sk-ant-12345678", "oat-12345"));
}

}  // namespace
}  // namespace clawdforge
