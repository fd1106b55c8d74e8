// The codes of links that sign a browser in. Each works once and for a short time; only its digest
// is kept, in memory: with the gateway they are gone. Owned by the gateway; io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

class SignInCodes {
 public:
  explicit SignInCodes(const Clock& clock) : clock_(clock) {}

  struct Made {
    Secret code;  // "7KQ4-…": 128 random bits
    TimePoint expires_at;
  };
  // Where there are too many, the one that ends first goes.
  Made make(std::chrono::seconds age_max);

  // Takes the code, in any case and with or without its dashes, so that it does not work again.
  // Errc::unauthorized "code_used", "code_expired", or "unauthorized" for one that was never made
  // or is long gone.
  Result<void> take(std::string_view code);

  // What is known of the code without taking it: whether it was ever made.
  bool knows(std::string_view code) const;

 private:
  struct Known {
    TimePoint expires_at;
    bool is_used = false;
  };
  void forget();

  const Clock& clock_;
  std::map<Digest, Known> codes_;
};

}  // namespace clawdforge
