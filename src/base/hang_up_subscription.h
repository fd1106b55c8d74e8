// HangUpSubscription for a caller's departure, for as long as the handler that waits is there. Io
// thread only.
#pragma once

#include <functional>
#include <utility>

#include "base/hang_up.h"

namespace clawdforge {

// Without a departure there is nothing to hear.
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
