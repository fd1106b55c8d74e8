#include "agent/core/process_starter.h"

#include "agent/core/agent_fixture.h"
#include "process/tree/child.h"

namespace clawdforge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Waits for its program to end, and says nothing.
class SilentAgent final : public SessionAgent {
 public:
  SilentAgent(std::unique_ptr<Child> child, AgentSetup setup)
      : child_(std::move(child)), setup_(std::move(setup)) {}

  ProcessMark mark() const override { return setup_.mark_of(*child_); }
  Task<Opening> open(Conversation) override {
    setup_.note_version("4.2");
    co_await child_->exit();
    co_return Opened{};
  }
  void begin_turn(std::string) override {}
  Task<AgentNews> next() override { co_return AgentNews{}; }
  void cancel() override {}
  void answer(std::string, std::optional<std::string>) override {}
  void stop() override { child_->let_go(); }
  Task<void> finish(bool) override {
    child_->let_go();
    co_await child_->gone();
  }
  std::string error_tail() const override { return setup_.shown_tail(child_->error_tail()); }

 private:
  std::unique_ptr<Child> child_;
  const AgentSetup setup_;
};

// Its answer is what it was asked, when its program has ended.
class EchoingOneShot final : public OneShotAgent {
 public:
  EchoingOneShot(std::unique_ptr<Child> child, OneShotRequest request)
      : child_(std::move(child)), request_(std::move(request)) {}

  ProcessMark mark() const override { return {}; }
  Task<OneShotAnswer> answer() override {
    co_await child_->exit();
    OneShotAnswer answer;
    answer.text = request_.prompt;
    co_return answer;
  }
  void stop() override { child_->let_go(); }
  Task<void> finish() override {
    child_->let_go();
    co_await child_->gone();
  }

 private:
  std::unique_ptr<Child> child_;
  const OneShotRequest request_;
};

AgentProtocols protocols() {
  const auto make = [](std::unique_ptr<Child> child, AgentSetup setup) {
    return std::make_unique<SilentAgent>(std::move(child), std::move(setup));
  };
  const auto arguments = [](const StartOrder&, const OneShotRequest& request) {
    return std::vector<std::string>{"--model", request.model};
  };
  const auto make_one_shot = [](std::unique_ptr<Child> child, AgentSetup, OneShotRequest request) {
    return std::make_unique<EchoingOneShot>(std::move(child), std::move(request));
  };
  AgentProtocols protocols;
  protocols.sessions[AgentProtocol::acp] = {
      .make = make, .arguments = {}, .host = {}, .driver = {}};
  protocols.sessions[AgentProtocol::acpx] = {
      .make = make, .arguments = {}, .host = {"host", "agent-host"}, .driver = "acpx"};
  protocols.sessions[AgentProtocol::claude] = {
      .make = make,
      .arguments =
          [](const StartOrder& order) {
            return std::vector<std::string>{order.loads_conversation ? "--load" : "--begin",
                                            order.conversation_id};
          },
      .host = {},
      .driver = {}};
  protocols.one_shots[OneShotProtocol::claude_print] = {.arguments = arguments,
                                                        .make = make_one_shot};
  return protocols;
}

AgentSpec spec_of(std::string name, std::vector<std::string> command) {
  AgentSpec spec;
  spec.name = std::move(name);
  spec.command = std::move(command);
  spec.install_hint = "Install " + spec.name + ".";
  return spec;
}

class ProcessStarterTest : public AgentTest {
 protected:
  // With the agents "first" and "other".
  ProcessStarter& starter(const std::vector<AgentSpec>& specs = {
                              spec_of("first", {"first"}), spec_of("other", {"other", "--acp"})}) {
    starter_.reset();
    catalog_ = std::make_unique<AgentCatalog>(specs);
    starter_ = std::make_unique<ProcessStarter>(
        ProcessStarter::Dependencies{*catalog_, *spawner_, clock_, metrics_, log_},
        ProcessStarter::Options{.protocols = protocols(),
                                .environment = {{"PATH", search_path()},
                                                {"HOME", "/nonexistent"},
                                                {"OTHER_KEY", "other-12345678"},
                                                {"CLAWDFORGE_ADMIN_TOKEN", "mine"}},
                                .start_max = std::chrono::seconds(60)});
    return *starter_;
  }

  // Starts it and gives what its program has written into `file`.
  std::string written_by(const AgentSpec& spec, const std::string& file) {
    auto started = starter().start_session(order_for(spec));
    EXPECT_TRUE(started) << started.error().message;
    if (!started) return "";
    run_to_end(io_, (*started)->open({}));
    run_to_end(io_, done((*started)->finish(false)));
    return content(file);
  }

  SystemClock clock_;
  std::unique_ptr<AgentCatalog> catalog_;
  std::unique_ptr<ProcessStarter> starter_;
};

TEST_F(ProcessStarterTest, TellsWhichAgentsAreThere) {
  write_program("other", "");
  AgentSpec known = spec_of("known", {"other"});
  known.version = "1.0";
  const auto list = starter({spec_of("first", {"first"}), spec_of("other", {"other"}),
                             spec_of("none", {}), known})
                        .list();
  ASSERT_EQ(list.size(), 4U);
  EXPECT_FALSE(list[0].is_present);
  EXPECT_TRUE(list[1].is_present);
  EXPECT_EQ(list[1].version, "");
  EXPECT_FALSE(list[2].is_present);
  EXPECT_EQ(list[3].version, "1.0");
}

TEST_F(ProcessStarterTest, TheProtocolAddsWhatItsAgentIsToldAtTheStart) {
  write_program("first", "echo \"$@\" > arguments");
  AgentSpec spec = spec_of("first", {"first", "--own"});
  spec.protocol = AgentProtocol::claude;
  spec.modes[PermissionMode::deny_all].arguments = {"--strict"};
  StartOrder order = order_for(spec);
  order.conversation_id = "c1";
  order.loads_conversation = true;
  auto started = starter().start_session(order);
  ASSERT_TRUE(started) << started.error().message;
  run_to_end(io_, (*started)->open({}));
  run_to_end(io_, done((*started)->finish(false)));
  EXPECT_EQ(content("arguments"), "--own --load c1 --strict\n");
}

TEST_F(ProcessStarterTest, AProgramThatIsTooOldIsSpokenToInAnotherWay) {
  AgentSpec spec = spec_of("first", {"first"});
  spec.protocol = AgentProtocol::claude;
  spec.fallback = std::make_shared<const AgentSpec>(spec_of("first", {"other"}));
  bool is_old = false;
  const AgentCatalog catalog({spec}, [&](const AgentSpec&) { return is_old; });
  ASSERT_NE(catalog.find("first"), nullptr);
  EXPECT_EQ(catalog.find("first")->protocol, AgentProtocol::claude);
  is_old = true;
  EXPECT_EQ(catalog.find("first")->protocol, AgentProtocol::acp);
}

TEST_F(ProcessStarterTest, SaysWhatToInstallAndLooksAgainEachTime) {
  ProcessStarter& agents = starter();
  const auto absent = agents.start_session(order_for(*catalog_->find("first")));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, Errc::unavailable);
  EXPECT_EQ(absent.error().code, "agent_not_found");
  EXPECT_EQ(absent.error().message, "Install first.");
  EXPECT_EQ(spawner_->alive(), 0U);

  std::filesystem::create_directories(root_ / "bin" / "first");  // which is not a program
  EXPECT_FALSE(agents.list()[0].is_present);
  std::filesystem::remove(root_ / "bin" / "first");
  write_program("first", "echo found > here");
  EXPECT_TRUE(agents.list()[0].is_present);
  EXPECT_EQ(written_by(spec_of("first", {"first"}), "here"), "found\n");
}

TEST_F(ProcessStarterTest, GivesAnAgentItsDirectoriesAndNoMoreOfTheEnvironmentThanItNeeds) {
  write_program("other", "echo \"$0 $*\" > arguments; env > env; pwd >> env");
  AgentSpec spec = spec_of("other", {root_ / "bin" / "other", "--acp"});
  EXPECT_THAT(written_by(spec, "env"), Not(HasSubstr("_KEY")));
  EXPECT_THAT(content("arguments"), HasSubstr("/other --acp\n"));

  spec.env = {"OTHER_KEY", "CLAWDFORGE_ADMIN_TOKEN"};
  spec.set_env = {{"FIXED", "value"}, {"TMPDIR", "/elsewhere"}};
  const std::string environment = written_by(spec, "env");
  EXPECT_THAT(environment, HasSubstr("OTHER_KEY=other-12345678"));
  EXPECT_THAT(environment, HasSubstr("FIXED=value"));
  EXPECT_THAT(environment, HasSubstr("TMPDIR=" + (root_ / "tmp").string() + "\n"));
  EXPECT_THAT(environment, HasSubstr("\n" + (root_ / "work").string() + "\n"));
  EXPECT_THAT(environment, Not(HasSubstr("CLAWDFORGE")));
}

TEST_F(ProcessStarterTest, StartsAnAgentWithTheSwitchesOfItsMode) {
  write_program("other", "echo \"$*\" > arguments; env > env");
  AgentSpec spec = spec_of("other", {"other", "--acp"});
  spec.set_env = {{"RULES", "of the owner"}};
  spec.modes[PermissionMode::deny_all] = {.env = {{"RULES", "deny {temp_dir}/x"}},
                                          .arguments = {"--rules", "{temp_dir}/rules"},
                                          .agent_mode = {},
                                          .files = {}};
  const std::string environment = written_by(spec, "env");  // order_for() says deny_all
  const std::string temp_dir = root_ / "tmp";
  EXPECT_THAT(environment, HasSubstr("RULES=deny " + temp_dir + "/x\n"));
  EXPECT_EQ(content("arguments"), "--acp --rules " + temp_dir + "/rules\n");
}

TEST_F(ProcessStarterTest, RemembersTheVersion) {
  write_program("other", "exit 0");
  written_by(spec_of("other", {"other"}), "none");
  EXPECT_EQ(starter_->list()[1].version, "4.2");
}

TEST_F(ProcessStarterTest, StartsTheHostOfAProtocolThatHasADriver) {
  write_program("host", "echo \"$0 $*\" > arguments");
  AgentSpec spec = spec_of("other", {"other"});
  spec.protocol = AgentProtocol::acpx;
  write_program("other", "");
  EXPECT_FALSE(starter({spec}).list()[0].is_present);
  const auto absent = starter_->start_session(order_for(spec));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, "agent_not_found");
  write_program("acpx", "");
  EXPECT_TRUE(starter_->list()[0].is_present);
  EXPECT_THAT(written_by(spec, "arguments"), HasSubstr("/host agent-host\n"));
}

TEST_F(ProcessStarterTest, PutsASinglePromptTheSameWay) {
  write_program("once", "echo \"$*\" > arguments; env > env");
  AgentSpec spec = spec_of("other", {"absent"});
  spec.one_shot_protocol = OneShotProtocol::claude_print;
  spec.one_shot_command = {"once", "demo-agent"};
  spec.one_shot_modes = {{PermissionMode::deny_all, {"--deny"}},
                         {PermissionMode::approve_all, {"--allow"}}};
  spec.env = {"OTHER_KEY"};
  OneShotRequest request;
  request.prompt = "the prompt";
  request.model = "m";
  auto started = starter().start_one_shot(order_for(spec), request);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(run_to_end(io_, (*started)->answer()).text, "the prompt");
  run_to_end(io_, done((*started)->finish()));
  EXPECT_EQ(content("arguments"), "demo-agent --model m --deny\n");
  EXPECT_THAT(content("env"), HasSubstr("OTHER_KEY=other-12345678"));
  EXPECT_THAT(content("env"), HasSubstr("TMPDIR=" + (root_ / "tmp").string() + "\n"));
}

TEST(AgentCatalog, FindsByName) {
  const AgentCatalog catalog({spec_of("first", {}), spec_of("other", {})});
  EXPECT_THAT(catalog.names(), ElementsAre("first", "other"));
  ASSERT_NE(catalog.find("other"), nullptr);
  EXPECT_EQ(catalog.find("absent"), nullptr);
}

}  // namespace
}  // namespace clawdforge
