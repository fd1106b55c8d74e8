// EventReader goes through a session's events from a number on: first what the journal has,
// then what is committed from now on, without a hole or a double in between. Made by Sessions
// for one stream, which owns it; io thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "base/strong_id.h"
#include "ledger/sessions/journal_rows.h"
#include "sessions/journal/feed.h"

namespace clawdforge {

// What a reader is given at once, but for a single block that is larger: all that it holds
// while it does not read.
inline constexpr std::size_t kReplayBytesMax = 512 * 1024;
// The same of blocks that it shares with other readers. Larger ones are counted by themselves.
inline constexpr std::size_t kSharedBytesMax = kCountedBlockBytesMin;
// One that had caught up, and then asks for nothing for this long, may be cut. A reader that asks
// sooner is never too slow, however much an agent says in one breath: the journal has it.
inline constexpr std::chrono::seconds kReaderAwayMax{1};

struct EventGap {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// One of these at a time.
struct EventPiece {
  std::optional<EventGap> gap;      // removed by retention
  std::vector<SharedBlock> blocks;  // may begin with events that the reader has seen: see `after`
  std::int64_t after = 0;           // what is new in `blocks` has a higher number
  bool is_own = false;              // the blocks were read for this reader; else it shares them
  bool is_pause = false;            // nothing to tell; look whether the caller may still listen
  bool is_lagging = false;          // it has fallen too far behind, and is cut
  FeedEnd end = FeedEnd::none;      // nothing more comes
};

class EventReader {
 public:
  // `behind_bytes_max` is how much may be told while a reader that had caught up is away. A
  // tail ends with the gateway's drain; the reader of a turn waits for the turn's end.
  EventReader(const JournalRows& rows, std::shared_ptr<Feed> feed, SessionId session_id,
              std::int64_t after, std::size_t behind_bytes_max, bool is_tail, Lane lane = {});
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Waits for the next piece, at most for `pause`. An error is the ledger's. Between two
  // calls the reader is away.
  Async<EventPiece> next(std::chrono::milliseconds pause);

  std::int64_t after() const { return after_; }
  // Nothing more comes, and all has been read.
  bool is_over() const {
    return feed_->ended() == FeedEnd::closed && feed_->last_event_id() <= after_;
  }
  // There is more to read without waiting.
  bool is_behind() const { return feed_->last_event_id() > after_; }

 private:
  Async<EventPiece> find(std::chrono::milliseconds pause);
  Async<EventPiece> replay();
  bool has_been_away() const;

  const JournalRows& rows_;
  const std::shared_ptr<Feed> feed_;
  const SessionId session_id_;
  const std::size_t behind_bytes_max_;
  const bool is_tail_;
  const Lane lane_;
  std::int64_t after_;
  bool has_caught_up_ = false;
  std::chrono::steady_clock::time_point left_at_;  // when the last piece was handed out
  std::uint64_t bytes_then_;                       // that were published by then
  std::uint64_t pokes_;
};

}  // namespace clawdforge
