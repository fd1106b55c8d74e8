// For tests: uploads with their files in a directory of their own and their rows in a ledger in
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"
#include "storage/work/upload_files.h"

namespace clawdforge {

class UploadsFixture : public ::testing::Test {
 protected:
  UploadsFixture() {
    ledger_ = std::move(
        *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
  }
  ~UploadsFixture() override { std::filesystem::remove_all(root_); }

  // A row that expires after `ttl`, and its file.
  void upload(const std::string& name, std::chrono::seconds ttl, bool has_file = true) {
    Upload upload;
    upload.token_digest = sha256(name);
    upload.app = AppName("app");
    upload.created_at = clock_.now();
    upload.expires_at = clock_.now() + ttl;
    ASSERT_TRUE(run_to_end(io_, ledger_->uploads.add(upload)));
    if (has_file) put_file(to_hex(sha256(name)));
  }
  void put_file(const std::string& name) {
    std::filesystem::create_directories(root_ + "/uploads");
    std::ofstream(root_ + "/uploads/" + name) << "text";
  }
  std::set<std::string> files() {
    const auto names = run_to_end(io_, files_.names());
    return {names->begin(), names->end()};
  }
  std::set<std::string> rows() {
    std::set<std::string> names;
    for (const Digest& digest : run_to_end(io_, ledger_->uploads.all()).value()) {
      names.insert(to_hex(digest));
    }
    return names;
  }
  static std::set<std::string> named(std::initializer_list<const char*> names) {
    std::set<std::string> digests;
    for (const char* name : names) digests.insert(to_hex(sha256(name)));
    return digests;
  }

  static std::string new_directory() {
    std::string path = ::testing::TempDir() + "uploads-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
    return path;
  }

  const std::string root_ = new_directory();
  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::text};
  Metrics metrics_;
  ManualClock clock_{TimePoint(std::chrono::hours(500'000))};
  Disk disk_{io_.get_executor()};
  UploadFiles files_{root_, disk_};
  std::unique_ptr<Ledger> ledger_;
};

}  // namespace clawdforge
