#include "sessions/journal/feeds.h"

namespace clawdforge {

std::shared_ptr<Feed> Feeds::of(const Session& session) {
  std::weak_ptr<Feed>& known = feeds_[session.id];
  auto feed = known.lock();
  if (!feed) {
    feed = std::make_shared<Feed>(session.last_event_id, ring_bytes_max_);
    if (is_shut_down_) feed->end(FeedEnd::shutdown);
    known = feed;
  }
  return feed;
}

void Feeds::end(const SessionId& id, FeedEnd reason) {
  const auto found = feeds_.find(id);
  if (found == feeds_.end()) return;
  if (const auto feed = found->second.lock()) feed->end(reason);
  feeds_.erase(found);
}

void Feeds::recheck_readers() {
  for (const auto& [id, known] : feeds_) {
    if (const auto feed = known.lock()) feed->poke();
  }
}

void Feeds::shut_down() {
  is_shut_down_ = true;
  for (const auto& [id, known] : feeds_) {
    if (const auto feed = known.lock()) feed->end(FeedEnd::shutdown);
  }
}

std::vector<SessionId> Feeds::session_ids() {
  std::erase_if(feeds_, [](const auto& entry) { return entry.second.expired(); });
  std::vector<SessionId> ids;
  for (const auto& [id, known] : feeds_) ids.push_back(id);
  return ids;
}

std::size_t Feeds::readers() const {
  std::size_t count = 0;
  for (const auto& [id, known] : feeds_) {
    if (const auto feed = known.lock()) count += feed->listeners();
  }
  return count;
}

std::size_t Feeds::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, known] : feeds_) {
    if (const auto feed = known.lock()) bytes += feed->ring_bytes();
  }
  return bytes;
}

}  // namespace clawdforge
