// Listening for a caller's departure, for as long as the handler that waits is there. Io
// thread only.
#pragma once

#include <functional>
#include <utility>

#include "base/departure.h"

namespace clawdforge {

// Without a departure there is nothing to hear.
class Listening {
 public:
  Listening(Departure* departure, std::move_only_function<void()> listener)
      : departure_(departure) {
    if (departure_ != nullptr) departure_->listen(std::move(listener));
  }
  ~Listening() {
    if (departure_ != nullptr) departure_->listen({});
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  Departure* const departure_;
};

}  // namespace clawdforge
