// A mutex whose use the compiler checks (clang's -Wthread-safety).
#pragma once

#include <mutex>

#if defined(__clang__)
#define CLAWDFORGE_ATTRIBUTE(x) __attribute__((x))
#else
#define CLAWDFORGE_ATTRIBUTE(x)
#endif

#define GUARDED_BY(x) CLAWDFORGE_ATTRIBUTE(guarded_by(x))

namespace clawdforge {

class CLAWDFORGE_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() CLAWDFORGE_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() CLAWDFORGE_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
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

}  // namespace clawdforge
