#include "launcher/bounds/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

namespace launcher {

namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
// From here on they are those of another interface of the same processor.
constexpr unsigned kCallsEnd = 0x40000000;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
constexpr unsigned kCallsEnd = 0xFFFFFFFF;
#endif

// Parts of the kernel that are large and seldom used, or that only an administrator needs.
constexpr unsigned kRefused[] = {
    __NR_acct,
    __NR_add_key,
    __NR_adjtimex,
    __NR_bpf,
    __NR_clock_adjtime,
    __NR_clock_settime,
    __NR_delete_module,
    __NR_finit_module,
    __NR_init_module,
    __NR_io_uring_enter,
    __NR_io_uring_register,
    __NR_io_uring_setup,
    __NR_kexec_file_load,
    __NR_kexec_load,
    __NR_keyctl,
    __NR_open_by_handle_at,
    __NR_perf_event_open,
    __NR_quotactl,
    __NR_reboot,
    __NR_request_key,
    __NR_settimeofday,
    __NR_swapoff,
    __NR_swapon,
    __NR_syslog,
    __NR_userfaultfd,
    __NR_vhangup,
#if defined(__x86_64__)
    __NR_ioperm,
    __NR_iopl,
    __NR_modify_ldt,
#endif
};
constexpr int kRefusedCount = sizeof kRefused / sizeof kRefused[0];

sock_filter load(unsigned at) { return {BPF_LD | BPF_W | BPF_ABS, 0, 0, at}; }
sock_filter give(unsigned answer) { return {BPF_RET | BPF_K, 0, 0, answer}; }
// What follows is left out unless, or if, the loaded number is `value`.
sock_filter skip_unless_equal(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value}; }
sock_filter skip_if_equal(unsigned value) { return {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value}; }
sock_filter skip_if_below(unsigned value) { return {BPF_JMP | BPF_JGE | BPF_K, 0, 1, value}; }

}  // namespace

Answer filter_calls(const Order& order) {
  if (!order.is_filter_wanted) return 0;
  constexpr unsigned kNotHere = SECCOMP_RET_ERRNO | ENOSYS;
  constexpr unsigned kNotAllowed = SECCOMP_RET_ERRNO | EPERM;
  sock_filter steps[7 + 2 * kRefusedCount];
  int count = 0;
  steps[count++] = load(offsetof(seccomp_data, arch));
  steps[count++] = skip_if_equal(kArchitecture);
  steps[count++] = give(kNotHere);
  steps[count++] = load(offsetof(seccomp_data, nr));
  steps[count++] = skip_if_below(kCallsEnd);
  steps[count++] = give(kNotHere);
  for (const unsigned refused : kRefused) {
    steps[count++] = skip_unless_equal(refused);
    steps[count++] = give(kNotAllowed);
  }
  steps[count++] = give(SECCOMP_RET_ALLOW);
  const sock_fprog program = {static_cast<unsigned short>(count), steps};
  return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program);
}

}  // namespace launcher
