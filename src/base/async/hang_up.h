// HangUp tells the handler that works for a caller that the caller has hung up. Http makes one
// for each request and lets it happen at most once; the handler listens. Io thread only.
#pragma once

#include <functional>
#include <utility>

namespace clawdforge {

class HangUp {
 public:
  HangUp() = default;
  HangUp(const HangUp&) = delete;
  HangUp& operator=(const HangUp&) = delete;

  bool has_happened() const { return has_happened_; }

  // One listener at a time; an empty one ends listening. Called at once if it has
  // happened already, and at most once.
  void listen(std::move_only_function<void()> listener) {
    listener_ = std::move(listener);
    if (has_happened_) tell();
  }

  void happen() {
    if (std::exchange(has_happened_, true)) return;
    tell();
  }

 private:
  void tell() {
    // The listener may listen again, or end what owns this.
    if (auto listener = std::exchange(listener_, {})) listener();
  }

  bool has_happened_ = false;
  std::move_only_function<void()> listener_;
};

}  // namespace clawdforge
