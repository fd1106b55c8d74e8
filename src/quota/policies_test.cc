#include "quota/policies.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

Policies some_policies() {
  Policies::ByAgent by_agent;
  by_agent["narrow"].models = {"small"};
  by_agent["narrow"].mcp = McpAccess::named;
  McpServers servers;
  servers["files"].command = "mcp-files";
  servers["files"].args = {"--root"};
  servers["files"].env = {{"KEY", "secret"}};
  servers["web"].url = "https://a.example/mcp";
  servers["web"].headers = {{"Authorization", "Bearer x"}};
  return Policies({}, std::move(by_agent), std::move(servers));
}

App app_with(McpAccess access) {
  App app;
  app.name = AppName("app");
  app.policy.mcp = access;
  app.policy.mcp_urls = std::vector{*WebAddress::parse("https://a.example/mcp")};
  return app;
}

bool lets(const App& app, std::string_view agent, std::string_view servers) {
  const Policies policies = some_policies();
  return policies.check_mcp_servers(policies.of(app, agent), servers).has_value();
}

constexpr std::string_view kCommand = R"([{"name":"n","command":"sh","args":[],"env":[]}])";
constexpr std::string_view kAddress =
    R"([{"name":"n","type":"http","url":"https://a.example/mcp/x","headers":[]}])";

TEST(Policies, CommandLinesNeedAny) {
  for (const auto access : {McpAccess::none, McpAccess::named, McpAccess::http}) {
    EXPECT_FALSE(lets(app_with(access), "fake", kCommand));
  }
  EXPECT_TRUE(lets(app_with(McpAccess::any), "fake", kCommand));
  EXPECT_FALSE(lets(app_with(McpAccess::any), "narrow", kCommand));
}

TEST(Policies, AnAddressWithAnythingElseInItCountsAsACommandLine) {
  const App app = app_with(McpAccess::http);
  EXPECT_TRUE(lets(app, "fake", kAddress));
  for (const std::string_view servers :
       {R"([{"name":"n","type":"http","url":"https://a.example/mcp","command":"sh"}])",
        R"([{"name":"n","type":"http","url":"https://a.example/mcp","httpUrl":"http://b/"}])",
        R"([{"name":"n","type":"http","url":"https://b.example/mcp"}])",
        R"([{"name":"n","type":"http","url":7}])", R"([{"name":"n"}])", "[1]", "[null]", "{}", "x",
        R"([["files"]])", R"(["files",{"name":"n","command":"sh"}])"}) {
    EXPECT_FALSE(lets(app, "fake", servers)) << servers;
  }
}

TEST(Policies, NamedServersMustBeThere) {
  EXPECT_TRUE(lets(app_with(McpAccess::named), "fake", R"(["files","web"])"));
  EXPECT_FALSE(lets(app_with(McpAccess::named), "fake", R"(["other"])"));
  EXPECT_FALSE(lets(app_with(McpAccess::none), "fake", R"(["files"])"));
  EXPECT_TRUE(lets(app_with(McpAccess::none), "fake", "[]"));
  EXPECT_TRUE(lets(app_with(McpAccess::none), "fake", ""));
}

TEST(Policies, NamesBecomeTheOwnersServers) {
  EXPECT_EQ(some_policies().resolved(R"(["files","web"])"),
            R"([{"name":"files","command":"mcp-files","args":["--root"],)"
            R"("env":[{"name":"KEY","value":"secret"}]},)"
            R"({"type":"http","name":"web","url":"https://a.example/mcp",)"
            R"("headers":[{"name":"Authorization","value":"Bearer x"}]}])");
  EXPECT_EQ(some_policies().resolved(kCommand), kCommand);
  EXPECT_EQ(some_policies().resolved("[]"), "[]");
  EXPECT_EQ(some_policies().resolved(""), "");
}

TEST(Policies, SecretsOfServersAreKnownButForShortOnes) {
  McpServers servers;
  servers["files"].command = "f";
  servers["files"].env = {{"A", "a-long-value"}, {"B", "short"}};
  servers["web"].headers = {{"C", "Bearer 12345678"}};
  const Policies policies({}, {}, servers);
  EXPECT_EQ(policies.mcp_secrets(R"(["files","web"])"),
            (std::vector<std::string>{"a-long-value", "Bearer 12345678", "12345678"}));
  EXPECT_EQ(
      policies.mcp_secrets(R"([{"name":"own","env":[{"name":"X","value":"its-own-secret"},1]},2])"),
      (std::vector<std::string>{"its-own-secret"}));
  EXPECT_TRUE(policies.mcp_secrets("").empty());
  EXPECT_TRUE(policies.mcp_secrets("nonsense").empty());
}

TEST(Policies, AnAgentsTableNarrows) {
  const App app = app_with(McpAccess::any);
  EXPECT_TRUE(some_policies().check(app, "fake", "large"));
  EXPECT_TRUE(some_policies().check(app, "narrow", "small"));
  EXPECT_EQ(some_policies().check(app, "narrow", "large").error().code, "model_not_allowed");
  EXPECT_EQ(some_policies().check(app, "narrow", "").error().code, "model_not_allowed");
}

}  // namespace
}  // namespace clawdforge
