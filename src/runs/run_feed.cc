#include "runs/run_feed.h"

#include <utility>

namespace clawdforge {

void RunFeed::add(AgentEvent event) {
  if (is_closed_ || is_left_) return;
  bytes_ += event.json.size();
  messages_.push_back({.json = std::move(event.json), .memory = std::move(event.memory)});
  came_.notify_all();
}

Task<void> RunFeed::wait_for_space() {
  while (bytes_ > kRunFeedBytesMax && !is_closed_ && !is_left_) co_await taken_.wait();
}

void RunFeed::close() {
  is_closed_ = true;
  came_.notify_all();
  taken_.notify_all();
}

Task<std::vector<ToldMessage>> RunFeed::next(std::chrono::milliseconds most) {
  if (messages_.empty() && !is_closed_) co_await came_.wait_for(most);
  bytes_ = 0;
  taken_.notify_all();
  co_return std::exchange(messages_, {});
}

void RunFeed::leave() {
  is_left_ = true;
  messages_.clear();
  bytes_ = 0;
  taken_.notify_all();
}

}  // namespace clawdforge
