#include "agent/jail/jail_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/jail/install_dirs.h"
#include "agent/jail/jail_planner.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using Kind = JailPlace::Kind;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class JailViewTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::canonical(fs::temp_directory_path()) / "view-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string dir(const std::string& name) {
    fs::create_directories(root_ / name);
    return root_ / name;
  }
  std::string file(const std::string& name, const std::string& content = "") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
    fs::permissions(root_ / name, fs::perms::owner_all);
    return root_ / name;
  }
  std::string link(const std::string& name, const std::string& target) {
    fs::create_directories((root_ / name).parent_path());
    fs::create_symlink(target, root_ / name);
    return root_ / name;
  }

  fs::path root_;
};

TEST_F(JailViewTest, LeavesOutWhatIsNotThere) {
  JailView view;
  view.read(root_ / "absent");
  view.write(root_ / "absent" / "too");
  EXPECT_TRUE(view.plan().places.empty());
}

TEST_F(JailViewTest, ShowsALinkAndWhatItLeadsTo) {
  const std::string real = dir("real/inner");
  const std::string alias = link("alias", "real");
  JailView view;
  view.read(alias + "/inner");
  EXPECT_THAT(view.plan().places, ElementsAre(JailPlace{Kind::link, alias, "real"},
                                              JailPlace{Kind::read_if_there, real}));
}

TEST_F(JailViewTest, LeavesOutLinksThatLeadInACircle) {
  link("a", "b");
  link("b", "a");
  JailView view;
  view.read(root_ / "a");
  EXPECT_TRUE(view.plan().places.empty());
}

TEST_F(JailViewTest, SaysNothingTwice) {
  const std::string above = dir("above");
  const std::string below = dir("above/below");
  JailView view;
  view.read(below);
  view.read(above);
  EXPECT_THAT(view.plan().places, ElementsAre(JailPlace{Kind::read_if_there, above}));
  view.write(below);
  EXPECT_THAT(view.plan().places,
              ElementsAre(JailPlace{Kind::read_if_there, above}, JailPlace{Kind::write, below}));
  view.read(below);
  EXPECT_THAT(view.plan().places, Contains(JailPlace{Kind::write, below}));
}

TEST_F(JailViewTest, CoversOnlyWhatWouldShow) {
  const std::string data = dir("home/data");
  const std::string own = dir("home/data/sessions/1");
  JailView view;
  view.cover(data);
  view.write(own);
  EXPECT_THAT(view.plan().places, ElementsAre(JailPlace{Kind::write, own}));
  view.write(root_ / "home");
  EXPECT_THAT(view.plan().places,
              ElementsAre(JailPlace{Kind::write, root_ / "home"}, JailPlace{Kind::cover, data},
                          JailPlace{Kind::write, own}));
}

using InstallDirsTest = JailViewTest;

TEST_F(InstallDirsTest, FindsTheOutermostNodeModules) {
  file("lib/node_modules/@x/tool/node_modules/y/cli.js", "#!/usr/bin/env node\n");
  const std::string called = link("bin/tool", "../lib/node_modules/@x/tool/node_modules/y/cli.js");
  const std::string node = file("node/bin/node",
                                "\x7f"
                                "ELF");
  const auto found = install_dirs({called}, (root_ / "node/bin").string(), "/nowhere");
  EXPECT_THAT(found, Contains(called));
  EXPECT_THAT(found, Contains(root_ / "lib/node_modules"));
  EXPECT_THAT(found, Contains(root_ / "node/bin"));
}

TEST_F(InstallDirsTest, GivesNoHomeForAFileInIt) {
  const std::string script = file("home/agent", "#!/bin/sh\n");
  EXPECT_THAT(install_dirs({script}, "", root_ / "home"), Not(Contains(root_ / "home")));
  EXPECT_THAT(install_dirs({script}, "", root_ / "home"), Contains(script));
  EXPECT_THAT(install_dirs({script}, "", "/nowhere"), Contains(root_ / "home"));
}

TEST_F(InstallDirsTest, LooksIntoArguments) {
  const std::string script = file("agent/main.py", "#!/usr/bin/python3\n");
  for (const std::string& argument : {script, "--agent '" + script + "' --more"}) {
    EXPECT_THAT(install_dirs({"/bin/sh", argument}, "", ""), Contains(root_ / "agent"));
  }
}

class JailPlannerTest : public JailViewTest {
 protected:
  JailPlanner planner(bool is_off = false) {
    return JailPlanner({.data_dir = dir("home/data"),
                        .own_program = "/bin/sh",
                        .environment = {{"HOME", dir("home")}},
                        .is_off = is_off});
  }
  JailPlan plan(const JailNeeds& needs, const Policy& policy = {}) {
    return planner().plan(needs, policy, "");
  }
};

TEST_F(JailPlannerTest, ShowsAnAgentItsOwnAndHidesTheRest) {
  const std::string own = dir("home/data/sessions/1");
  const std::string session_home = dir("home/data/sessions/1/home");
  dir("home/.ssh");
  const auto places = plan({.own_dir = own, .home_dir = session_home}).places;
  EXPECT_THAT(places, Contains(JailPlace{Kind::write, own}));
  for (const JailPlace& place : places) {
    EXPECT_FALSE(place.path.starts_with(root_.string()) && !place.path.starts_with(own))
        << place.path;
    EXPECT_NE(place.path, "/etc");
  }
}

TEST_F(JailPlannerTest, CoversHomeAndDataBelowAnInstallation) {
  const std::string own = dir("home/data/sessions/1");
  const std::string program = file("agent", "#!/bin/sh\n");
  const auto places = plan({.commands = {{program}}, .own_dir = own, .home_dir = own}).places;
  EXPECT_THAT(places, Contains(JailPlace{Kind::read_if_there, root_}));
  EXPECT_THAT(places, Contains(JailPlace{Kind::cover, root_ / "home"}));
  EXPECT_THAT(places, Contains(JailPlace{Kind::write, own}));
}

TEST_F(JailPlannerTest, ShowsALoginAndCoversWhatLiesBesideIt) {
  const std::string login = dir("home/.claude");
  file("home/.claude/.credentials.json");
  const std::string prompts = file("home/.claude/history.jsonl");
  const std::string talks = dir("home/.claude/projects");
  const std::string own = dir("home/data/sessions/1");
  const auto places =
      plan({.own_dir = own, .login_dir = login, .login_file = ".credentials.json"}).places;
  EXPECT_THAT(places, Contains(JailPlace{Kind::read_if_there, login}));
  EXPECT_THAT(places, Contains(JailPlace{Kind::cover, prompts}));
  EXPECT_THAT(places, Contains(JailPlace{Kind::cover, talks}));
  const auto alone = plan({.own_dir = own, .login_dir = login}).places;
  EXPECT_THAT(alone, Contains(JailPlace{Kind::read_if_there, login}));
  EXPECT_THAT(alone, Not(Contains(JailPlace{Kind::cover, talks})));
}

TEST_F(JailPlannerTest, DoesNotShowALoginAmongTooMuch) {
  const std::string login = dir("home/.claude");
  for (std::size_t i = 0; i <= kCoveredBesideLoginMax; ++i) {
    file("home/.claude/" + std::to_string(i));
  }
  const auto places = plan({.own_dir = dir("home/data/sessions/1"),
                            .login_dir = login,
                            .login_file = ".credentials.json"})
                          .places;
  EXPECT_THAT(places, Not(Contains(JailPlace{Kind::read_if_there, login})));
}

TEST_F(JailPlannerTest, GivesWhatTheOwnerNames) {
  const std::string config = file("home/.gitconfig");
  Policy policy;
  policy.jail_read = {"~/.gitconfig"};
  policy.jail_write = {dir("cache")};
  const std::string own = dir("home/data/sessions/1");
  const auto places = plan({.own_dir = own, .home_dir = own}, policy).places;
  EXPECT_THAT(places, Contains(JailPlace{Kind::read_if_there, config}));
  EXPECT_THAT(places, Contains(JailPlace{Kind::write, root_ / "cache"}));
}

TEST_F(JailPlannerTest, KnowsWhichModeCounts) {
  Policy policy;
  EXPECT_EQ(planner().mode_of(policy), JailMode::automatic);
  EXPECT_EQ(planner(true).mode_of(policy), JailMode::off);
  policy.jail = JailMode::files;
  EXPECT_EQ(planner(true).mode_of(policy), JailMode::files);
}

}  // namespace
}  // namespace clawdforge
