#include "agent/inventory/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class InventoryTest : public testing::Test {
 protected:
  InventoryTest() {
    std::string pattern = (fs::temp_directory_path() / "inventory-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    environment = {{"PATH", (root / "bin").string()}, {"HOME", root.string()}};
    spec.name = "it";
    spec.command = {"it-acp"};
    spec.login = {.is_needed = true,
                  .command = {"it", "login"},
                  .status_command = {},
                  .keys = {"IT_KEY"},
                  .dir_variable = "IT_HOME",
                  .dir = ".it",
                  .file = "auth.json"};
    spec.facts = {"it-package", "1.2.0", "1.10.3"};
  }
  ~InventoryTest() override { fs::remove_all(root); }

  void put(const std::string& name, const std::string& text, bool runs = false) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
    if (runs) fs::permissions(root / name, fs::perms::owner_all);
  }

  AgentReport look() const { return take_inventory({{spec}, environment, "acpx"}).front(); }

  fs::path root;
  std::map<std::string, std::string> environment;
  AgentSpec spec;
};

TEST_F(InventoryTest, TellsWhatIsMissing) {
  const AgentReport report = look();
  ASSERT_EQ(report.programs.size(), 1);
  EXPECT_EQ(report.programs[0].path, "");
  EXPECT_EQ(report.login, LoginState::missing);
  EXPECT_EQ(report.login_place, (root / ".it/auth.json").string());
  EXPECT_FALSE(is_installed(report));
  EXPECT_EQ(install_command(report), "npm install -g it-package");
}

TEST_F(InventoryTest, TakesTheVersionFromThePackageFile) {
  put("lib/node_modules/it-package/dist/index.js", "", true);
  put("lib/node_modules/it-package/dist/package.json", R"({"type":"module"})");
  put("lib/node_modules/it-package/package.json", R"({"name":"it-package","version":"1.9.9"})");
  fs::create_directories(root / "bin");
  fs::create_symlink("../lib/node_modules/it-package/dist/index.js", root / "bin/it-acp");
  const AgentReport report = look();
  EXPECT_EQ(report.programs[0].version, "1.9.9");
  EXPECT_EQ(report.programs[0].trial, VersionTrial::tested);
  EXPECT_EQ(report.programs[0].path, (root / "bin/it-acp").string());
  EXPECT_TRUE(is_complete(report));
  EXPECT_EQ(install_command(report), "");
}

TEST_F(InventoryTest, BelievesNoPackageFileOutsideOfPackages) {
  put("package.json", R"({"name":"mine","version":"7.0.0"})");
  put("bin/it-acp", "", true);
  EXPECT_EQ(look().programs[0].version, "");
}

TEST_F(InventoryTest, AKeyIsAsGoodAsALoginFile) {
  spec.env = {"IT_KEY", "IT_HOME"};
  put(".it/auth.json", "{}");
  EXPECT_EQ(look().login, LoginState::file);
  environment["IT_KEY"] = "secret-word";
  const AgentReport report = look();
  EXPECT_EQ(report.login, LoginState::key);
  EXPECT_EQ(report.login_place, "IT_KEY");
  EXPECT_THAT(login_words(report), HasSubstr("IT_KEY"));
}

TEST_F(InventoryTest, WhatTheAgentDoesNotGetDoesNotCount) {
  environment["IT_KEY"] = "secret-word";  // not among its variables
  EXPECT_EQ(look().login, LoginState::missing);
}

TEST_F(InventoryTest, AnEmptyFileIsNoLoginAndItsDirectoryMayBeElsewhere) {
  spec.env = {"IT_HOME"};
  environment["IT_HOME"] = (root / "other").string();
  put(".it/auth.json", "{}");
  put("other/auth.json", "");
  EXPECT_EQ(look().login, LoginState::missing);
  put("other/auth.json", "{}");
  EXPECT_EQ(look().login, LoginState::file);
  EXPECT_EQ(look().login_environment.at("IT_HOME"), (root / "other").string());
}

TEST_F(InventoryTest, TellsHowToLogIn) {
  put("bin/it", "", true);
  const AgentReport report = look();
  EXPECT_THAT(report.login_command, testing::ElementsAre((root / "bin/it").string(), "login"));
  EXPECT_EQ(report.login_environment.at("HOME"), root.string());
  EXPECT_FALSE(report.login_environment.contains("IT_HOME"));
}

TEST_F(InventoryTest, OneProgramForRunsAndSessionsIsToldOnce) {
  spec.one_shot_protocol = OneShotProtocol::claude_print;
  spec.one_shot_command = {"it-acp"};
  EXPECT_EQ(look().programs.size(), 1);
  spec.one_shot_command = {"it"};
  EXPECT_EQ(look().programs.size(), 2);
}

TEST(Versions, AreComparedByTheirNumbers) {
  const ProgramFacts facts{"p", "1.2.0", "1.10.3"};
  EXPECT_EQ(trial_of("1.2.0", facts), VersionTrial::tested);
  EXPECT_EQ(trial_of("v1.10.3-beta", facts), VersionTrial::tested);
  EXPECT_EQ(trial_of("1.9 (It)", facts), VersionTrial::tested);
  EXPECT_EQ(trial_of("1.1.99", facts), VersionTrial::older);
  EXPECT_EQ(trial_of("1.10.4", facts), VersionTrial::newer);
  EXPECT_EQ(trial_of("", facts), VersionTrial::unknown);
  EXPECT_EQ(trial_of("99999999999999999999.1", facts), VersionTrial::unknown);
  EXPECT_EQ(trial_of("1.2.0", {}), VersionTrial::unknown);
}

}  // namespace
}  // namespace clawdforge
