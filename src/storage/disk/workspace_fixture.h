// For tests: a directory of its own that goes whatever is in it, and a disk.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/async/run_to_end.h"
#include "base/descriptor.h"
#include "base/telemetry/log.h"
#include "storage/disk/disk.h"
#include "storage/disk/tree.h"

namespace clawdforge {

// All steps in one.
inline Result<void> remove_tree(int parent, const std::string& name) {
  for (;;) {
    auto step = remove_tree_step(parent, name, kTreeStepEntriesMax);
    if (!step) return std::unexpected(std::move(step.error()));
    if (*step == TreeStep::done) return {};
  }
}

class WorkspaceTest : public ::testing::Test {
 protected:
  WorkspaceTest() : root_(::testing::TempDir() + "workspace-XXXXXX") {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
  }
  ~WorkspaceTest() override {
    const Descriptor parent(open(::testing::TempDir().c_str(), O_RDONLY | O_DIRECTORY));
    EXPECT_TRUE(remove_tree(parent.number(), std::filesystem::path(root_).filename()));
  }

  template <class T>
  T await(Task<T> task) {
    return run_to_end(io_, std::move(task));
  }

  std::string path(const std::string& name) const { return root_ + "/" + name; }

  static void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // As an agent may leave it: files in a directory that not even its owner may enter.
  static void fill_with_a_closed_tree(const std::string& path) {
    std::filesystem::create_directories(path + "/a/b");
    for (int i = 0; i < 10; ++i) write_file(path + "/a/b/" + std::to_string(i), "text");
    ASSERT_EQ(chmod((path + "/a").c_str(), 0), 0);
  }
  static bool exists(const std::string& path) {
    struct stat found{};
    return lstat(path.c_str(), &found) == 0;
  }
  static struct stat status_of(const std::string& path) {
    struct stat found{};
    EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
    return found;
  }
  static mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }
  static std::set<std::string> names_in(const std::string& path) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::string root_;
  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::text};
  Disk disk_{io_.get_executor()};
};

}  // namespace clawdforge
