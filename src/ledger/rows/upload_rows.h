// The rows of uploads. What every call promises, and which errors each may give:
// ledger/ledger.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "model/ask_key.h"
#include "model/upload.h"

namespace clawdforge {

class LedgerWorker;

class UploadRows {
 public:
  explicit UploadRows(LedgerWorker& worker) : worker_(worker) {}

  // Those of the app's uploads that are there and not expired at `now`, in the order of
  // the digests. Errc::not_found "file_not_found" if any is missing.
  Async<std::vector<Upload>> find(AppName app, std::vector<Digest> digests, TimePoint now) const;
  // The oldest first, at most `limit`.
  Async<std::vector<Digest>> expired(TimePoint now, std::int64_t limit) const;
  Async<std::vector<Digest>> all() const;
  // The sizes of all uploads, by app, with `bytes_each` more for each of them.
  Async<std::map<AppName, std::int64_t>> bytes_by_app(std::int64_t bytes_each) const;

  // To add the same one again changes nothing.
  Async<void> add(Upload upload, std::optional<KeyWrite> key = {});
  Async<void> remove(std::vector<Digest> digests);

 private:
  LedgerWorker& worker_;
};

}  // namespace clawdforge
