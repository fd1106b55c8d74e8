// Time as an argument: what decides by the time of day asks a Clock, so that a test
// can move it. Deadlines inside the io loop use steady timers instead.
#pragma once

#include <chrono>
#include <cstdint>

namespace clawdforge {

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;

constexpr std::int64_t unix_seconds(TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
};

class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start) : now_(start) {}
  TimePoint now() const override { return now_; }
  void advance(std::chrono::milliseconds step) { now_ += step; }

 private:
  TimePoint now_;
};

}  // namespace clawdforge
