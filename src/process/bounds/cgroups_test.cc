#include "process/bounds/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// A directory takes the place of the kernel's, so files have to be there before they are written.
class CgroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "cgroups-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string file(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return root_ / path;
  }
  std::string text(const fs::path& path) const {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }
  Cgroups::Places places(const std::string& groups, const std::string& mounts, bool is_root) {
    return {.own_groups = file("proc/cgroup", groups),
            .mounts = file("proc/mountinfo", mounts),
            .is_root = is_root};
  }
  std::string mount(const std::string& at, const std::string& type, const std::string& options) {
    return "30 24 0:26 / " + (root_ / at).string() + " rw,relatime shared:4 - " + type + " none " +
           options + "\n";
  }

  fs::path root_;
};

TEST_F(CgroupsTest, UsesVersionTwoWhereItWasGiven) {
  file("fs/own.service/cgroup.controllers", "cpu io memory pids\n");
  file("fs/own.service/cgroup.subtree_control", "");
  file("fs/own.service/cgroup.procs", "");
  file("fs/own.service/clawdforge-gateway/cgroup.procs", "");
  const auto found =
      Cgroups::find(places("0::/own.service\n", mount("fs", "cgroup2", "rw"), false));
  EXPECT_EQ(found.means(), LimitMeans::cgroup2);
  EXPECT_TRUE(found.has_processor());
  EXPECT_EQ(text(root_ / "fs/own.service/cgroup.subtree_control"), "+memory +pids +cpu");
  EXPECT_EQ(text(root_ / "fs/own.service/clawdforge-gateway/cgroup.procs"),
            std::to_string(::getpid()));
}

TEST_F(CgroupsTest, CountsWhereNoneIsGiven) {
  file("fs/scope/cgroup.controllers", "pids\n");
  const auto found = Cgroups::find(places("0::/scope\n", mount("fs", "cgroup2", "rw"), true));
  EXPECT_EQ(found.means(), LimitMeans::counting);
  EXPECT_THAT(found.obstacle(), HasSubstr("controllers"));
  EXPECT_EQ(Cgroups::find(places("", "", true)).means(), LimitMeans::counting);
}

TEST_F(CgroupsTest, OnlyLooksWhenAskedTo) {
  file("fs/own/cgroup.controllers", "memory pids\n");
  file("fs/own/cgroup.subtree_control", "");
  auto only = places("0::/own\n", mount("fs", "cgroup2", "rw"), false);
  only.only_looks = true;
  EXPECT_EQ(Cgroups::find(only).means(), LimitMeans::cgroup2);
  EXPECT_EQ(text(root_ / "fs/own/cgroup.subtree_control"), "");
  EXPECT_FALSE(fs::exists(root_ / "fs/own/clawdforge-gateway"));
}

TEST_F(CgroupsTest, OfVersionOneOnlyForRoot) {
  fs::create_directories(root_ / "memory/own");
  fs::create_directories(root_ / "pids");
  fs::create_directories(root_ / "pids/clawdforge-tree-999999999-3");
  const std::string groups = "4:memory:/own\n3:pids:/\n1:cpu,cpuacct:/gone\n0::/\n";
  const std::string mounts =
      mount("memory", "cgroup", "rw,memory") + mount("pids", "cgroup", "rw,pids");
  EXPECT_EQ(Cgroups::find(places(groups, mounts, false)).means(), LimitMeans::counting);
  auto found = Cgroups::find(places(groups, mounts, true));
  EXPECT_EQ(found.means(), LimitMeans::cgroup1);
  EXPECT_FALSE(found.has_processor());
  EXPECT_FALSE(fs::exists(root_ / "pids/clawdforge-tree-999999999-3")) << "its gateway is gone";

  const std::string own = "clawdforge-tree-" + std::to_string(::getpid()) + "-1";
  file(fs::path("memory/own") / own / "memory.limit_in_bytes", "");
  file(fs::path("pids") / own / "pids.max", "");
  TreeBounds bounds;
  ASSERT_TRUE(found.make({.memory_max = 1000, .pids_max = 7}, bounds));
  EXPECT_THAT(bounds.cgroups,
              ElementsAre((root_ / "memory/own" / own).string(), (root_ / "pids" / own).string()));
  EXPECT_EQ(text(root_ / "memory/own" / own / "memory.limit_in_bytes"), "1000");
  EXPECT_EQ(text(root_ / "pids" / own / "pids.max"), "7");
  EXPECT_THAT(bounds.oom_count, HasSubstr("memory.oom_control"));
  EXPECT_TRUE(bounds.is_oom_polled);
}

TEST_F(CgroupsTest, RefusesATreeWhoseLimitCannotBeWritten) {
  fs::create_directories(root_ / "memory");
  fs::create_directories(root_ / "pids");
  const std::string mounts =
      mount("memory", "cgroup", "rw,memory") + mount("pids", "cgroup", "rw,pids");
  auto found = Cgroups::find(places("4:memory:/\n3:pids:/\n", mounts, true));
  TreeBounds bounds;
  const auto made = found.make({.memory_max = 1000}, bounds);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "no_resources");
  EXPECT_TRUE(fs::is_empty(root_ / "memory")) << "nothing is left";
}

}  // namespace
}  // namespace clawdforge
