#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<Config> load_tables(std::string_view toml) {
  ConfigSources sources;
  sources.environment["HOME"] = "/home/cf";
  sources.working_dir = "/srv/dir";
  return load_config_with_file_text(std::move(sources), toml);
}

std::string refused_table(std::string_view toml) {
  const auto config = load_tables(toml);
  return config ? "(taken)" : config.error().message;
}

constexpr std::string_view kPolicies = R"(
[defaults]
agents = ["claude", "demo"]
models = ["sonnet", "haiku*"]
permission_mode_max = "ask"
mcp = "http"
mcp_urls = ["https://Tools.example:443/mcp"]

[agents.claude]
permission_mode_max = "approve_reads"
models = ["sonnet"]
mcp = "none"

[mcp_servers.files]
command = ["mcp-files", "--root", "/srv"]
env = ["FILES_KEY"]
set_env = { FILES_TOKEN = "hunter2", MODE = "read" }

[mcp_servers.web]
url = "https://tools.example/mcp"
type = "sse"
headers = { X-Any = "hunter2" }
headers_env = { Authorization = "WEB_TOKEN" }
)";

TEST(ConfigPolicies, AreRead) {
  const auto config = load_tables(kPolicies);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->defaults.agents, (std::vector<std::string>{"claude", "demo"}));
  EXPECT_EQ(config->defaults.permission_mode_max, PermissionMode::ask);
  EXPECT_EQ(config->defaults.mcp, McpAccess::http);
  EXPECT_EQ(config->defaults.mcp_urls->front().text(), "https://tools.example/mcp");
  const Policy& claude = config->agents.at("claude").policy;
  EXPECT_EQ(claude.models, std::vector<std::string>{"sonnet"});
  EXPECT_EQ(claude.mcp, McpAccess::none);
  const McpServerTable& files = config->mcp_servers.at("files");
  EXPECT_EQ(files.command.size(), 3U);
  EXPECT_EQ(files.env, std::vector<std::string>{"FILES_KEY"});
  EXPECT_EQ(files.set_env.at("MODE"), "read");
  const McpServerTable& web = config->mcp_servers.at("web");
  EXPECT_EQ(web.type, "sse");
  EXPECT_EQ(web.headers_env.at("Authorization"), "WEB_TOKEN");
}

TEST(ConfigPolicies, AreRefusedWithKeyAndLine) {
  EXPECT_EQ(refused_table("[defaults]\nagent = [\"a\"]"),
            "\"defaults.agent\" in the file, line 2, is not a known key; did you mean "
            "defaults.agents?");
  EXPECT_EQ(refused_table("[defaults]\nmcp = \"all\""),
            "defaults.mcp in the file, line 2, is wrong: it must be none, named, http or any.");
  EXPECT_THAT(refused_table("[defaults]\nmodels = \"a\""), HasSubstr("it must be a list of 1 to"));
  EXPECT_THAT(refused_table("[defaults]\nmodels = [\"a*b\"]"), HasSubstr("defaults.models"));
  EXPECT_THAT(refused_table("[defaults]\nmcp_urls = [\"https://u@h/\"]"), HasSubstr("user"));
  EXPECT_THAT(refused_table("defaults = 1"), HasSubstr("[defaults]"));
  EXPECT_THAT(refused_table("[agents.claude]\nagents = [\"a\"]"), HasSubstr("not a known key"));
  EXPECT_THAT(refused_table("[agents.claude]\npermission_mode_max = 1"), HasSubstr("line 2"));
}

TEST(ConfigMcpServers, AreRefusedWithoutShowingAValue) {
  for (const char* toml :
       {"[mcp_servers.x]", "[mcp_servers.x]\ncommand = [\"a\"]\nurl = \"https://h/\"",
        "[mcp_servers.x]\ncommand = []", "[mcp_servers.x]\ncommand = \"a\"",
        "[mcp_servers.x]\nurl = \"ftp://h/\"", "[mcp_servers.x]\nurl = 1",
        "[mcp_servers.x]\nurl = \"https://h/\"\ntype = \"stdio\"",
        "[mcp_servers.x]\nurl = \"https://h/\"\nheaders = { \"A B\" = \"hunter2\" }",
        "[mcp_servers.x]\nurl = \"https://h/\"\nheaders = { A = \"hunter2\\n\" }",
        "[mcp_servers.x]\nurl = \"https://h/\"\nheaders_env = { A = \"1 hunter2\" }",
        "[mcp_servers.x]\ncommand = [\"a\"]\nset_env = { \"A-B\" = \"hunter2\" }",
        "[mcp_servers.x]\ncomand = [\"a\"]", "[mcp_servers.\"a b\"]\ncommand = [\"a\"]",
        "mcp_servers = 1", "mcp_servers.x = 1"}) {
    EXPECT_THAT(refused_table(toml), Not(HasSubstr("(taken)"))) << toml;
    EXPECT_THAT(refused_table(toml), HasSubstr("in the file, line ")) << toml;
    EXPECT_THAT(refused_table(toml), Not(HasSubstr("hunter2"))) << toml;
  }
}

TEST(ConfigPolicies, AreShownAsAFileThatMeansTheSameWithSecretsMasked) {
  const auto first = load_tables(kPolicies);
  const std::string text = render_config(*first);
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  const auto second = load_tables(text);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->defaults, first->defaults);
  EXPECT_EQ(second->agents.at("claude").policy, first->agents.at("claude").policy);
  EXPECT_EQ(second->mcp_servers.at("web").url, first->mcp_servers.at("web").url);
  EXPECT_EQ(second->mcp_servers.at("web").headers_env, first->mcp_servers.at("web").headers_env);
}

}  // namespace
}  // namespace clawdforge
