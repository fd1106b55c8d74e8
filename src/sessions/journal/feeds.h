// Feeds finds the feed of a session, for the session itself and for those who read it. A feed
// lives for as long as one of them has it. Member of Sessions; io thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "model/session.h"
#include "sessions/journal/feed.h"

namespace clawdforge {

class Feeds {
 public:
  // `ring_bytes_max` is what each feed keeps for its readers.
  explicit Feeds(std::size_t ring_bytes_max) : ring_bytes_max_(ring_bytes_max) {}
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  // The one there is, or a new one.
  std::shared_ptr<Feed> of(const Session& session);
  // Its readers are told that nothing more comes; a later reader gets another feed.
  void end(const SessionId& id, FeedEnd reason);
  // Each reader looks again whether its caller may still read.
  void recheck_readers();
  // All that read on for what may come are told FeedEnd::shutdown, from now on at once.
  void shut_down();

  // Of the sessions that have a feed now.
  std::vector<SessionId> session_ids();
  std::size_t readers() const;
  std::size_t bytes() const;  // kept for them

 private:
  const std::size_t ring_bytes_max_;
  std::map<SessionId, std::weak_ptr<Feed>> feeds_;
  bool is_shut_down_ = false;
};

}  // namespace clawdforge
