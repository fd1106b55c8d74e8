// Feed is what a session has committed lately, for those who listen. It holds no more than a
// small ring of blocks, and only while there is a listener; a reader that is further back
// reads the ledger. So a slow reader costs a number and the block that it is being sent. Shared by
// the session, while it has something under way, and its readers; io thread only.
//
// All readers share a block. It is counted once in the memory budget, for as long as the ring or
// one of them has it. A block that is larger than the whole ring is shared by those who wait for it
// and by those who come while one of them still has it; the ring itself lets go of it.
//
// A reader sees each event once for one reason: it is a number, and asks each time what comes
// after this number, of the ring or of the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/async/signal.h"
#include "base/limits/byte_budget.h"
#include "model/session.h"

namespace clawdforge {

// A smaller block is not counted. Each reader counts for as much: see event_routes.cc.
inline constexpr std::size_t kCountedBlockBytesMin = 64 * 1024;

using SharedBlock = std::shared_ptr<const JournalBlock>;

// Why a reader hears nothing more.
enum class FeedEnd { none, closed, shutdown };

class Feed {
 public:
  // `last_event_id` is the newest that is committed.
  Feed(std::int64_t last_event_id, std::size_t ring_bytes_max);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Committed blocks, which follow on what was published before. `memory` counts them, if it counts
  // anything: what it holds goes over to them. A block for which there is no memory is not shared.
  void publish(std::vector<JournalBlock> blocks, ByteHold& memory);
  // The newest block is larger than the ring may be. Once those who waited for it have it,
  // let_large_go() leaves it to them.
  bool is_overfull() const { return ring_bytes_ > ring_bytes_max_; }
  void let_large_go();
  // Nothing more will come; readers are told when they have read what there is.
  void end(FeedEnd reason);
  // Wakes every reader, so that it looks whether its caller may still listen.
  void poke();

  std::int64_t last_event_id() const { return last_event_id_; }
  std::uint64_t bytes_published() const { return bytes_published_; }
  FeedEnd ended() const { return ended_; }
  std::uint64_t pokes() const { return pokes_; }
  std::size_t listeners() const { return listeners_; }
  std::size_t ring_bytes() const { return ring_bytes_; }
  // Up to here events were not shared: a reader that has not seen them must come back for them.
  std::int64_t unshared_until() const { return unshared_until_; }

  // The blocks that hold what comes after event `after`, which is not the newest: at least
  // one, and no more than `bytes_max` but for that. None: the ring does not reach back that
  // far.
  std::optional<std::vector<SharedBlock>> blocks_after(std::int64_t after,
                                                       std::size_t bytes_max) const;

  // The ring is kept for as long as there is a listener.
  void add_listener() { ++listeners_; }
  void remove_listener();
  // Returns when something was published, ended or poked, at the latest at `deadline`.
  Task<bool> change(Signal::Deadline deadline) { return changed_.wait_until(deadline); }

 private:
  SharedBlock share(JournalBlock block, ByteHold& memory);
  void keep(SharedBlock block);
  void clear_ring();

  const std::size_t ring_bytes_max_;
  std::int64_t last_event_id_;
  std::uint64_t bytes_published_ = 0;
  FeedEnd ended_ = FeedEnd::none;
  std::uint64_t pokes_ = 0;
  std::int64_t unshared_until_ = 0;
  std::deque<SharedBlock> ring_;
  std::size_t ring_bytes_ = 0;
  std::weak_ptr<const JournalBlock> large_;  // the newest, if the ring has let go of it
  std::size_t listeners_ = 0;
  Signal changed_;
};

}  // namespace clawdforge
