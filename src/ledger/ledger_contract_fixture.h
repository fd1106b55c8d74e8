// For tests: a ledger on each database there is a driver for, with rows that another program
// has left in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ledger/core/migrations.h"
#include "ledger/ledger_fixture.h"

namespace clawdforge {

inline TimePoint at_second(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

struct Database {
  std::string name;
  Result<std::unique_ptr<SqliteDriver>> (*open)(const TempDir& dir);
};

class LedgerContract : public ::testing::TestWithParam<Database> {
 protected:
  // Opens the ledger with rows that another program has left in it.
  void open(const std::string& rows = {}) {
    auto driver = GetParam().open(dir_);
    ASSERT_TRUE(driver) << driver.error().message;
    const auto migrated = migrate(**driver, kSchemaFiles, "under test", at_second(0));
    ASSERT_TRUE(migrated) << migrated.error().message;
    const auto seeded = (*driver)->run_script(rows);
    ASSERT_TRUE(seeded) << seeded.error().detail;
    house_.ledger =
        std::make_unique<Ledger>(std::move(*driver), InstanceId("i1"), house_.io.get_executor(),
                                 LedgerWorkerOptions{}, house_.log, house_.metrics);
  }

  template <class T>
  Result<T> await(Async<T> call) {
    return house_.await(std::move(call));
  }
  Ledger& ledger() { return *house_.ledger; }
  RowsOfAnother as(const std::string& instance_id) { return house_.as(instance_id); }
  std::vector<App> apps() { return await(ledger().apps.list()).value().apps; }

  TempDir dir_;
  LedgerHouse house_;
};

inline auto databases() {
  return ::testing::Values(
      Database{"SqliteFile",
               [](const TempDir& dir) { return SqliteDriver::open(dir.file("l.db"), {}); }},
      Database{"SqliteMemory", [](const TempDir&) { return SqliteDriver::open(":memory:", {}); }});
}
inline std::string name_of_database(const ::testing::TestParamInfo<Database>& database) {
  return database.param.name;
}

}  // namespace clawdforge
