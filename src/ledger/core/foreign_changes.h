// ForeignChanges tells any thread, without asking the database, whether another program has changed
// it: two loads from memory. A part that has read a row and is told the same mark later knows
// that only this program can have changed the row in between.
//
// The database counts its commits where all its programs can read the count; the driver knows which
// count its own commits have led to. While they differ another program has just written, or this
// one is about to say that it has: then there is no mark, and the row has to be read. Shared by the
// driver, which belongs to the ledger's worker, and by those who ask.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace clawdforge {

class ForeignChanges {
 public:
  using Count = std::uint32_t;  // of commits; it may wrap

  // The worker, and no later than end(): `count` reads the database's own count on any thread.
  void begin(std::function<Count()> count) {
    count_ = std::move(count);
    expected_ = count_();
    is_known_.store(true, std::memory_order_release);
  }
  // The worker, before the database is closed. The caller of mark() must not be in it.
  void end() { is_known_.store(false, std::memory_order_release); }

  // The worker, while no other program can write: from the begin of a transaction that writes.
  void note_begun() {
    if (!is_known_.load(std::memory_order_relaxed)) return;
    const Count now = count_();
    if (now == expected_.load(std::memory_order_relaxed)) return;
    changes_.fetch_add(1, std::memory_order_relaxed);
    expected_.store(now, std::memory_order_release);
  }
  // The worker, after a commit that has changed the database.
  void note_committed() { expected_.fetch_add(1, std::memory_order_release); }

  // Any thread. None: another program may have changed the database just now.
  std::optional<std::uint64_t> mark() const {
    if (!is_known_.load(std::memory_order_acquire)) return std::nullopt;
    const Count expected = expected_.load(std::memory_order_acquire);
    const std::uint64_t changes = changes_.load(std::memory_order_relaxed);
    if (count_() != expected) return std::nullopt;
    return changes;
  }

 private:
  std::function<Count()> count_;
  std::atomic<bool> is_known_ = false;
  std::atomic<Count> expected_ = 0;
  std::atomic<std::uint64_t> changes_ = 0;
};

}  // namespace clawdforge
