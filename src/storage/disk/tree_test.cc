#include "storage/disk/tree.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <thread>

#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class TreeTest : public WorkspaceTest {
 protected:
  TreeTest() : parent_(open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  // Deeper than any path can say.
  void make_deep(const std::string& name, int depth) {
    ASSERT_EQ(mkdirat(parent_.number(), name.c_str(), 0700), 0);
    Descriptor at(openat(parent_.number(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string step(20, 'd');
    for (int i = 0; i < depth; ++i) {
      ASSERT_EQ(mkdirat(at.number(), step.c_str(), 0700), 0);
      const Descriptor file(openat(at.number(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      ASSERT_TRUE(file.is_open());
      at = Descriptor(openat(at.number(), step.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ASSERT_TRUE(at.is_open());
    }
  }

  void expect_removed(const std::string& name) {
    const auto removed = remove_tree(parent_.number(), name);
    EXPECT_TRUE(removed) << removed.error().detail;
    EXPECT_FALSE(exists(path(name)));
  }

  Descriptor parent_;
};

TEST_F(TreeTest, RemovesFilesDirectoriesAndWhatIsNeither) {
  std::filesystem::create_directories(path("run/a/b"));
  std::filesystem::create_directories(path("run/empty"));
  write_file(path("run/a/b/file"), "text");
  write_file(path("run/a/-rf \n\xff"), "an odd name");
  ASSERT_EQ(mkfifo(path("run/a/fifo").c_str(), 0600), 0);
  const Descriptor door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("run/s").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(door.number(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  write_file(path("other"), "stays");
  expect_removed("run");
  EXPECT_EQ(names_in(root_), std::set<std::string>{"other"});
}

TEST_F(TreeTest, ANameMayBeAFileALinkOrNothing) {
  write_file(path("file"), "text");
  std::filesystem::create_directory(path("kept"));
  write_file(path("kept/inside"), "text");
  std::filesystem::create_symlink("kept", path("link"));
  expect_removed("file");
  expect_removed("link");
  expect_removed("never-there");
  EXPECT_EQ(read_file(path("kept/inside")), "text");
}

TEST_F(TreeTest, FollowsNoLinkOutOfTheTree) {
  std::filesystem::create_directories(path("outside/inner"));
  write_file(path("outside/inner/file"), "text");
  ASSERT_EQ(chmod(path("outside/inner").c_str(), 0500), 0);
  std::filesystem::create_directories(path("run/deep"));
  std::filesystem::create_symlink(path("outside"), path("run/a"));
  std::filesystem::create_symlink(path("outside/inner"), path("run/deep/b"));
  std::filesystem::create_symlink(path("outside/inner/file"), path("run/deep/c"));
  std::filesystem::create_symlink("/", path("run/deep/d"));
  std::filesystem::create_symlink("..", path("run/deep/e"));
  std::filesystem::create_hard_link(path("outside/inner/file"), path("run/deep/hard"));
  expect_removed("run");
  EXPECT_EQ(read_file(path("outside/inner/file")), "text");
  EXPECT_EQ(mode_of(path("outside/inner")), 0500u);
}

TEST_F(TreeTest, EntersDirectoriesThatNoUserMayEnter) {
  for (const char* name : {"run/a/b/c", "run/d/e", "run/f"}) {
    std::filesystem::create_directories(path(name));
    write_file(path(name) + "/file", "text");
    ASSERT_EQ(chmod((path(name) + "/file").c_str(), 0), 0);
  }
  ASSERT_EQ(chmod(path("run/a/b/c").c_str(), 0), 0);
  ASSERT_EQ(chmod(path("run/a/b").c_str(), 0), 0);
  ASSERT_EQ(chmod(path("run/a").c_str(), 0), 0);
  ASSERT_EQ(chmod(path("run/d/e").c_str(), 0500), 0) << "may be read, not written";
  ASSERT_EQ(chmod(path("run/d").c_str(), 0300), 0) << "may be written, not read";
  ASSERT_EQ(chmod(path("run/f").c_str(), 0600), 0) << "may be read, not entered";
  ASSERT_EQ(chmod(path("run").c_str(), 0), 0);
  expect_removed("run");
}

TEST_F(TreeTest, NeedsFewDescriptorsHoweverDeepATreeIs) {
  make_deep("run", 300);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const Descriptor next(dup(parent_.number()));
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next.number()) + 16;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto removed = remove_tree(parent_.number(), "run");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(removed) << removed.error().detail;
  EXPECT_FALSE(exists(path("run")));
}

TEST_F(TreeTest, GoesStepByStep) {
  std::filesystem::create_directories(path("run/wide"));
  for (int i = 0; i < 250; ++i) write_file(path("run/wide/") + std::to_string(i), "");
  for (int i = 0; i < 50; ++i)
    std::filesystem::create_directories(path("run/n/") + std::to_string(i) + "/m");
  std::size_t steps = 0;
  for (;; ++steps) {
    ASSERT_LT(steps, 100u);
    const auto step = remove_tree_step(parent_.number(), "run", 20);
    ASSERT_TRUE(step) << step.error().detail;
    if (*step == TreeStep::done) break;
    EXPECT_TRUE(exists(path("run")));
  }
  EXPECT_GT(steps, 300u / 20);
  EXPECT_FALSE(exists(path("run")));
}

TEST_F(TreeTest, SurvivesAProcessThatIsStillWriting) {
  std::filesystem::create_directories(path("run/work"));
  std::atomic<bool> is_ending = false;
  std::atomic<int> made = 0;
  std::thread writer([&] {
    for (int i = 0; !is_ending; ++i) {
      const std::string name = path("run/work/") + std::to_string(i % 50);
      std::error_code error;
      std::filesystem::create_directories(name, error);
      std::ofstream(name + "/file") << i;
      ++made;
    }
  });
  while (made < 100) std::this_thread::yield();
  // It wins every now and then, and is never an error.
  for (int i = 0; i < 20; ++i) {
    const auto step = remove_tree_step(parent_.number(), "run", 500);
    EXPECT_TRUE(step) << step.error().detail;
  }
  is_ending = true;
  writer.join();
  expect_removed("run");
}

TEST_F(TreeTest, SaysWhatCannotBeRemovedAndRemovesTheRest) {
  if (geteuid() == 0) GTEST_SKIP() << "root may remove everything; shown as an ordinary user";
  std::filesystem::create_directories(path("run/a"));
  write_file(path("run/a/file"), "text");
  write_file(path("run/file"), "text");
  // From a directory that is not ours nothing may be removed, and its mode is not ours either.
  ASSERT_EQ(chmod(root_.c_str(), 0500), 0);
  const auto removed = remove_tree(parent_.number(), "run");
  ASSERT_EQ(chmod(root_.c_str(), 0700), 0);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::unavailable);
  EXPECT_EQ(removed.error().code, "workspace_unavailable");
  EXPECT_NE(removed.error().detail.find("Permission denied"), std::string::npos);
  EXPECT_TRUE(names_in(path("run")).empty());
}

}  // namespace
}  // namespace clawdforge
