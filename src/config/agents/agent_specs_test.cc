#include "config/agents/agent_specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace clawdforge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;

// Finds these in /opt.
ProgramFinder finder(std::set<std::string> names) {
  return [names = std::move(names)](const std::string& name) -> std::optional<std::string> {
    if (!names.contains(name)) return std::nullopt;
    return "/opt/" + name;
  };
}

Config config() {
  Config config;
  config.acpx_bin = "acpx";
  return config;
}

AgentSpec spec_of(const std::vector<AgentSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &AgentSpec::name);
  EXPECT_NE(found, specs.end()) << name;
  return found == specs.end() ? AgentSpec{} : *found;
}

TEST(AgentSpecs, TheBuiltInOnesAreKnownByName) {
  const auto specs = agent_specs(config(), finder({}), "/opt/clawdforge");
  std::vector<std::string> names;
  for (const AgentSpec& spec : specs) names.push_back(spec.name);
  EXPECT_THAT(names, ElementsAre("claude", "codex", "demo", "gemini", "opencode"));
  EXPECT_THAT(spec_of(specs, "gemini").command, ElementsAre("gemini", "--acp"));
  for (const char* name : {"claude", "codex", "gemini", "opencode"}) {
    EXPECT_THAT(spec_of(specs, name).install_hint, HasSubstr("npm install -g"));
    EXPECT_THAT(spec_of(specs, name).login_hint, HasSubstr("not logged in: run `"));
  }
}

TEST(AgentSpecs, WhatIsThereAtTheStartIsAnAbsolutePath) {
  const auto specs = agent_specs(config(), finder({"codex-acp", "opencode", "claude-agent-acp"}),
                                 "/opt/clawdforge");
  EXPECT_THAT(spec_of(specs, "codex").command, ElementsAre("/opt/codex-acp"));
  EXPECT_THAT(spec_of(specs, "opencode").command, ElementsAre("/opt/opencode", "acp"));
  EXPECT_THAT(spec_of(specs, "claude").command, ElementsAre("/opt/claude-agent-acp"));
  EXPECT_THAT(spec_of(specs, "gemini").command, ElementsAre("gemini", "--acp"));
}

TEST(AgentSpecs, ClaudeGoesThroughAcpxOnlyWhereItsAdapterIsAbsent) {
  const AgentSpec both = spec_of(
      agent_specs(config(), finder({"claude-agent-acp", "acpx"}), "/opt/clawdforge"), "claude");
  EXPECT_EQ(both.protocol, AgentProtocol::acp);
  const AgentSpec acpx =
      spec_of(agent_specs(config(), finder({"acpx"}), "/opt/clawdforge"), "claude");
  EXPECT_EQ(acpx.protocol, AgentProtocol::acpx);
  EXPECT_THAT(acpx.command, ElementsAre("claude"));
  EXPECT_EQ(spec_of(agent_specs(config(), finder({}), "/opt/clawdforge"), "claude").protocol,
            AgentProtocol::claude);
}

TEST(AgentSpecs, ClaudeIsSpokenToItselfWhereItsCommandLineIsThere) {
  Config given = config();
  given.claude_bin = "claude";
  given.agents["claude"].env = {"MY_KEY"};
  const auto both = finder({"claude", "claude-agent-acp", "acpx"});
  const AgentSpec spec = spec_of(agent_specs(given, both, "/opt/clawdforge"), "claude");
  EXPECT_EQ(spec.protocol, AgentProtocol::claude);
  EXPECT_THAT(spec.command, ElementsAre("claude"));
  EXPECT_THAT(spec.modes.at(PermissionMode::ask).arguments, Contains(HasSubstr("\"ask\"")));
  ASSERT_TRUE(spec.fallback);
  EXPECT_EQ(spec.fallback->protocol, AgentProtocol::acp);
  EXPECT_THAT(spec.fallback->env, IsSupersetOf({"ANTHROPIC_API_KEY", "MY_KEY"}));
  EXPECT_THAT(spec.fallback->command, ElementsAre("/opt/claude-agent-acp"));
  const AgentSpec lone =
      spec_of(agent_specs(given, finder({"claude"}), "/opt/clawdforge"), "claude");
  EXPECT_FALSE(lone.fallback);
  for (const AgentProtocol chosen :
       {AgentProtocol::acp, AgentProtocol::acpx, AgentProtocol::claude}) {
    given.agents["claude"].protocol = chosen;
    const AgentSpec told = spec_of(agent_specs(given, both, "/opt/clawdforge"), "claude");
    EXPECT_EQ(told.protocol, chosen);
    EXPECT_FALSE(told.fallback);
  }
}

TEST(AgentSpecs, ATableChangesABuiltInAgent) {
  Config given = config();
  given.agents["codex"].command = {"my-codex"};
  given.agents["codex"].env = {"MY_KEY"};
  given.agents["claude"].set_env = {{"API_TIMEOUT_MS", "9"}};
  given.agents["mine"].protocol = AgentProtocol::acpx;
  given.agents["mine"].command = {"kimi"};
  const auto specs = agent_specs(given, finder({"my-codex", "codex-acp"}), "/opt/clawdforge");
  EXPECT_THAT(spec_of(specs, "codex").command, ElementsAre("my-codex"));
  EXPECT_THAT(spec_of(specs, "codex").login_hint, HasSubstr("clawdforge agent login codex"));
  EXPECT_THAT(spec_of(specs, "codex").env, IsSupersetOf({"OPENAI_API_KEY", "MY_KEY"}));
  EXPECT_EQ(spec_of(specs, "claude").protocol, AgentProtocol::claude);
  EXPECT_THAT(spec_of(specs, "claude").set_env, ElementsAre(Pair("API_TIMEOUT_MS", "9")));
  EXPECT_THAT(spec_of(specs, "mine").install_hint, HasSubstr("npm install -g acpx"));
}

TEST(AgentSpecs, TheDemoAgentIsInOurOwnProgram) {
  const AgentSpec demo = spec_of(agent_specs(config(), finder({}), "/opt/claude/forge"), "demo");
  EXPECT_THAT(demo.command, ElementsAre("/opt/claude/forge", "demo-agent", "--acp"));
  EXPECT_THAT(demo.one_shot_command, ElementsAre("/opt/claude/forge", "demo-agent"));
  EXPECT_EQ(demo.one_shot_protocol, OneShotProtocol::claude_print);
  EXPECT_TRUE(demo.takes_system_prompt);
  EXPECT_FALSE(demo.takes_claude_options);
  EXPECT_THAT(demo.env, testing::IsEmpty());
  EXPECT_FALSE(demo.version.empty());
}

TEST(AgentSpecs, ClaudeIsGivenWhatItsProgramsRead) {
  Config given = config();
  given.claude_bin = "/opt/claude";
  given.agents["mine"].command = {"/opt/bin/claude-agent-acp"};
  given.agents["through"].protocol = AgentProtocol::acpx;
  given.agents["through"].command = {"--agent", "/opt/claude-agent-acp --x"};
  const auto specs = agent_specs(given, finder({}), "/opt/clawdforge");
  for (const char* name : {"claude", "mine", "through"}) {
    const AgentSpec spec = spec_of(specs, name);
    EXPECT_THAT(spec.env, IsSupersetOf({"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "https_proxy"}));
    EXPECT_THAT(spec.default_env, Contains(Pair("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")));
    EXPECT_THAT(spec.default_env, Contains(Pair("CLAUDE_CODE_MAX_RETRIES", "2")));
    EXPECT_THAT(spec.temp_dir_env, ElementsAre("CLAUDE_CODE_TMPDIR"));
    EXPECT_TRUE(spec.takes_claude_options);
    EXPECT_FALSE(spec.applies_owner_settings);
  }
  EXPECT_THAT(spec_of(specs, "claude").one_shot_command, ElementsAre("/opt/claude"));
  EXPECT_EQ(spec_of(specs, "mine").one_shot_protocol, OneShotProtocol::none);
  EXPECT_FALSE(spec_of(specs, "codex").takes_claude_options);
  EXPECT_THAT(spec_of(specs, "codex").env, Not(Contains("ANTHROPIC_API_KEY")));
}

std::vector<PermissionMode> modes_of(const AgentSpec& spec) {
  std::vector<PermissionMode> modes;
  for (const auto& [mode, switches] : spec.modes) modes.push_back(mode);
  return modes;
}

TEST(AgentSpecs, TheBuiltInOnesAreHeldToAllModes) {
  const auto specs = agent_specs(config(), finder({}), "/opt/clawdforge");
  for (const AgentSpec& spec : specs) {
    EXPECT_THAT(modes_of(spec), ElementsAre(PermissionMode::deny_all, PermissionMode::approve_reads,
                                            PermissionMode::ask, PermissionMode::approve_all))
        << spec.name;
  }
  EXPECT_EQ(spec_of(specs, "codex").modes.at(PermissionMode::approve_reads).agent_mode,
            "read-only");
  const ModeSwitches gemini = spec_of(specs, "gemini").modes.at(PermissionMode::deny_all);
  EXPECT_THAT(gemini.arguments, ElementsAre("--admin-policy", "{temp_dir}/clawdforge-policy.toml"));
  EXPECT_THAT(gemini.files, Contains(Pair("clawdforge-policy.toml", HasSubstr("deny"))));
  EXPECT_THAT(spec_of(specs, "opencode").modes.at(PermissionMode::ask).env,
              Contains(Pair("OPENCODE_PERMISSION", HasSubstr(R"("bash":"ask")"))));
}

TEST(AgentSpecs, AnUnknownAgentIsHeldOnlyToWhatItsTableSays) {
  Config given = config();
  given.agents["mine"].command = {"kimi"};
  given.agents["told"].command = {"kimi"};
  given.agents["told"].permission_modes.emplace();
  (*given.agents["told"].permission_modes)[PermissionMode::ask] = {};
  given.agents["adapter"].command = {"/opt/claude-agent-acp"};
  for (const char* name : {"codex", "through"}) {
    given.agents[name].protocol = AgentProtocol::acpx;
    given.agents[name].command = {name == std::string("codex") ? "codex" : "claude"};
  }
  const auto specs = agent_specs(given, finder({}), "/opt/clawdforge");
  EXPECT_THAT(modes_of(spec_of(specs, "mine")), ElementsAre(PermissionMode::approve_all));
  EXPECT_THAT(modes_of(spec_of(specs, "told")), ElementsAre(PermissionMode::ask));
  EXPECT_EQ(modes_of(spec_of(specs, "adapter")).size(), 4U);
  EXPECT_THAT(modes_of(spec_of(specs, "codex")), ElementsAre(PermissionMode::approve_all));
  EXPECT_THAT(modes_of(spec_of(specs, "through")),
              ElementsAre(PermissionMode::approve_reads, PermissionMode::approve_all));
}

}  // namespace
}  // namespace clawdforge
