#include "workspaces/direct_turns.h"

#include <utility>

namespace clawdforge {

std::unexpected<Failure> workspace_busy() {
  return fail(
      Errc::conflict, "workspace_busy",
      "Others work in this workspace now; without \"wait\": false this would wait for them.");
}

DirectTurns::Hold::Hold(DirectTurns& all, std::string path)
    : all_(&all), path_(std::move(path)), number_(++all.last_) {
  all.lines_[path_].push_back(number_);
}

DirectTurns::Hold::Hold(Hold&& other) noexcept
    : all_(std::exchange(other.all_, nullptr)),
      path_(std::move(other.path_)),
      number_(other.number_) {}

DirectTurns::Hold& DirectTurns::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  leave();
  all_ = std::exchange(other.all_, nullptr);
  path_ = std::move(other.path_);
  number_ = other.number_;
  return *this;
}

void DirectTurns::Hold::leave() {
  DirectTurns* const all = std::exchange(all_, nullptr);
  if (all == nullptr) return;
  const auto line = all->lines_.find(path_);
  std::erase(line->second, number_);
  if (line->second.empty()) all->lines_.erase(line);
  all->changed_.notify_all();
}

Task<bool> DirectTurns::Hold::first(std::function<bool()> is_over) {
  if (all_ == nullptr) co_return true;
  while (all_->lines_[path_].front() != number_) {
    if (is_over()) co_return false;
    co_await all_->changed_.wait();
  }
  co_return !is_over();
}

}  // namespace clawdforge
