#include "sessions/feed.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace clawdforge {

Feed::Feed(std::int64_t last_event_id, std::size_t ring_bytes_max)
    : ring_bytes_max_(ring_bytes_max), last_event_id_(last_event_id) {}

void Feed::publish(std::vector<SharedBlock> blocks) {
  for (SharedBlock& block : blocks) {
    assert(block->first_event_id == last_event_id_ + 1);
    last_event_id_ = block->last_event_id;
    bytes_published_ += block->lines.size();
    if (listeners_.empty()) continue;
    ring_bytes_ += block->lines.size();
    ring_.push_back(std::move(block));
    while (ring_.size() > 1 && ring_bytes_ > ring_bytes_max_) {
      ring_bytes_ -= ring_.front()->lines.size();
      ring_.pop_front();
    }
  }
  wake();
}

void Feed::end(FeedEnd reason) {
  if (ended_ == FeedEnd::none) ended_ = reason;
  wake();
}

void Feed::poke() {
  ++pokes_;
  wake();
}

std::optional<std::vector<SharedBlock>> Feed::behind(std::int64_t after,
                                                     std::size_t bytes_max) const {
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

Feed::Listener Feed::listen(Timer& timer) { return listeners_.insert(listeners_.end(), &timer); }

void Feed::stop_listening(Listener listener) {
  listeners_.erase(listener);
  if (!listeners_.empty()) return;
  ring_.clear();
  ring_bytes_ = 0;
}

void Feed::wake() {
  for (Timer* const timer : listeners_) timer->cancel();
}

}  // namespace clawdforge
