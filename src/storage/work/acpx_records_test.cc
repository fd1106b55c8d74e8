#include "storage/work/acpx_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "base/async/run_to_end.h"
#include "base/secret.h"
#include "storage/disk/tree.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class AcpxRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "acpx-records-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    home_ = root_ / "home";
    sockets_ = root_ / ("acpx-" + to_hex(sha256(home_.string())).substr(0, 10));
    for (const fs::path& folder : {home_ / ".acpx/sessions", home_ / ".acpx/queues", sockets_}) {
      fs::create_directories(folder);
    }
  }
  void TearDown() override {
    disk_.stop();
    fs::remove_all(root_);
  }

  void write(const fs::path& file) { std::ofstream(file) << "x"; }
  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  Result<void> remove(const std::string& id) {
    AcpxRecords records(home_, disk_, root_);
    return run_to_end(io_, records.remove(id));
  }

  IoContext io_;
  Disk disk_{io_.get_executor()};
  fs::path root_;
  fs::path home_;
  fs::path sockets_;
};

// An agent of one app can fill these directories, and every app waits for the one disk thread.
TEST_F(AcpxRecordsTest, LooksThroughManyFilesInSteps) {
  const fs::path sessions = home_ / ".acpx/sessions";
  for (std::size_t i = 0; i < 2 * kTreeStepEntriesMax; ++i) write(sessions / std::to_string(i));
  write(home_ / ".acpx/queues" / (to_hex(sha256("abc")).substr(0, 24) + ".lock"));
  AcpxRecords records(home_, disk_, root_);
  std::optional<bool> was_there;
  const auto other_job = [queues = home_ / ".acpx/queues"]() -> Result<bool> {
    return !names_in(queues).empty();
  };
  Result<void> removed = fail(Errc::internal, "", "");
  boost::asio::co_spawn(io_, records.remove("acpx:abc", Lane(AppName("greedy"))),
                        [&](std::exception_ptr, Result<void> result) { removed = result; });
  boost::asio::co_spawn(io_, disk_.call(Lane(AppName("modest")), other_job),
                        [&](std::exception_ptr, Result<bool> result) { was_there = *result; });
  io_.run();
  EXPECT_TRUE(removed);
  EXPECT_EQ(was_there, true) << "another app's job was done between two steps";
  EXPECT_TRUE(names_in(home_ / ".acpx/queues").empty());
}

TEST_F(AcpxRecordsTest, RemovesAllOfOneRecordAndNothingElse) {
  const fs::path sessions = home_ / ".acpx/sessions";
  for (const char* name : {"abc.json", "abc.stream.ndjson", "abc.stream.1.ndjson",
                           "abc.stream.lock", "abcd.json", "abc.other.json", "index.json"}) {
    write(sessions / name);
  }
  const std::string ours = to_hex(sha256("abc")).substr(0, 24);
  const std::string other = to_hex(sha256("abcd")).substr(0, 24);
  write(home_ / ".acpx/queues" / (ours + ".lock"));
  write(home_ / ".acpx/queues" / (other + ".lock"));
  write(sockets_ / (ours + ".sock"));
  write(sockets_ / (other + ".sock"));
  ASSERT_TRUE(remove("acpx:abc"));
  EXPECT_THAT(names_in(sessions),
              UnorderedElementsAre("abcd.json", "abc.other.json", "index.json"));
  EXPECT_THAT(names_in(home_ / ".acpx/queues"), UnorderedElementsAre(other + ".lock"));
  EXPECT_THAT(names_in(sockets_), UnorderedElementsAre(other + ".sock"));
  EXPECT_TRUE(remove("acpx:abc"));
}

TEST_F(AcpxRecordsTest, OneDescriptorIsEnough) {
  const fs::path record = home_ / ".acpx/sessions/abc.json";
  write(record);
  ASSERT_TRUE(remove("acpx:other"));  // all that stays open is open now
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = dup(STDERR_FILENO);
  ASSERT_EQ(close(lowest), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(lowest) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto removed = remove("acpx:abc");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(removed) << removed.error().detail;
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(AcpxRecordsTest, LeavesTheSessionsOfOtherAgentsAlone) {
  write(home_ / ".acpx/sessions/abc.json");
  EXPECT_TRUE(remove("abc"));
  EXPECT_TRUE(remove(""));
  EXPECT_TRUE(remove("acpx:"));
  EXPECT_TRUE(remove("acpx:" + std::string(5000, 'x')));
  EXPECT_THAT(names_in(home_ / ".acpx/sessions"), UnorderedElementsAre("abc.json"));
}

TEST_F(AcpxRecordsTest, AnIdCannotLeadOutOfTheDirectory) {
  write(home_ / "secret.json");
  write(home_ / ".acpx/sessions/..%2F..%2Fsecret.json");
  EXPECT_TRUE(remove("acpx:../../secret"));
  EXPECT_TRUE(fs::exists(home_ / "secret.json"));
  EXPECT_TRUE(names_in(home_ / ".acpx/sessions").empty());
}

TEST_F(AcpxRecordsTest, SaysWhatItCannotRemove) {
  fs::create_directory(home_ / ".acpx/sessions/abc.json");
  const auto removed = remove("acpx:abc");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind, Errc::unavailable);
}

TEST_F(AcpxRecordsTest, AHomeWithoutAcpxHasNothing) {
  fs::remove_all(home_);
  EXPECT_TRUE(remove("acpx:abc"));
}

}  // namespace
}  // namespace clawdforge
