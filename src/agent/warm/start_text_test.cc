#include "agent/warm/start_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace clawdforge {
namespace {

class StartTextTest : public testing::Test {
 protected:
  StartTextTest() {
    std::string pattern = testing::TempDir() + "start-text-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
    write("agent", "one");
    std::filesystem::permissions(dir_ + "/agent", std::filesystem::perms::owner_all);
    spec_.login.dir_variable = "AGENT_HOME";
    spec_.login.file = "login.json";
    plan_.argv = {dir_ + "/agent", "--fast"};
    plan_.environment = {{"PATH", "/usr/bin"}, {"AGENT_HOME", dir_}};
    plan_.working_dir = "/work";
    plan_.jail = JailPlan{.places = {{JailPlace::Kind::write, "/work"}}};
  }
  ~StartTextTest() override { std::filesystem::remove_all(dir_); }

  // In place of what was there, as installers do it.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/new") << text;
    std::filesystem::rename(dir_ + "/new", dir_ + "/" + name);
  }
  std::string text() const { return start_text(plan_, spec_); }

  std::string dir_;
  AgentSpec spec_;
  ChildPlan plan_;
};

TEST_F(StartTextTest, TheSamePlanGivesTheSameText) { EXPECT_EQ(text(), text()); }

TEST_F(StartTextTest, AllOfThePlanIsInIt) {
  const std::string before = text();
  const auto differs = [&](auto change) {
    ChildPlan other = plan_;
    change(other);
    return start_text(other, spec_) != before;
  };
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.argv.emplace_back("--more"); }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.environment["KEY"] = "x"; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.working_dir = "/other"; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.own_dir = "/other"; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.busy.path = "/other"; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.also_kept = "/other"; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.sees_hidden = true; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.limits.memory_max = 1; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.limits.pids_max = 1; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.limits.cpu_max_percent = 1; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.jail->net = TreeNet::none; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.jail->has_call_filter = true; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.jail->file_bytes_max = 1; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) { plan.jail.reset(); }));
  EXPECT_TRUE(differs(
      [](ChildPlan& plan) { plan.jail = JailPlan{.places = {{JailPlace::Kind::read, "/work"}}}; }));
  EXPECT_TRUE(differs([](ChildPlan& plan) {
    plan.jail =
        JailPlan{.places = {{JailPlace::Kind::write, "/work"}, {JailPlace::Kind::write, "/x"}}};
  }));
}

TEST_F(StartTextTest, TheOwnerCountsWhereSomethingIsToldOfIt) {
  ChildPlan other = plan_;
  other.owner = "another";
  EXPECT_EQ(start_text(other, spec_), text());
  plan_.limits.memory_max = other.limits.memory_max = 1;
  EXPECT_NE(start_text(other, spec_), text());
  plan_.limits = other.limits = {};
  plan_.jail->net = other.jail->net = TreeNet::proxy;
  EXPECT_NE(start_text(other, spec_), text());
}

TEST_F(StartTextTest, ALoginThatIsKeptApartIsLookedAtThere) {
  spec_.login.storage_variable = "AGENT_LOGIN";
  std::filesystem::create_directory(dir_ + "/kept");
  plan_.environment["AGENT_LOGIN"] = dir_ + "/kept";
  const std::string before = text();
  write("login.json", "not this one");
  EXPECT_EQ(text(), before);
  write("kept/login.json", "this one");
  EXPECT_NE(text(), before);
}

TEST_F(StartTextTest, WhereOneWordEndsMatters) {
  ChildPlan one = plan_;
  ChildPlan two = plan_;
  one.argv = {"a", "bc"};
  two.argv = {"ab", "c"};
  EXPECT_NE(start_text(one, spec_), start_text(two, spec_));
}

TEST_F(StartTextTest, AProgramThatWasReplacedIsAnother) {
  const std::string before = text();
  write("agent", "two");
  std::filesystem::permissions(dir_ + "/agent", std::filesystem::perms::owner_all);
  EXPECT_NE(text(), before);
}

TEST_F(StartTextTest, AnotherLoginIsAnother) {
  const std::string before = text();
  write("login.json", "{}");
  const std::string logged_in = text();
  EXPECT_NE(logged_in, before);
  write("login.json", "[]");
  EXPECT_NE(text(), logged_in);
}

TEST_F(StartTextTest, TheOwnersSettingsCountOnlyWhereTheyApply) {
  const std::string before = text();
  write("settings.json", "{}");
  EXPECT_EQ(text(), before);
  spec_.applies_owner_settings = true;
  const std::string applied = text();
  write("settings.json", "{ }");
  EXPECT_NE(text(), applied);
}

}  // namespace
}  // namespace clawdforge
