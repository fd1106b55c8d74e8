// The launcher talks to the kernel directly and has no C library: a library's start-up
// costs more than all of the launcher's own work, above all on virtual machines, and the
// launcher is started once for each agent. Headers of the C library are used for their
// constants and structures only; a call of one of its functions does not link.
#pragma once

#include <sys/syscall.h>

namespace launcher {

// The result of a system call: at least zero, or a negated errno.
using Answer = long;

inline long raw_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(number)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return number;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "The launcher does not know how to call the kernel on this kind of processor."
#endif
}

inline long as_word(long value) { return value; }
inline long as_word(const void* pointer) { return reinterpret_cast<long>(pointer); }
inline long as_word(decltype(nullptr)) { return 0; }

template <class A = long, class B = long, class C = long, class D = long, class E = long,
          class F = long>
Answer call(long number, A a = {}, B b = {}, C c = {}, D d = {}, E e = {}, F f = {}) {
  return raw_call(number, as_word(a), as_word(b), as_word(c), as_word(d), as_word(e), as_word(f));
}

[[noreturn]] inline void end_process(int code) {
  while (true) call(SYS_exit_group, code);
}

// A set of signals as the kernel has it, which is not the library's.
using SignalSet = unsigned long;
inline constexpr SignalSet kAllSignals = ~0UL;
inline constexpr SignalSet set_of(int signal) { return 1UL << (signal - 1); }

inline bool are_equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

}  // namespace launcher
