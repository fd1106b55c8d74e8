#include "ledger/core/migrations.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

namespace clawdforge {
namespace {

constexpr std::string_view kCreateTable =
    "CREATE TABLE IF NOT EXISTS schema_migrations ("
    "number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
constexpr std::string_view kLatest = "SELECT COALESCE(MAX(number), 0) FROM schema_migrations";
constexpr std::string_view kNote =
    "INSERT INTO schema_migrations (number, name, applied_at) VALUES ($1, $2, $3)";

std::string with_auto_id(std::string_view text, std::string_view type) {
  constexpr std::string_view kWord = " AUTO_ID,";
  std::string script(text);
  for (std::size_t at = script.find(kWord); at != std::string::npos; at = script.find(kWord, at)) {
    script.replace(at + 1, kWord.size() - 2, type);
  }
  return script;
}

Result<std::int64_t> latest(SqlDriver& driver) {
  if (auto made = driver.run_script(kCreateTable); !made) {
    return std::unexpected(std::move(made.error()));
  }
  auto result = driver.execute(kLatest);
  if (!result) return std::unexpected(std::move(result.error()));
  const auto* number = std::get_if<std::int64_t>(&result->rows.at(0).at(0));
  if (number == nullptr) {
    return fail(Errc::internal, "internal", "", "schema_migrations.number is not a number");
  }
  return *number;
}

// Applies the next one. Nothing means that there is none left.
Result<std::optional<int>> step(SqlDriver& driver, std::span<const SchemaFile> files,
                                TimePoint now) {
  const auto applied = latest(driver);
  if (!applied) return std::unexpected(applied.error());
  const auto known = static_cast<std::int64_t>(files.size());
  if (*applied > known) {
    return fail(Errc::conflict, "ledger_newer",
                fmt::format("was written by a newer clawdforge (schema {}, this program knows {}); "
                            "use that version.",
                            *applied, known));
  }
  if (*applied == known) return std::nullopt;
  const SchemaFile& file = files[static_cast<std::size_t>(*applied)];
  const std::string script = with_auto_id(file.text, driver.auto_id_type());
  if (auto ran = driver.run_script(script); !ran) return std::unexpected(std::move(ran.error()));
  auto noted = driver.execute(kNote, {*applied + 1, std::string(file.name), unix_seconds(now)});
  if (!noted) return std::unexpected(std::move(noted.error()));
  return static_cast<int>(*applied + 1);
}

Result<std::optional<int>> step_in_transaction(SqlDriver& driver, std::span<const SchemaFile> files,
                                               TimePoint now) {
  if (auto begun = driver.begin(Access::write); !begun) {
    return std::unexpected(std::move(begun.error()));
  }
  // Several programs may start at once.
  auto locked = driver.lock("migrations");
  auto stepped = locked ? step(driver, files, now) : std::unexpected(std::move(locked.error()));
  if (stepped) {
    auto committed = driver.commit();
    if (committed) return stepped;
    stepped = std::unexpected(std::move(committed.error()));
  }
  driver.rollback();
  return stepped;
}

// The number a file's name begins with, so that a gap or a double shows at the first start.
bool is_numbered(const SchemaFile& file, std::size_t number) {
  std::size_t found = 0;
  const auto parsed = std::from_chars(file.name.data(), file.name.data() + file.name.size(), found);
  return parsed.ec == std::errc() && found == number;
}

}  // namespace

Result<int> migrate(SqlDriver& driver, std::span<const SchemaFile> files, std::string_view place,
                    TimePoint now) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_numbered(files[i], i + 1)) {
      return fail(Errc::internal, "internal",
                  fmt::format("The migration {} should have the number {}.", files[i].name, i + 1));
    }
  }
  int count = 0;
  for (;;) {
    auto stepped = step_in_transaction(driver, files, now);
    if (!stepped) {
      Failure error = std::move(stepped.error());
      error.message =
          error.kind == Errc::conflict  // the drivers have no such failure
              ? fmt::format("The ledger {} {}", place, error.message)
              : fmt::format("The ledger {} cannot be brought up to date: {}.", place, error.detail);
      return std::unexpected(std::move(error));
    }
    if (!*stepped) return count;
    ++count;
  }
}

}  // namespace clawdforge
