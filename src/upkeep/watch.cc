#include "upkeep/watch.h"

#include <utility>

#include "base/async/async_tokens.h"

namespace clawdforge {
namespace {

// A row removed by another program must count within a second.
constexpr std::chrono::milliseconds kLookInterval{400};
constexpr int kLooksPerNote = 25;  // uses of tokens reach the ledger every 10 s
constexpr int kLooksPerBeat = 3;   // a ledger that refuses is tried about once a second

}  // namespace

Watch::Watch(Dependencies deps) : deps_(std::move(deps)), timer_(deps_.executor) {}

Async<void> Watch::begin() {
  auto mark = co_await deps_.ledger.foreign_change_mark();
  if (!mark) co_return std::unexpected(mark.error());
  // The mark is older than what is read now: a change in between shows at the next look.
  mark_ = *mark;
  auto reloaded = co_await deps_.apps.reload();
  if (!reloaded) co_return reloaded;
  co_return co_await count_sessions();
}

Async<void> Watch::count_sessions() {
  auto count = co_await deps_.ledger.sessions.count_open();
  if (!count) co_return std::unexpected(count.error());
  open_sessions_ = *count;
  co_return Result<void>{};
}

Async<void> Watch::look() {
  auto mark = co_await deps_.ledger.foreign_change_mark();
  if (!mark) co_return std::unexpected(mark.error());
  if (*mark != mark_ || is_doubtful_) {
    auto reloaded = co_await deps_.apps.reload();
    if (!reloaded) co_return reloaded;
    mark_ = *mark;
    is_doubtful_ = false;
    if (on_reload_) on_reload_();
  }
  co_return co_await count_sessions();
}

Task<void> Watch::run() {
  for (int round = 1; !is_stopped_; ++round) {
    timer_.expires_after(kLookInterval);
    co_await timer_.async_wait(kAwait);
    if (is_stopped_) co_return;
    // A write may have been kept although its caller was told that this is not known.
    if (!deps_.ledger.is_healthy()) is_doubtful_ = true;
    auto looked = co_await look();
    if (looked && round % kLooksPerNote == 0) looked = co_await deps_.apps.note_uses();
    if (!deps_.ledger.is_healthy() && round % kLooksPerBeat == 0) {
      looked = co_await deps_.ledger.instances.beat(deps_.clock.now());
    }
    report(looked);
  }
}

void Watch::stop() {
  is_stopped_ = true;
  timer_.cancel();
}

void Watch::report(const Result<void>& looked) {
  if (!looked && !is_failing_) {
    deps_.log.error("the ledger does not answer",
                    {{"why", std::string_view(looked.error().detail)}});
  }
  if (looked && is_failing_) deps_.log.info("the ledger answers again");
  is_failing_ = !looked;
}

}  // namespace clawdforge
