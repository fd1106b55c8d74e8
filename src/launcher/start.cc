// Where the kernel enters the launcher, and the few functions that the compiler itself
// calls when there is no C library.
#include <stddef.h>

#include "launcher/kernel.h"

namespace launcher {
int run(char** environment);
}

// The stack begins with the number of arguments, the arguments and the environment.
#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n"
    "  call start_on_stack\n");
#elif defined(__aarch64__)
asm(".globl _start\n_start:\n  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  b start_on_stack\n");
#endif

extern "C" {

[[noreturn]] __attribute__((used)) void start_on_stack(long* stack) {
  const int count = static_cast<int>(stack[0]);
  auto** arguments = reinterpret_cast<char**>(stack + 1);
  launcher::end_process(launcher::run(arguments + count + 1));
}

__attribute__((used)) void* memset(void* bytes, int value, size_t size) {
  auto* byte = static_cast<volatile char*>(bytes);
  for (size_t i = 0; i < size; ++i) byte[i] = static_cast<char>(value);
  return bytes;
}

__attribute__((used)) void* memcpy(void* to, const void* from, size_t size) {
  auto* target = static_cast<volatile char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (size_t i = 0; i < size; ++i) target[i] = source[i];
  return to;
}

}  // extern "C"
