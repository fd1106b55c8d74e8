// Keys sees to it that requests with the same idempotency key do their work once. It knows which
// keys have work under way and who waits for it; what became of the others is in the ledger. It
// does no work itself: who claims a key and is not given an answer does it, and says what became
// of it. Io thread only; outlives its claims.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/async/hang_up_subscription.h"
#include "base/async/signal.h"
#include "base/clock.h"
#include "model/ask_key.h"
#include "quota/byte_tally.h"

namespace clawdforge {

class KeyRows;
class Keys;

// A key whose work is under way, shared by the one who does it and those who wait for it.
struct LiveKey {
  LiveKey(std::shared_ptr<KeyHold> held, ByteTally& tally, AppName app)
      : hold(std::move(held)), place(tally, std::move(app)) {}

  const std::shared_ptr<KeyHold> hold;
  ByteReservation place;    // among the app's keys
  HangUp hang_up;           // happens when the last caller has hung up
  std::size_t callers = 0;  // who have not
  Signal changed;           // it is over, or a caller has gone
  bool is_over = false;
  std::shared_ptr<const KeptAnswer> answer;  // when it is over; null: who did the work was cut off
  bool is_replay = false;                    // the answer is in the ledger
};

// The right to do a key's work, or its answer. One that is dropped without Keys::finish() leaves
// the work to the next caller.
class KeyClaim {
 public:
  KeyClaim() = default;  // of nothing
  KeyClaim(KeyClaim&&) = default;
  KeyClaim& operator=(KeyClaim&&) = delete;
  ~KeyClaim();

  // Null: the work is to be done.
  const std::shared_ptr<const KeptAnswer>& answer() const { return answer_; }
  // Whether the ledger has the answer; else it is only shared with who has asked meanwhile.
  bool is_replay() const { return is_replay_; }
  const std::shared_ptr<KeyHold>& hold() const { return live_->hold; }
  // For the work, instead of that of the first caller.
  HangUp* hang_up() const { return &live_->hang_up; }

 private:
  friend class Keys;
  KeyClaim(Keys& keys, std::shared_ptr<LiveKey> live) : keys_(&keys), live_(std::move(live)) {}
  KeyClaim(std::shared_ptr<const KeptAnswer> answer, bool is_replay)
      : answer_(std::move(answer)), is_replay_(is_replay) {}

  Keys* keys_ = nullptr;
  std::shared_ptr<LiveKey> live_;              // null: there is an answer, or it is finished
  std::unique_ptr<HangUpSubscription> watch_;  // of the caller who does the work
  std::shared_ptr<const KeptAnswer> answer_;
  bool is_replay_ = false;
};

class Keys {
 public:
  struct Options {
    std::chrono::seconds age_max{};     // of an answer
    std::int64_t keys_max_per_app = 0;  // that are kept
    std::int64_t answer_bytes_max_per_app = 0;
  };

  Keys(KeyRows& rows, const Clock& clock, InstanceId self, Options options);
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // Counts what apps have kept, in the ledger. At start, and after each sweep.
  Async<void> count_kept();

  // Waits for work that is under way. Errc::invalid "idempotency_mismatch" where something else was
  // asked with this key; Errc::over_quota "too_many_keys"; Errc::unavailable where the ledger is;
  // Errc::gone "cancelled" when this caller has hung up. `hang_up` is the caller's, may be null,
  // and is listened to until the claim is finished.
  Async<KeyClaim> claim(AskKey key, HangUp* hang_up);
  // The work is done, or was refused. Returns when an answer that is to be kept is in the ledger;
  // an error: it is not. `is_success`: it is to be kept also if the work itself has not done so.
  Async<void> finish(KeyClaim* claim, KeptAnswer given, bool is_success);

  // Removes keys that are old; for the sweeper.
  Async<void> sweep();

 private:
  friend class KeyClaim;
  // False: this caller has hung up.
  static Task<bool> wait(std::shared_ptr<LiveKey> live, HangUp* hang_up);
  // What the ledger has; null: the work is to be done.
  Async<std::shared_ptr<const KeptAnswer>> look_up(AskKey key);
  static std::unique_ptr<HangUpSubscription> join(const std::shared_ptr<LiveKey>& live,
                                                  HangUp* hang_up);
  void end(const std::shared_ptr<LiveKey>& live, std::shared_ptr<const KeptAnswer> answer,
           bool is_replay);

  KeyRows& rows_;
  const Clock& clock_;
  const InstanceId self_;
  const Options options_;
  ByteTally counts_;  // of keys
  ByteTally bytes_;   // of answers
  std::map<Digest, std::shared_ptr<LiveKey>> live_;
};

}  // namespace clawdforge
