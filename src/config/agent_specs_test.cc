#include "config/agent_specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace clawdforge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
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
  const auto specs = agent_specs(config(), finder({}));
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
  const auto specs = agent_specs(config(), finder({"codex-acp", "opencode", "claude-agent-acp"}));
  EXPECT_THAT(spec_of(specs, "codex").command, ElementsAre("/opt/codex-acp"));
  EXPECT_THAT(spec_of(specs, "opencode").command, ElementsAre("/opt/opencode", "acp"));
  EXPECT_THAT(spec_of(specs, "claude").command, ElementsAre("/opt/claude-agent-acp"));
  EXPECT_THAT(spec_of(specs, "gemini").command, ElementsAre("gemini", "--acp"));
}

TEST(AgentSpecs, ClaudeGoesThroughAcpxOnlyWhereItsAdapterIsAbsent) {
  const AgentSpec both =
      spec_of(agent_specs(config(), finder({"claude-agent-acp", "acpx"})), "claude");
  EXPECT_EQ(both.protocol, AgentProtocol::acp);
  const AgentSpec acpx = spec_of(agent_specs(config(), finder({"acpx"})), "claude");
  EXPECT_EQ(acpx.protocol, AgentProtocol::acpx);
  EXPECT_THAT(acpx.command, ElementsAre("claude"));
  EXPECT_EQ(spec_of(agent_specs(config(), finder({})), "claude").protocol, AgentProtocol::acp);
}

TEST(AgentSpecs, ATableChangesABuiltInAgent) {
  Config given = config();
  given.agents["codex"].command = {"my-codex"};
  given.agents["codex"].env = {"MY_KEY"};
  given.agents["claude"].set_env = {{"API_TIMEOUT_MS", "9"}};
  given.agents["mine"].protocol = AgentProtocol::acpx;
  given.agents["mine"].command = {"kimi"};
  const auto specs = agent_specs(given, finder({"my-codex", "codex-acp"}));
  EXPECT_THAT(spec_of(specs, "codex").command, ElementsAre("my-codex"));
  EXPECT_THAT(spec_of(specs, "codex").login_hint, HasSubstr("codex login"));
  EXPECT_THAT(spec_of(specs, "codex").env, IsSupersetOf({"OPENAI_API_KEY", "MY_KEY"}));
  EXPECT_THAT(spec_of(specs, "claude").command, ElementsAre("claude-agent-acp"));
  EXPECT_THAT(spec_of(specs, "claude").set_env, ElementsAre(Pair("API_TIMEOUT_MS", "9")));
  EXPECT_THAT(spec_of(specs, "mine").install_hint, HasSubstr("npm install -g acpx"));
}

}  // namespace
}  // namespace clawdforge
