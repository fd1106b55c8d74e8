#include "upkeep/upload_recovery.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace clawdforge {
namespace {

struct Mismatch {
  std::vector<std::string> strays;  // files that no row knows
  std::vector<Digest> empty;        // rows without a file
};

Mismatch compare(const std::vector<std::string>& files, const std::vector<Digest>& rows) {
  Mismatch found;
  std::unordered_set<std::string> known;
  for (const Digest& row : rows) known.insert(to_hex(row));
  std::unordered_set<std::string> there;
  for (const std::string& file : files) {
    if (known.contains(file)) {
      there.insert(file);
    } else {
      found.strays.push_back(file);
    }
  }
  for (const Digest& row : rows) {
    if (!there.contains(to_hex(row))) found.empty.push_back(row);
  }
  return found;
}

}  // namespace

Async<UploadsRecovered> recover_uploads(RecoveryDependencies deps) {
  auto files = co_await deps.upload_files.names();
  if (!files) co_return std::unexpected(std::move(files.error()));
  auto rows = co_await deps.ledger.uploads.all();
  if (!rows) co_return std::unexpected(std::move(rows.error()));
  Mismatch found = compare(*files, *rows);
  UploadsRecovered recovered{.files_removed = static_cast<std::int64_t>(found.strays.size()),
                             .rows_removed = static_cast<std::int64_t>(found.empty.size())};
  if (found.strays.empty() && found.empty.empty()) co_return recovered;
  const auto tidied = co_await deps.upload_files.remove_named(std::move(found.strays));
  if (!tidied) {
    recovered.files_removed = 0;  // how many are left is not known
    deps.log.warn("a file that no upload knows cannot be removed",
                  {{"why", std::string_view(tidied.error().detail)}});
  }
  if (found.empty.empty()) co_return recovered;
  const auto removed = co_await deps.ledger.uploads.remove(std::move(found.empty));
  if (!removed) co_return std::unexpected(removed.error());
  co_return recovered;
}

}  // namespace clawdforge
