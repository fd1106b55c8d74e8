// HangUpSubscription listens to a HangUp for as long as it lives: a member or local variable of the
// handler that waits. Io thread only.
#pragma once

#include <functional>
#include <utility>

#include "base/async/hang_up.h"

namespace clawdforge {

// Without a HangUp it does nothing.
class HangUpSubscription {
 public:
  HangUpSubscription(HangUp* hang_up, std::move_only_function<void()> listener)
      : hang_up_(hang_up) {
    if (hang_up_ != nullptr) hang_up_->listen(std::move(listener));
  }
  ~HangUpSubscription() {
    if (hang_up_ != nullptr) hang_up_->listen({});
  }
  HangUpSubscription(const HangUpSubscription&) = delete;
  HangUpSubscription& operator=(const HangUpSubscription&) = delete;

 private:
  HangUp* const hang_up_;
};

}  // namespace clawdforge
