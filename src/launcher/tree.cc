#include "launcher/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/bounds/call_filter.h"
#include "launcher/bounds/limits.h"
#include "launcher/kernel.h"
#include "launcher/landlock.h"
#include "launcher/privileges.h"
#include "launcher/program.h"

namespace launcher {

namespace {

// Orphans come to us without notice when their parent was no child of ours. While a tree
// is being ended we look for them this often.
constexpr long kLookEveryMs = 20;

long now_ms() {
  timespec now = {};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// What the program's process writes into the failure pipe, if it does not become it.
struct Failure {
  Answer answer;
  const char* step;  // a literal, which is at the same place in both processes
};

[[noreturn]] void fail_as_program(int pipe, const char* step, Answer answer) {
  const Failure failure = {answer, step};
  call(SYS_write, pipe, &failure, sizeof failure);
  end_process(127);
}

Answer set_soft_limit(unsigned long soft) {
  rlimit limit = {};
  const Answer answer = call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  if (answer < 0) return answer;
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  return call(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit);
}

// Two signals belong to the C library of the gateway, which ignores them in all that it
// starts. The other signals are at their defaults when the launcher begins, and blocked.
void restore_signals() {
  struct {
    const void* handler;
    unsigned long flags;
    const void* restorer;
    SignalSet mask;
  } standard = {};
  for (int number = 32; number <= 33; ++number) {
    call(SYS_rt_sigaction, number, &standard, nullptr, sizeof standard.mask);
  }
  const SignalSet none = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

}  // namespace

void Tree::start() {
  Answer answer = call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  if (answer < 0) give_up("subreaper", answer);
  answer = call(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (answer < 0) give_up("children", answer);
  children_ = static_cast<int>(answer);
  const SignalSet child_ended = set_of(SIGCHLD);
  answer = call(SYS_signalfd4, -1, &child_ended, sizeof child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (answer < 0) give_up("signalfd", answer);
  signals_ = static_cast<int>(answer);
  watch_.open();
  int failure[2];
  answer = call(SYS_pipe2, failure, O_CLOEXEC | O_NONBLOCK);
  if (answer < 0) give_up("pipe", answer);

  const Answer self = call(SYS_getpid);
  answer = call(SYS_clone, SIGCHLD);
  if (answer < 0) give_up("fork", answer);
  if (answer == 0) become_program(failure[1], self);
  program_ = static_cast<int>(answer);
  failure_ = failure[0];
  call(SYS_close, failure[1]);
  // The program's pipes end when the program closes them, not when we do.
  for (int descriptor = 0; descriptor <= 2; ++descriptor) call(SYS_close, descriptor);
}

void Tree::become_program(int failure, Answer launcher) {
  // If we are killed, at least the program does not go on. Within a namespace the kernel
  // sees to that for all of it; without one the gateway gets what is left, if it lives.
  Answer answer = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (answer < 0) fail_as_program(failure, "death-signal", answer);
  if (call(SYS_getppid) != launcher) end_process(1);  // it was killed before that
  answer = call(SYS_setsid);
  if (answer < 0) fail_as_program(failure, "session", answer);
  if (order_.is_soft_limit_wanted) {
    answer = set_soft_limit(order_.descriptors_soft);
    if (answer < 0) fail_as_program(failure, "limit", answer);
  }
  answer = set_limits(order_);
  if (answer < 0) fail_as_program(failure, "limits", answer);
  offer_to_memory_killer();
  answer = drop_privileges();
  if (answer < 0) fail_as_program(failure, "privileges", answer);
  answer = restrict_program(order_);
  if (answer < 0) fail_as_program(failure, "rules", answer);
  if (order_.program[0] == nullptr) end_process(0);
  answer = filter_calls(order_);
  if (answer < 0) fail_as_program(failure, "filter", answer);
  restore_signals();
  fail_as_program(failure, "exec", execute(order_.program, order_.environment));
}

void Tree::supervise() {
  while (reap()) {
    if (phase_ == Phase::asked && !is_patient()) phase_ = Phase::killing;
    if (phase_ == Phase::asked) for_each_child([this](int child) { ask_once(child); });
    if (phase_ == Phase::killing) kill_children();
    wait_for_news();
  }
}

// False: no child is left, so no descendant is.
bool Tree::reap() {
  while (true) {
    siginfo_t end = {};
    // Looked at first and reaped after, so that the program's group can still be asked.
    const Answer found = call(SYS_waitid, P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT);
    if (found == -ECHILD) return false;
    if (found < 0) continue;
    if (end.si_pid == 0) return true;
    if (end.si_pid == program_ && !is_program_reaped_) {
      note_program_end(end);
      ask();
      is_program_reaped_ = true;
    }
    call(SYS_wait4, end.si_pid);
    forget(end.si_pid);
  }
}

void Tree::note_program_end(const siginfo_t& end) {
  Failure failure = {};
  if (call(SYS_read, failure_, &failure, sizeof failure) == sizeof failure) {
    report_not_started(-failure.answer, failure.step);
  } else if (excess_ == Excess::processes) {
    report_over_processes();
  } else if (excess_ == Excess::memory ||
             (end.si_code != CLD_EXITED && end.si_status == SIGKILL && watch_.is_out_of_memory())) {
    report_over_memory();
  } else if (end.si_code == CLD_EXITED) {
    report_exited(end.si_status);
  } else {
    report_signaled(end.si_status);
  }
  call(SYS_close, failure_);
  call(SYS_close, kReport);
}

// TERM to the program's group, and then once to every child that we have or get.
void Tree::ask() {
  if (phase_ != Phase::running) return;
  phase_ = Phase::asked;
  kill_at_ms_ = now_ms() + order_.grace_ms;
  // Before its setsid the program has no group yet; then it is asked as a child.
  if (call(SYS_kill, -program_, SIGTERM) >= 0) asked_[asked_count_++] = program_;
}

void Tree::ask_once(int child) {
  for (int i = 0; i < asked_count_; ++i) {
    if (asked_[i] == child) return;
  }
  if (asked_count_ == kAskedMax) return;
  asked_[asked_count_++] = child;
  call(SYS_kill, child, SIGTERM);
}

// Once it is reaped, another process may get its id.
void Tree::forget(int child) {
  for (int i = 0; i < asked_count_; ++i) {
    if (asked_[i] == child) {
      asked_[i] = asked_[--asked_count_];
      return;
    }
  }
}

// Whether the KILL still waits: for the grace, and then for what the tree is saving.
bool Tree::is_patient() const {
  const long now = now_ms();
  if (now < kill_at_ms_) return true;
  if (order_.busy_path == nullptr || now >= kill_at_ms_ + order_.busy_ms) return false;
  return call(SYS_faccessat, AT_FDCWD, order_.busy_path, F_OK) >= 0;
}

void Tree::kill_children() {
  if (is_first_) {
    call(SYS_kill, -1, SIGKILL);  // everything in the namespace but ourselves, in one step
  } else {
    for_each_child([](int child) { call(SYS_kill, child, SIGKILL); });
  }
}

void Tree::wait_for_news() {
  pollfd news[] = {{signals_, POLLIN, 0}, {kLifeline, POLLIN, 0}};
  if (phase_ == Phase::running) {
    const long every_ms = watch_.every_ms();
    const timespec pause = {0, every_ms * 1'000'000};
    call(SYS_ppoll, news, 2, every_ms > 0 ? &pause : nullptr);
    look_at_limits();
  } else {
    long wait_ms = kLookEveryMs;
    const long left_ms = kill_at_ms_ - now_ms();
    // Once the grace is over, only what is busy is waited for.
    if (phase_ == Phase::asked && left_ms > 0 && left_ms < wait_ms) wait_ms = left_ms;
    const timespec timeout = {0, wait_ms * 1'000'000};
    call(SYS_ppoll, news, 1, &timeout);
  }
  // One SIGCHLD stands for any number of ends; reap() finds them all.
  signalfd_siginfo signal;
  while (call(SYS_read, signals_, &signal, sizeof signal) > 0) {
  }
  if (news[1].revents != 0) ask();
}

// A tree that is over a limit gets no time to end: it would use it to take more.
void Tree::look_at_limits() {
  excess_ = watch_.look();
  if (excess_ == Excess::none) return;
  phase_ = Phase::killing;
  kill_children();
}

template <class Action>
void Tree::for_each_child(Action action) {
  if (call(SYS_lseek, children_, 0, SEEK_SET) != 0) return;
  char text[4096];
  int child = 0;
  while (true) {
    const Answer size = call(SYS_read, children_, text, sizeof text);
    if (size <= 0) return;
    for (Answer i = 0; i < size; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        child = child * 10 + (text[i] - '0');
      } else if (child > 0) {
        action(child);
        child = 0;
      }
    }
  }
}

}  // namespace launcher
