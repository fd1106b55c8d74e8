#include "agent/acpx/acpx_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

AcpxCall call(PermissionMode mode = PermissionMode::deny_all, std::string model = "") {
  AcpxCall call{.program = "/bin/acpx", .agent = {"claude"}, .conversation = {}};
  call.conversation.name = "id";
  call.conversation.working_dir = "/work";
  call.conversation.permission_mode = mode;
  call.conversation.model = std::move(model);
  return call;
}

TEST(AcpxCommand, OptionsStandBeforeTheAgentAndTheVerbBehindIt) {
  EXPECT_THAT(acpx_new(call(), "").argv,
              ElementsAre("/bin/acpx", "--format", "json", "--json-strict", "--cwd", "/work",
                          "--no-fs", "--no-terminal", "--ttl", "0", "--deny-all", "claude",
                          "sessions", "new", "--name", "id"));
  EXPECT_THAT(acpx_cancel(call()).argv, Contains("cancel"));
  EXPECT_THAT(acpx_close(call()).argv, Contains("close"));
}

TEST(AcpxCommand, EachModeHasItsFlags) {
  EXPECT_THAT(acpx_new(call(PermissionMode::approve_all), "").argv, Contains("--approve-all"));
  EXPECT_THAT(acpx_new(call(PermissionMode::approve_reads), "").argv, Contains("--approve-reads"));
  EXPECT_THAT(acpx_new(call(PermissionMode::ask), "").argv, Contains("--deny-all"));
}

TEST(AcpxCommand, TheModelGoesByOptionAndByEnvironment) {
  const HostOrder made = acpx_new(call(PermissionMode::ask, "m2"), "");
  EXPECT_THAT(made.argv, Contains("--model"));
  EXPECT_THAT(made.environment, ElementsAre("ANTHROPIC_MODEL=m2"));
  EXPECT_THAT(acpx_ensure(call(PermissionMode::ask, "m2"), "").argv, Not(Contains("--model")));
  EXPECT_THAT(acpx_new(call(), "").environment, IsEmpty());
}

TEST(AcpxCommand, APromptIsBlocksOnStandardInputAndNeverAnArgument) {
  const HostOrder order = acpx_prompt(call(), "", {"be \"nice\"", "--help\n"});
  EXPECT_EQ(order.input,
            R"([{"type":"text","text":"be \"nice\""},{"type":"text","text":"--help\n"}])");
  EXPECT_THAT(order.argv, Contains("-f"));
  EXPECT_THAT(order.argv, Not(Contains(testing::HasSubstr("nice"))));
}

TEST(AcpxCommand, ServersGoThroughAFile) {
  AcpxCall with = call();
  with.conversation.mcp_servers = R"([{"name":"x"}])";
  const HostOrder order = acpx_prompt(with, "/tmp/mcp.json", {"hi"});
  EXPECT_EQ(order.file, "/tmp/mcp.json");
  EXPECT_EQ(order.file_content, R"({"mcpServers":[{"name":"x"}]})");
  EXPECT_THAT(order.argv, Contains("/tmp/mcp.json"));
  EXPECT_TRUE(acpx_cancel(with).file.empty());
}

}  // namespace
}  // namespace clawdforge
