// What the tests of agents share: a Spawner on an event loop, a directory with `work` and `tmp`
// in it, and shell scripts as programs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "agent/core/agent_starter.h"
#include "base/async/run_to_end.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "process/tree/spawner.h"

namespace clawdforge {

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as the daemon does
    std::string pattern = (std::filesystem::temp_directory_path() / "agent-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directory(root_ / "work");
    std::filesystem::create_directory(root_ / "tmp");
    Spawner::Options options;
    options.kill_grace = std::chrono::milliseconds(200);
    auto made = Spawner::make(io_.get_executor(), options, log_);
    ASSERT_TRUE(made) << made.error().message;
    spawner_ = std::move(*made);
  }
  void TearDown() override {
    if (spawner_) {
      run_to_end(io_, done(spawner_->stop()));
      EXPECT_EQ(spawner_->alive(), 0U);
    }
    spawner_.reset();
    std::filesystem::remove_all(root_);
  }

  static Task<bool> done(Task<void> task) {
    co_await std::move(task);
    co_return true;
  }

  // A shell script in bin.
  std::string write_program(const std::string& name, const std::string& script) {
    const std::filesystem::path path = root_ / "bin" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string search_path() const { return (root_ / "bin").string() + ":/usr/bin:/bin"; }

  StartOrder order_for(AgentSpec spec) const {
    return {.spec = std::move(spec),
            .app = AppName("news"),
            .working_dir = root_ / "work",
            .temp_dir = root_ / "tmp",
            .own_dir = root_};
  }

  // What a program has left in its working directory.
  std::string content(const std::string& file) const {
    std::ifstream stream(root_ / "work" / file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  IoContext io_;
  Log log_{LogLevel::error, LogFormat::text};
  Metrics metrics_;
  std::filesystem::path root_;
  std::unique_ptr<Spawner> spawner_;
};

}  // namespace clawdforge
