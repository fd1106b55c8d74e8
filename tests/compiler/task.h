// The least that a coroutine needs: a task that begins when it is awaited, and one place where
// tasks are suspended. And objects that know which of them are alive.
#pragma once

#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <utility>

namespace trial {

// Ends the program: nothing that such a compiler has made can be relied on.
[[noreturn]] inline void refuse_compiler(const char* shape, const char* fault) {
  std::fprintf(
      stderr,
      "This compiler cannot be used for clawdforge: in a coroutine of the shape \"%s\" %s. "
      "Use clang++-19 (the presets pick it).\n",
      shape, fault);
  std::_Exit(1);
}

inline const char* current_shape = "";

// Counts itself. An object that is destroyed twice, or used after its end, refuses the compiler.
class Counted {
 public:
  explicit Counted(int value) : value_(value) { enter(); }
  Counted(const Counted& other) : value_(other.value()) { enter(); }
  Counted(Counted&& other) noexcept : value_(other.value()) { enter(); }
  Counted& operator=(const Counted& other) = default;
  Counted& operator=(Counted&& other) noexcept = default;
  ~Counted() {
    if (alive().erase(this) == 0) refuse_compiler(current_shape, "an object is destroyed twice");
  }

  int value() const {
    if (!alive().contains(this)) refuse_compiler(current_shape, "an object is used after its end");
    return value_;
  }

  static std::set<const Counted*>& alive() {
    static std::set<const Counted*> objects;
    return objects;
  }

 private:
  void enter() {
    if (!alive().insert(this).second)
      refuse_compiler(current_shape, "an object is made where another one lives");
  }

  int value_;
};

// The coroutine that is suspended, if one is.
inline std::coroutine_handle<> suspended;

// co_await Pause{}: suspends until the trial goes on.
struct Pause {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { suspended = handle; }
  void await_resume() const noexcept {}
};

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct Resume {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      return handle.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  struct promise_type {
    std::optional<T> value;
    std::exception_ptr exception;
    std::coroutine_handle<> continuation = std::noop_coroutine();

    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    Resume final_suspend() const noexcept { return {}; }
    void return_value(T result) { value.emplace(std::move(result)); }
    void unhandled_exception() { exception = std::current_exception(); }
  };

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) {
    handle_.promise().continuation = continuation;
    return handle_;
  }
  T await_resume() { return result(); }

  void start() { handle_.resume(); }
  bool is_done() const { return handle_.done(); }
  T result() {
    if (handle_.promise().exception) std::rethrow_exception(handle_.promise().exception);
    return std::move(*handle_.promise().value);
  }

 private:
  Handle handle_;
};

}  // namespace trial
