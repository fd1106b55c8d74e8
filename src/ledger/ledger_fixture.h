// For tests: a directory of its own, a ledger with all it needs, and another program that
// works on the same file.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"

namespace clawdforge {

class TempDir {
 public:
  TempDir() : path_(::testing::TempDir() + "ledger-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The rows as another gateway process writes them.
struct RowsOfAnother {
  RowsOfAnother(Ledger& ledger, const std::string& instance_id)
      : runs(ledger.worker, InstanceId(instance_id)),
        sessions(ledger.worker, InstanceId(instance_id)),
        journal(ledger.worker, InstanceId(instance_id)),
        instances(ledger.worker, InstanceId(instance_id)) {}

  RunRows runs;
  SessionRows sessions;
  JournalRows journal;
  InstanceRows instances;
};

struct LedgerHouse {
  Result<void> open(const std::string& path, LedgerOptions options = {},
                    const std::string& self = "i1") {
    auto opened =
        open_ledger(io.get_executor(), "sqlite:" + path, InstanceId(self), log, metrics, options);
    if (!opened) return std::unexpected(opened.error());
    ledger = std::move(*opened);
    return {};
  }

  RowsOfAnother as(const std::string& instance_id) { return {*ledger, instance_id}; }

  template <class T>
  Result<T> await(Async<T> call) {
    return run_to_end(io, std::move(call));
  }

  // The value of a line of /metrics.
  double metric(const std::string& name) const {
    std::istringstream lines(metrics.render());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }

  IoContext io;
  Log log{LogLevel::error, LogFormat::text};
  Metrics metrics;
  std::unique_ptr<Ledger> ledger;  // goes first
};

template <class Noun>
std::vector<std::string> texts_of(const std::vector<StrongId<Noun>>& ids) {
  std::vector<std::string> texts;
  for (const auto& id : ids) texts.push_back(id.str());
  return texts;
}

inline App app_named(const std::string& name) {
  App app;
  app.name = AppName(name);
  app.token_digest = sha256(name);
  app.created_at = TimePoint(std::chrono::seconds(1'700'000'000));
  return app;
}

// What sqlite3's command line would do.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& path) {
    if (sqlite3_open(path.c_str(), &connection_) != SQLITE_OK) std::abort();
  }
  ~OtherProgram() { sqlite3_close(connection_); }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  void run(const std::string& sql) { static_cast<void>(ask(sql)); }

  // All rows, columns joined by '|', rows by a newline.
  std::string ask(const std::string& sql) {
    std::string rows;
    const int code = sqlite3_exec(
        connection_, sql.c_str(),
        [](void* out, int count, char** columns, char**) {
          auto& text = *static_cast<std::string*>(out);
          if (!text.empty()) text += '\n';
          for (int i = 0; i < count; ++i) {
            if (i > 0) text += '|';
            text += columns[i] == nullptr ? "NULL" : columns[i];
          }
          return 0;
        },
        &rows, nullptr);
    EXPECT_EQ(code, SQLITE_OK) << sql << ": " << sqlite3_errmsg(connection_);
    return rows;
  }

 private:
  sqlite3* connection_ = nullptr;
};

}  // namespace clawdforge
