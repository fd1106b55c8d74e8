#include "browsers/owner_notes.h"

#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::chrono::hours kReadNotedFor{1};
constexpr std::size_t kReadNotesMax = 4'096;  // when there are more, all are noted again

}  // namespace

Async<void> OwnerNotes::note(Deed deed) {
  const TimePoint now = clock_.now();
  const bool only_reads = deed.method == "GET";
  const auto key = std::pair(deed.app, deed.session_id);
  if (only_reads) {
    const auto noted = read_.find(key);
    if (noted != read_.end() && now - noted->second < kReadNotedFor) co_return Result<void>{};
  }
  std::string members = R"("method":)";
  append_json_string(members, deed.method);
  members += R"(,"path":)";
  append_json_string(members, deed.path);
  auto written =
      co_await rows_.note(token_event("act_as", deed.by, now, members), deed.app, deed.session_id);
  if (written && only_reads) {
    if (read_.size() >= kReadNotesMax) read_.clear();
    read_.insert_or_assign(key, now);
  }
  co_return written;
}

}  // namespace clawdforge
