#include "agent/core/agent_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

const Environment kOurs = {{"PATH", "/bin"},
                           {"HOME", "/home/x"},
                           {"LC_ALL", "C"},
                           {"https_proxy", "http://p"},
                           {"SOME_API_KEY", "key-12345678"},
                           {"SWITCH", "ours"},
                           {"CLAWDFORGE_ADMIN_TOKEN", "secret-admin-token"},
                           {"IS_SANDBOX", "1"},
                           {"TMPDIR", "/ours"},
                           {"LD_PRELOAD", "x.so"}};

TEST(PlainEnvironment, HasNoLogin) {
  EXPECT_THAT(plain_environment(kOurs, {}),
              ElementsAre(Pair("HOME", "/home/x"), Pair("LC_ALL", "C"), Pair("PATH", "/bin")));
}

TEST(AgentEnvironment, PassesOnWhatIsAllowedOrNamed) {
  AgentSpec spec;
  spec.env = {"SOME_API_KEY", "https_proxy", "CLAWDFORGE_ADMIN_TOKEN", "NOT_SET"};
  spec.temp_dir_env = {"ITS_TMPDIR"};
  const Environment environment = agent_environment(kOurs, spec, "/run/tmp");
  EXPECT_THAT(environment, Contains(Pair("SOME_API_KEY", "key-12345678")));
  EXPECT_THAT(environment, Contains(Pair("https_proxy", "http://p")));
  EXPECT_THAT(environment, Contains(Pair("TMPDIR", "/run/tmp")));
  EXPECT_THAT(environment, Contains(Pair("ITS_TMPDIR", "/run/tmp")));
  for (const char* name : {"CLAWDFORGE_ADMIN_TOKEN", "IS_SANDBOX", "LD_PRELOAD", "NOT_SET"}) {
    EXPECT_THAT(environment, Not(Contains(Key(name)))) << name;
  }
}

TEST(AgentEnvironment, HasDefaultsThatAnyOtherValueBeats) {
  AgentSpec spec;
  spec.default_env = {{"SWITCH", "default"}, {"RETRIES", "2"}, {"UPDATES", "off"}};
  spec.set_env = {{"RETRIES", "7"}};
  EXPECT_THAT(agent_environment(kOurs, spec, "/t"), Contains(Pair("SWITCH", "default")));
  spec.env = {"SWITCH"};
  const Environment environment = agent_environment(kOurs, spec, "/t");
  EXPECT_THAT(environment, Contains(Pair("SWITCH", "ours")));
  EXPECT_THAT(environment, Contains(Pair("RETRIES", "7")));
  EXPECT_THAT(environment, Contains(Pair("UPDATES", "off")));
}

TEST(AgentEnvironment, LetsTheOwnerDecide) {
  AgentSpec spec;
  spec.set_env = {{"EXTRA", "yes"}, {"TMPDIR", "/elsewhere"}, {"CLAWDFORGE_X", "no"}};
  const Environment environment = agent_environment(kOurs, spec, "/run/tmp");
  EXPECT_THAT(environment, Contains(Pair("EXTRA", "yes")));
  EXPECT_THAT(environment, Contains(Pair("TMPDIR", "/run/tmp")));
  EXPECT_THAT(environment, Not(Contains(Key("CLAWDFORGE_X"))));
}

AgentSpec spec_with_login() {
  AgentSpec spec;
  spec.env = {"ITS_KEY", "ITS_DIR"};
  spec.login = {.is_needed = true,
                .command = {},
                .status_command = {},
                .keys = {"ITS_KEY"},
                .dir_variable = "ITS_DIR",
                .dir = ".its",
                .file = "login",
                .refresh_lock = "lock",
                .storage_variable = "ITS_STORAGE"};
  return spec;
}

TEST(LoginView, IsApartFromTheHomeWhereTheProgramKnowsHow) {
  const Environment ours = {{"HOME", "/home/user"}};
  AgentSpec spec = spec_with_login();
  EXPECT_TRUE(login_view(ours, spec, false).has_own_home);
  EXPECT_EQ(login_view(ours, spec, false).dir, "/home/user/.its");
  EXPECT_EQ(login_view({{"HOME", "/home/user"}, {"ITS_DIR", "/its"}}, spec, false).dir, "/its");
  EXPECT_FALSE(login_view(ours, spec, true).has_own_home);
  const LoginView with_key = login_view({{"ITS_KEY", "k"}}, spec, false);
  EXPECT_TRUE(with_key.has_own_home);
  EXPECT_EQ(with_key.dir, "");
  spec.set_env = {{"ITS_DIR", "/another/account"}};
  EXPECT_FALSE(login_view(ours, spec, false).has_own_home);
  spec = spec_with_login();
  spec.login.storage_variable.clear();
  EXPECT_FALSE(login_view(ours, spec, false).has_own_home);
  spec.login.is_needed = false;
  EXPECT_TRUE(login_view(ours, spec, false).has_own_home);
}

TEST(MoveHome, LeavesNothingThatLeadsToTheOwners) {
  Environment environment = {{"HOME", "/home/user"},
                             {"XDG_CONFIG_HOME", "/home/user/.config"},
                             {"XDG_RUNTIME_DIR", "/run/user/1000"},
                             {"ITS_DIR", "/home/user/.its"},
                             {"PATH", "/bin"}};
  move_home(environment, spec_with_login().login, "/s/home");
  EXPECT_EQ(environment,
            (Environment{{"HOME", "/s/home"}, {"ITS_DIR", "/s/home/.its"}, {"PATH", "/bin"}}));
}

TEST(SecretsIn, AreTheValuesOfKeysAndTokens) {
  EXPECT_THAT(secrets_in({{"ANTHROPIC_API_KEY", "sk-ant-12345678"},
                          {"CLAUDE_CODE_OAUTH_TOKEN", "oat-12345"},
                          {"X_TOKEN", "short"},
                          {"HOME", "/home/user"}}),
              ElementsAre("sk-ant-12345678", "oat-12345"));
}

}  // namespace
}  // namespace clawdforge
