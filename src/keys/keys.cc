#include "keys/keys.h"

#include <utility>

#include "base/refusals.h"
#include "ledger/keys/key_rows.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kKeysRetryAfter{60};
constexpr std::int64_t kSweepKeysMax = 1'000;  // removed in one transaction
constexpr int kSweepKeyPagesMax = 1'000;       // of one tick; the next goes on

std::unexpected<Failure> idempotency_mismatch() {
  return fail(Errc::invalid, "idempotency_mismatch",
              "This Idempotency-Key was sent with another body before; use a new key.");
}

std::unexpected<Failure> too_many_keys() {
  return fail_for_now(Errc::over_quota, "too_many_keys",
                      "This app has as many idempotency keys, or answers for them, as are kept; "
                      "wait until some are old, or ask without a key.",
                      kKeysRetryAfter);
}

}  // namespace

KeyClaim::~KeyClaim() {
  watch_.reset();
  if (live_ && !live_->is_over) keys_->end(live_, nullptr, false);
}

Keys::Keys(KeyRows& rows, const Clock& clock, InstanceId self, Options options)
    : rows_(rows),
      clock_(clock),
      self_(std::move(self)),
      options_(options),
      counts_(options.keys_max_per_app),
      bytes_(options.answer_bytes_max_per_app) {}

Async<void> Keys::count_kept() {
  counts_.begin_count();
  auto counts = co_await rows_.count_by_app();
  if (!counts) co_return std::unexpected(std::move(counts.error()));
  counts_.end_count(std::move(*counts));
  bytes_.begin_count();
  auto bytes = co_await rows_.bytes_by_app();
  if (!bytes) co_return std::unexpected(std::move(bytes.error()));
  bytes_.end_count(std::move(*bytes));
  co_return Result<void>{};
}

// One more caller wants the answer, until it hangs up.
std::unique_ptr<HangUpSubscription> Keys::join(const std::shared_ptr<LiveKey>& live,
                                               HangUp* hang_up) {
  ++live->callers;
  return std::make_unique<HangUpSubscription>(hang_up, [weak = std::weak_ptr(live)] {
    const auto left = weak.lock();
    if (!left) return;
    left->changed.notify_all();
    if (--left->callers == 0) left->hang_up.happen();
  });
}

Task<bool> Keys::wait(std::shared_ptr<LiveKey> live, HangUp* hang_up) {
  const auto watch = join(live, hang_up);
  const auto has_left = [hang_up] { return hang_up != nullptr && hang_up->has_happened(); };
  while (!live->is_over && !has_left()) co_await live->changed.wait();
  co_return live->is_over;
}

Async<KeyClaim> Keys::claim(AskKey key, HangUp* hang_up) {
  key.begun_at = clock_.now();
  key.instance_id = self_;
  for (;;) {
    if (const auto found = live_.find(key.digest); found != live_.end()) {
      const std::shared_ptr<LiveKey> live = found->second;
      if (live->hold->key.fingerprint != key.fingerprint) co_return idempotency_mismatch();
      if (!co_await wait(live, hang_up)) {
        co_return fail(Errc::gone, "cancelled", "The caller hung up before the answer was there.");
      }
      if (live->answer) co_return KeyClaim(live->answer, live->is_replay);
      continue;  // who did the work has not finished it; now this caller may
    }
    // From here on others wait for this one.
    const auto live =
        std::make_shared<LiveKey>(std::make_shared<KeyHold>(KeyHold{.key = key}), counts_, key.app);
    live_.emplace(key.digest, live);
    KeyClaim claim(*this, live);
    claim.watch_ = join(live, hang_up);
    const auto answer = co_await look_up(key);
    if (!answer) co_return std::unexpected(answer.error());
    if (*answer) {
      end(live, *answer, true);
      co_return KeyClaim(*answer, true);
    }
    if (!live->place.add(1) || bytes_.is_full(key.app)) co_return too_many_keys();
    co_return claim;
  }
}

Async<std::shared_ptr<const KeptAnswer>> Keys::look_up(AskKey key) {
  using Found = std::shared_ptr<const KeptAnswer>;
  const auto found = co_await rows_.find(key.digest, key.app);
  if (!found) co_return std::unexpected(found.error());
  const std::optional<KeyRecord>& record = *found;
  if (!record) co_return Found();
  if (record->ended_at && *record->ended_at + options_.age_max <= clock_.now()) {
    const auto freed = co_await rows_.write({.key = key, .at = clock_.now()});
    if (!freed) co_return std::unexpected(freed.error());
    co_return Found();
  }
  if (record->fingerprint != key.fingerprint) co_return idempotency_mismatch();
  // Its work has ended here, and the ledger has not taken that yet.
  if (!record->answer) co_return ledger_unavailable("the work of the key is not settled yet");
  co_return record->answer;
}

Async<void> Keys::finish(KeyClaim* claim, KeptAnswer given, bool is_success) {
  const std::shared_ptr<LiveKey> live = claim->live_;
  KeyHold& hold = *live->hold;
  if (hold.is_undone) {
    const auto freed = co_await rows_.write(hold.release(clock_.now()));
    if (!freed) co_return std::unexpected(freed.error());
    hold.is_begun = false;
  } else if (!hold.is_begun && is_success) {
    const auto kept = co_await rows_.write(hold.keep(given, clock_.now()));
    if (!kept) co_return std::unexpected(kept.error());
    hold.is_settled = true;
  }
  const bool is_kept = hold.is_begun && hold.is_settled && hold.answer;
  // A row whose work is not settled will have its answer, or go, when the ledger takes that.
  if (is_kept || (hold.is_begun && !hold.is_settled)) live->place.keep();
  if (is_kept) {
    const KeptAnswer& answer = *hold.answer;
    bytes_.add_kept(hold.key.app,
                    static_cast<std::int64_t>(answer.headers.size() + answer.body.size()));
    end(live, hold.answer, true);
  } else {
    end(live, std::make_shared<const KeptAnswer>(std::move(given)), false);
  }
  co_return Result<void>{};
}

void Keys::end(const std::shared_ptr<LiveKey>& live, std::shared_ptr<const KeptAnswer> answer,
               bool is_replay) {
  live->answer = std::move(answer);
  live->is_replay = is_replay;
  live->is_over = true;
  live_.erase(live->hold->key.digest);
  live->changed.notify_all();
}

Async<void> Keys::sweep() {
  // Where there are none nothing is written: a ledger that is locked would make the sweep wait.
  const auto kept = co_await rows_.count_by_app();
  if (!kept) co_return std::unexpected(kept.error());
  if (kept->empty()) co_return Result<void>{};
  for (int page = 0; page < kSweepKeyPagesMax; ++page) {
    const auto trimmed = co_await rows_.trim(clock_.now() - options_.age_max, kSweepKeysMax);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    if (*trimmed < kSweepKeysMax) break;
  }
  co_return co_await count_kept();
}

}  // namespace clawdforge
