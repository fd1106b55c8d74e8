// Parking lets an ask wait that would be refused, where its caller would rather wait: until the
// refusal may be over, and no longer than the ask's own time. It does not decide who is next: the
// ask is admitted again like any other. Io thread only. Its owner calls stop() before it dies.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace clawdforge {

inline constexpr std::size_t kParkedMax = 1'000;  // asks
inline constexpr std::size_t kParkedMaxPerApp = 100;

class Parking {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Parking(IoExecutor executor) : executor_(executor) {}
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

  // Whether waiting helps: the refusal is one of a limit that ends before `deadline`.
  static bool may_help(const Failure& refusal, Time now, Time deadline);

  // True: the ask may try again. False: its refusal stands, since waiting does not help, too many
  // wait, the caller has hung up, or the gateway stops.
  Task<bool> wait(AppName app, Failure refusal, Time deadline, HangUp* hang_up);

  std::size_t parked() const { return parked_; }
  void stop() { is_stopping_ = true; }

 private:
  const IoExecutor executor_;
  std::map<AppName, std::size_t> by_app_;
  std::size_t parked_ = 0;
  bool is_stopping_ = false;
};

}  // namespace clawdforge
