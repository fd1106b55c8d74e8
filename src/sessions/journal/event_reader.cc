#include "sessions/journal/event_reader.h"

#include <algorithm>
#include <utility>

namespace clawdforge {

EventReader::EventReader(const JournalRows& rows, std::shared_ptr<Feed> feed, SessionId session_id,
                         std::int64_t after, std::size_t behind_bytes_max, bool is_tail, Lane lane)
    : rows_(rows),
      feed_(std::move(feed)),
      session_id_(std::move(session_id)),
      behind_bytes_max_(behind_bytes_max),
      is_tail_(is_tail),
      lane_(std::move(lane)),
      after_(after),
      left_at_(std::chrono::steady_clock::now()),
      bytes_then_(feed_->bytes_published()),
      pokes_(feed_->pokes()) {
  feed_->add_listener();
}

EventReader::~EventReader() { feed_->remove_listener(); }

Async<EventPiece> EventReader::next(std::chrono::milliseconds pause) {
  if (has_been_away()) {
    EventPiece piece;
    piece.is_lagging = true;
    co_return piece;
  }
  auto piece = co_await find(pause);
  left_at_ = std::chrono::steady_clock::now();
  bytes_then_ = feed_->bytes_published();
  co_return piece;
}

// For long, and much was told meanwhile.
bool EventReader::has_been_away() const {
  return has_caught_up_ && feed_->bytes_published() - bytes_then_ > behind_bytes_max_ &&
         std::chrono::steady_clock::now() - left_at_ > kReaderAwayMax;
}

Async<EventPiece> EventReader::find(std::chrono::milliseconds pause) {
  EventPiece piece;
  const auto until = std::chrono::steady_clock::now() + pause;
  while (true) {
    const bool is_poked = std::exchange(pokes_, feed_->pokes()) != feed_->pokes();
    if (!is_poked && feed_->last_event_id() > after_) break;
    if (feed_->last_event_id() <= after_) has_caught_up_ = true;
    const FeedEnd end = feed_->ended();
    if (!is_poked && end != FeedEnd::none && (is_tail_ || end != FeedEnd::shutdown)) {
      piece.end = end;
      co_return piece;
    }
    if (is_poked || std::chrono::steady_clock::now() >= until) {
      piece.is_pause = true;
      co_return piece;
    }
    co_await feed_->change(until);
  }
  // The block that comes next had no place in memory. To read it for this reader alone would need
  // as much.
  if (has_caught_up_ && feed_->unshared_until() > after_) {
    piece.is_lagging = true;
    co_return piece;
  }
  if (auto blocks = feed_->blocks_after(after_, kSharedBytesMax)) {
    piece.after = after_;
    piece.blocks = std::move(*blocks);
    after_ = piece.blocks.back()->last_event_id;
    co_return piece;
  }
  co_return co_await replay();
}

// A page of the journal. What retention has removed is told first, as a gap of its own.
Async<EventPiece> EventReader::replay() {
  EventPiece piece;
  piece.after = after_;
  piece.is_own = true;
  const std::int64_t newest = feed_->last_event_id();
  auto page = co_await rows_.page(session_id_, after_, kReplayBytesMax, lane_);
  if (!page) co_return std::unexpected(page.error());
  const std::int64_t first = page->empty() ? newest + 1 : page->front().first_event_id;
  if (first > after_ + 1) {
    piece.gap = EventGap{after_ + 1, first - 1};
    after_ = first - 1;
    co_return piece;
  }
  for (JournalBlock& block : *page) {
    if (block.first_event_id > after_ + 1) break;  // a hole further on: it begins the next page
    after_ = std::max(after_, block.last_event_id);
    piece.blocks.push_back(std::make_shared<const JournalBlock>(std::move(block)));
  }
  co_return piece;
}

}  // namespace clawdforge
