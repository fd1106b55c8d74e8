// A mutex whose use the compiler checks (clang's -Wthread-safety), and a condition to wait
// for with it.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CLAWDFORGE_ATTRIBUTE(x) __attribute__((x))
#else
#define CLAWDFORGE_ATTRIBUTE(x)
#endif

#define GUARDED_BY(x) CLAWDFORGE_ATTRIBUTE(guarded_by(x))
#define REQUIRES(x) CLAWDFORGE_ATTRIBUTE(requires_capability(x))

namespace clawdforge {

class CLAWDFORGE_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() CLAWDFORGE_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() CLAWDFORGE_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class CLAWDFORGE_ATTRIBUTE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) CLAWDFORGE_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() CLAWDFORGE_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

// std::condition_variable_any would do, but has a mutex of its own, which costs each wake
// two more calls of the kernel.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }

  void wait(Mutex& mutex) CLAWDFORGE_ATTRIBUTE(requires_capability(mutex)) {
    Held held(mutex);
    condition_.wait(held.lock);
  }
  template <class Duration>
  void wait_for(Mutex& mutex, Duration duration) CLAWDFORGE_ATTRIBUTE(requires_capability(mutex)) {
    Held held(mutex);
    condition_.wait_for(held.lock, duration);
  }

 private:
  // The caller has locked it, and finds it locked again.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace clawdforge
