#include "sessions/journal/feed.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace clawdforge {

Feed::Feed(std::int64_t last_event_id, std::size_t ring_bytes_max)
    : ring_bytes_max_(ring_bytes_max), last_event_id_(last_event_id) {}

// Null: there is no memory for it.
SharedBlock Feed::share(JournalBlock block, ByteHold& memory) {
  struct Counted {
    JournalBlock block;
    ByteHold memory;
  };
  const std::size_t bytes = block.lines.size();
  if (bytes < kCountedBlockBytesMin) {
    return std::make_shared<const JournalBlock>(std::move(block));
  }
  ByteHold part = memory.split(bytes);
  if (part.resize(bytes) != Fit::fits) return nullptr;
  auto counted = std::make_shared<const Counted>(std::move(block), std::move(part));
  return SharedBlock(counted, &counted->block);
}

void Feed::keep(SharedBlock block) {
  large_.reset();
  ring_bytes_ += block->lines.size();
  ring_.push_back(std::move(block));
  while (ring_.size() > 1 && ring_bytes_ > ring_bytes_max_) {
    ring_bytes_ -= ring_.front()->lines.size();
    ring_.pop_front();
  }
}

void Feed::publish(std::vector<JournalBlock> blocks, ByteHold& memory) {
  for (JournalBlock& block : blocks) {
    assert(block.first_event_id == last_event_id_ + 1);
    last_event_id_ = block.last_event_id;
    bytes_published_ += block.lines.size();
    if (listeners_ == 0) continue;
    if (SharedBlock shared = share(std::move(block), memory)) {
      keep(std::move(shared));
    } else {
      clear_ring();
      unshared_until_ = last_event_id_;
    }
  }
  changed_.notify_all();
}

void Feed::let_large_go() {
  if (!is_overfull()) return;
  const SharedBlock newest = ring_.back();
  clear_ring();
  large_ = newest;
}

void Feed::clear_ring() {
  ring_.clear();
  ring_bytes_ = 0;
  large_.reset();
}

void Feed::end(FeedEnd reason) {
  if (ended_ == FeedEnd::none) ended_ = reason;
  changed_.notify_all();
}

void Feed::poke() {
  ++pokes_;
  changed_.notify_all();
}

std::optional<std::vector<SharedBlock>> Feed::blocks_after(std::int64_t after,
                                                           std::size_t bytes_max) const {
  if (auto large = large_.lock(); large && large->first_event_id <= after + 1) {
    return std::vector<SharedBlock>{std::move(large)};
  }
  if (ring_.empty() || ring_.front()->first_event_id > after + 1) return std::nullopt;
  const auto first = std::ranges::partition_point(
      ring_, [after](const SharedBlock& block) { return block->last_event_id <= after; });
  std::vector<SharedBlock> blocks;
  std::size_t bytes = 0;
  for (auto next = first; next != ring_.end(); ++next) {
    bytes += (*next)->lines.size();
    if (!blocks.empty() && bytes > bytes_max) break;
    blocks.push_back(*next);
  }
  return blocks;
}

void Feed::remove_listener() {
  if (--listeners_ == 0) clear_ring();
}

}  // namespace clawdforge
