// Feed is what a session has committed lately, for those who listen. It holds no more than a
// small ring of blocks, and only while there is a listener; a reader that is further back
// reads the ledger. So a slow reader costs a number and nothing else. Shared by the
// session, while it has something under way, and its readers; io thread only.
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
#include "model/session.h"

namespace clawdforge {

using SharedBlock = std::shared_ptr<const JournalBlock>;

// Why a reader hears nothing more.
enum class FeedEnd { none, closed, shutdown };

class Feed {
 public:
  // `last_event_id` is the newest that is committed.
  Feed(std::int64_t last_event_id, std::size_t ring_bytes_max);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Committed blocks, which follow on what was published before.
  void publish(std::vector<SharedBlock> blocks);
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
  const std::size_t ring_bytes_max_;
  std::int64_t last_event_id_;
  std::uint64_t bytes_published_ = 0;
  FeedEnd ended_ = FeedEnd::none;
  std::uint64_t pokes_ = 0;
  std::deque<SharedBlock> ring_;
  std::size_t ring_bytes_ = 0;
  std::size_t listeners_ = 0;
  Signal changed_;
};

}  // namespace clawdforge
