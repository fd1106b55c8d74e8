#include "agent/core/agents.h"

#include "agent/acp/acp_fixture.h"
#include "base/version.h"

namespace clawdforge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AgentsTest : public AcpTest {
 protected:
  void write_program(const std::string& name, const std::string& script) {
    const std::filesystem::path path = root_ / "bin" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  Agents::Options options() {
    Agents::Options options;
    options.environment = {{"PATH", (root_ / "bin").string() + ":/usr/bin:/bin"},
                           {"HOME", "/nonexistent"},
                           {"ANTHROPIC_API_KEY", "sk-ant-12345678"},
                           {"OTHER_KEY", "other-12345678"},
                           {"CLAWDFORGE_ADMIN_TOKEN", "mine"}};
    options.demo_program = root_ / "bin" / "clawdforge";
    const auto add = [&](std::string name, std::vector<std::string> command) {
      AgentSpec spec;
      spec.name = std::move(name);
      spec.command = std::move(command);
      spec.install_hint = "Install " + spec.name + ".";
      options.specs.push_back(std::move(spec));
    };
    add("claude", {"claude-agent-acp"});
    add("demo", {});
    add("other", {root_ / "bin" / "other", "--acp"});
    return options;
  }

  // Starts it, opens it, and gives what its program wrote into `file`.
  std::string said_by(Agents& agents, const std::string& name, const std::string& file) {
    auto started = agents.start(*agents.find(name), root_ / "work", root_ / "tmp");
    EXPECT_TRUE(started) << started.error().message;
    if (!started) return "";
    run_to_end(io_, (*started)->open({}));
    run_to_end(io_, done((*started)->finish(false)));
    std::ifstream stream(root_ / "work" / file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST_F(AgentsTest, KnowsWhichThereAre) {
  write_program("other", "");
  write_program("clawdforge", "");
  const Agents agents(*spawner_, options());
  EXPECT_THAT(agents.names(), ElementsAre("claude", "demo", "other"));
  ASSERT_NE(agents.find("other"), nullptr);
  EXPECT_EQ(agents.find("nobody"), nullptr);
  const auto list = agents.list();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_FALSE(list[0].is_present);
  EXPECT_TRUE(list[1].is_present);
  EXPECT_EQ(list[1].version, kVersion);
  EXPECT_TRUE(list[2].is_present);
  EXPECT_EQ(list[2].version, "");
}

TEST_F(AgentsTest, SaysWhatToInstallAndLooksAgainEachTime) {
  Agents agents(*spawner_, options());
  const auto absent = agents.start(*agents.find("claude"), root_ / "work", root_ / "tmp");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, Errc::unavailable);
  EXPECT_EQ(absent.error().code, "agent_not_found");
  EXPECT_EQ(absent.error().message, "Install claude.");
  EXPECT_EQ(spawner_->alive(), 0U);

  std::filesystem::create_directories(root_ / "bin" / "claude-agent-acp");  // no program
  EXPECT_FALSE(agents.list()[0].is_present);
  std::filesystem::remove(root_ / "bin" / "claude-agent-acp");
  write_program("claude-agent-acp", "echo found > here");
  EXPECT_TRUE(agents.list()[0].is_present);
  EXPECT_EQ(said_by(agents, "claude", "here"), "found\n");
}

TEST_F(AgentsTest, GivesEachAgentNoMoreOfTheEnvironmentThanItNeeds) {
  const std::string script = "echo \"$0 $*\" > arguments; env > env; pwd >> env";
  write_program("other", script);
  write_program("clawdforge", script);
  write_program("claude-agent-acp", script);
  Agents::Options given = options();
  given.specs[2].env = {"OTHER_KEY", "CLAWDFORGE_ADMIN_TOKEN"};
  given.specs[2].set_env = {{"FIXED", "value"}, {"TMPDIR", "/elsewhere"}};
  Agents agents(*spawner_, given);

  const std::string claude = said_by(agents, "claude", "env");
  EXPECT_THAT(claude, HasSubstr("ANTHROPIC_API_KEY=sk-ant-12345678"));
  EXPECT_THAT(claude, HasSubstr("DISABLE_TELEMETRY=1"));
  EXPECT_THAT(claude, HasSubstr("TMPDIR=" + (root_ / "tmp").string() + "\n"));
  EXPECT_THAT(claude, HasSubstr((root_ / "work").string() + "\n"));
  EXPECT_THAT(claude, Not(HasSubstr("OTHER_KEY")));
  EXPECT_THAT(claude, Not(HasSubstr("CLAUDE_CODE_EXECUTABLE")));

  const std::string other = said_by(agents, "other", "env");
  EXPECT_THAT(other, HasSubstr("OTHER_KEY=other-12345678"));
  EXPECT_THAT(other, HasSubstr("FIXED=value"));
  EXPECT_THAT(other, HasSubstr("TMPDIR=" + (root_ / "tmp").string() + "\n"));
  EXPECT_THAT(other, Not(HasSubstr("ANTHROPIC")));
  EXPECT_THAT(other, Not(HasSubstr("CLAWDFORGE")));
  EXPECT_THAT(said_by(agents, "other", "arguments"), HasSubstr("/other --acp\n"));

  EXPECT_THAT(said_by(agents, "demo", "arguments"), HasSubstr("/clawdforge demo-agent --acp\n"));
  EXPECT_THAT(said_by(agents, "demo", "env"), Not(HasSubstr("_KEY")));
}

TEST_F(AgentsTest, RemembersTheVersion) {
  write_program("other",
                "read line; echo '{\"id\":1,\"result\":{\"protocolVersion\":1,"
                "\"agentInfo\":{\"name\":\"o\",\"version\":\"4.2\"}}}'; read line; exit 0");
  Agents agents(*spawner_, options());
  said_by(agents, "other", "none");
  EXPECT_EQ(agents.list()[2].version, "4.2");
}

TEST_F(AgentsTest, AnAgentBehindAcpxIsThereWhenAcpxIs) {
  write_program("other", "");
  Agents::Options given = options();
  given.specs[2].protocol = AgentProtocol::acpx;
  Agents agents(*spawner_, given);
  EXPECT_FALSE(agents.list()[2].is_present);
  const auto absent = agents.start(*agents.find("other"), root_ / "work", root_ / "tmp");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, "agent_not_found");
  write_program("acpx", "");
  EXPECT_TRUE(agents.list()[2].is_present);
}

TEST_F(AgentsTest, AnAgentBehindAcpxRunsInAHostOfOurs) {
  write_program("acpx", "");
  write_program("clawdforge", "echo \"$0 $*\" > arguments; env > env");
  Agents::Options given = options();
  given.specs[2].protocol = AgentProtocol::acpx;
  given.specs[2].command = {"--agent", "/opt/claude-agent-acp --x"};
  Agents agents(*spawner_, given);
  EXPECT_THAT(said_by(agents, "other", "arguments"), HasSubstr("/clawdforge agent-host\n"));
  EXPECT_THAT(said_by(agents, "other", "env"), HasSubstr("ANTHROPIC_API_KEY"));
}

}  // namespace
}  // namespace clawdforge
