#include "agent/memory/agent_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/memory/tree_memory.h"
#include "base/async/run_to_end.h"
#include "process/tree/proc_entry.h"

namespace clawdforge {
namespace {

class AgentMemoryTest : public testing::Test {
 protected:
  static Task<bool> measured(AgentMemory* memory) {
    co_await memory->measure();
    co_return true;
  }
  void measure() { run_to_end(io_, measured(&memory_)); }
  std::shared_ptr<TrackedTree> start(std::int64_t pid, std::uint64_t bytes,
                                     const std::string& app = "news") {
    sizes_[pid] = bytes;
    return memory_.track({.process = {pid, 1},
                          .app = AppName(app),
                          .agent = "claude",
                          .own_dir = "/s/" + std::to_string(pid)});
  }

  IoContext io_{1};
  ComputeWorker compute_{io_.get_executor()};
  Metrics metrics_;
  std::map<std::int64_t, std::uint64_t> sizes_;
  AgentMemory memory_{
      {io_.get_executor(), compute_, metrics_, [this](ProcessId tree) { return sizes_[tree.pid]; }},
      1'000};
};

TEST_F(AgentMemoryTest, ItSumsUpWhatLives) {
  const auto one = start(1, 300);
  auto two = start(2, 200);
  measure();
  EXPECT_EQ(memory_.bytes(), 500U);
  EXPECT_EQ(memory_.bytes_of_agent("claude"), 500U);
  EXPECT_EQ(memory_.bytes_of_agent("other"), 0U);
  EXPECT_EQ(memory_.bytes_of_dir("/s/2"), 200U);
  EXPECT_EQ(memory_.excess(), 0U);
  two.reset();
  EXPECT_EQ(memory_.bytes(), 300U);
}

TEST_F(AgentMemoryTest, WhatIsNotMeasuredCountsAsOthersOfItsAgent) {
  const auto one = start(1, 400);
  EXPECT_EQ(memory_.bytes(), 0U);
  measure();
  const auto two = start(2, 10);
  EXPECT_EQ(memory_.bytes(), 800U);
  EXPECT_FALSE(memory_.is_full());
  const auto three = start(3, 10);
  EXPECT_TRUE(memory_.is_full());
  EXPECT_EQ(memory_.excess(), 200U);
  measure();
  EXPECT_EQ(memory_.bytes(), 420U);
}

TEST_F(AgentMemoryTest, ItTellsOfMeasurementsOfFullnessAndOfEnds) {
  int told = 0;
  memory_.on_change([&] { ++told; });
  auto one = start(1, 1'000);
  EXPECT_EQ(told, 0);
  measure();
  EXPECT_EQ(told, 1);
  auto two = start(2, 1);
  EXPECT_EQ(told, 2);
  two.reset();
  one.reset();
  EXPECT_EQ(told, 4);
  EXPECT_FALSE(memory_.is_full());
}

TEST_F(AgentMemoryTest, AppsHaveABoundedNumberOfSeries) {
  std::vector<std::shared_ptr<TrackedTree>> trees;
  for (std::size_t i = 0; i < kMemoryAppLabelsMax + 10; ++i) {
    trees.push_back(start(static_cast<std::int64_t>(i), 1, "app-" + std::to_string(i)));
  }
  measure();
  memory_.show();
  const std::string text = metrics_.render();
  EXPECT_NE(text.find(R"(clawdforge_app_memory_bytes{app="other"} 10)"), std::string::npos);
  EXPECT_NE(text.find(R"(clawdforge_agent_memory_bytes{agent="claude"} 60)"), std::string::npos);
}

TEST(TreeMemoryTest, OurOwnTreeHasSome) {
  const auto entry = proc_entry(::getpid());
  ASSERT_TRUE(entry);
  const std::uint64_t bytes = private_bytes({::getpid(), entry->start_time});
  EXPECT_GT(bytes, 64U * 1024);
  EXPECT_LT(bytes, machine_memory_bytes());
  // Another process that had this id once.
  EXPECT_EQ(private_bytes({::getpid(), entry->start_time + 1}), 0U);
}

}  // namespace
}  // namespace clawdforge
