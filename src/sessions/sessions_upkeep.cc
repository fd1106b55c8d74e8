// What Sessions does beside its calls: rows that the ledger did not remove, and how much waits.
#include <utility>

#include "base/async_tokens.h"
#include "sessions/sessions.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUndroppedMax = 1'000;  // sessions that were not made, and have a row
constexpr std::chrono::seconds kDropPause{1};

}  // namespace

// One that is left out is closed when it has been idle for long; if no agent's session is in
// it, the next start removes it.
void Sessions::drop_again(std::string id) {
  if (undropped_ >= kUndroppedMax) return;
  ++undropped_;
  tasks_.spawn(drop_later(std::move(id)));
}

Task<void> Sessions::drop_later(std::string id) {
  Timer pause(deps_.executor);
  for (bool is_dropped = false; !is_dropped && !is_stopping_;) {
    pause.expires_after(kDropPause);
    co_await pause.async_wait(kAwait);
    const auto dropped = co_await deps_.ledger.drop_session(id);
    is_dropped = dropped.has_value();
  }
  --undropped_;
}

Sessions::Load Sessions::load() const {
  Load load{.undropped = undropped_};
  for (const auto& [id, live] : live_) {
    load.turns_waiting += live->turns().waiting();
    load.questions_open += std::as_const(*live).questions().open_count();
    load.answer_bytes += live->turns().answer_bytes();
    load.journal_bytes += live->journal().waiting_bytes();
  }
  for (const auto& [id, place] : feeds_) {
    const auto feed = place.lock();
    if (!feed) continue;
    load.readers += feed->listeners();
    load.feed_bytes += feed->ring_bytes();
  }
  return load;
}

}  // namespace clawdforge
