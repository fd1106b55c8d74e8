// Stands between the gateway and the C library while a test makes the machine misbehave: a disk
// that fails, waits or never answers, descriptors and processes that run out, a clock that jumps.
// Preloaded; obeys a small file that the test writes and both map: see tests/blackbox/faults.py,
// which has the same list of places. The kernel is called directly: to look up what is stood in
// front of is not possible in the first moments of a program with a sanitizer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum {
  kWriteErrno,   // each write and sync of the files in scope fails so; 0: none does
  kSyncMillis,   // each sync in scope takes so much longer
  kHold,         // a sync in scope does not return while this is 1
  kHeld,         // how many wait there
  kScope,        // 1: the ledger's files, 2: uploads
  kWriteNth,     // the n-th write or sync in scope fails with EIO, once
  kWrites,       // how many there were since then
  kDescriptorNth,  // the n-th call that makes a descriptor fails with EMFILE, once
  kDescriptors,    // how many there were since then
  kFired,          // whether one of the two has failed
  kClockSeconds,   // added to the time of day
  kSpawnErrno,     // starting a program fails so
  kOpenErrno,      // opening to write, or making a directory, below the data directory fails so
  kSignalsLost,    // while this is 1, no process can be ended: signals by descriptor get lost
  kNamesHold,      // while this is 1, looking up a name that begins with "dead" does not return
  kNamesHeld,      // how many wait there
  kPlaces,
};

static _Atomic long* places;
static _Atomic long nowhere[kPlaces];

static _Atomic long* place(int number) {
  if (places == NULL) {
    const char* path = getenv("FAULTS_CONTROL");
    const int file =
        path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void* mapped = MAP_FAILED;
    if (file >= 0) {
      mapped = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      close(file);
    }
    places = mapped == MAP_FAILED ? nowhere : mapped;
  }
  return &places[number];
}

static long value(int number) { return atomic_load(place(number)); }

static int is_in_scope(int file) {
  const long scope = value(kScope);
  if (scope == 0) return 0;
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = '\0';
  return ((scope & 1) != 0 && strstr(path, "/clawdforge.db") != NULL) ||
         ((scope & 2) != 0 && strstr(path, "/uploads") != NULL);
}

static int is_the_nth(int nth, int count) {
  const long wanted = value(nth);
  if (wanted == 0 || atomic_fetch_add(place(count), 1) + 1 != wanted) return 0;
  atomic_store(place(kFired), 1);
  return 1;
}

static int write_fails(int file) {
  if (value(kWriteErrno) == 0 && value(kWriteNth) == 0) return 0;
  if (!is_in_scope(file)) return 0;
  long error = value(kWriteErrno);
  if (error == 0 && is_the_nth(kWriteNth, kWrites)) error = EIO;
  if (error == 0) return 0;
  errno = (int)error;
  return 1;
}

static void pause_for(long milliseconds) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static int sync_fails(int file) {
  if (value(kScope) == 0) return 0;
  if ((value(kSyncMillis) != 0 || value(kHold) != 0) && is_in_scope(file)) {
    pause_for(value(kSyncMillis));
    atomic_fetch_add(place(kHeld), 1);
    while (value(kHold) != 0) pause_for(5);
    atomic_fetch_sub(place(kHeld), 1);
  }
  return write_fails(file);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  return write_fails(file) ? -1 : syscall(SYS_pwrite64, file, bytes, size, at);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  return write_fails(file) ? -1 : syscall(SYS_pwrite64, file, bytes, size, at);
}
ssize_t write(int file, const void* bytes, size_t size) {
  return write_fails(file) ? -1 : syscall(SYS_write, file, bytes, size);
}
int fsync(int file) { return sync_fails(file) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return sync_fails(file) ? -1 : (int)syscall(SYS_fdatasync, file); }

static int descriptor_fails(void) {
  if (!is_the_nth(kDescriptorNth, kDescriptors)) return 0;
  errno = EMFILE;
  return 1;
}

static int open_fails(const char* path, int flags) {
  if (descriptor_fails()) return 1;
  const long error = value(kOpenErrno);
  if (error == 0 || ((flags & (O_WRONLY | O_RDWR)) == 0 && (flags & O_TMPFILE) != O_TMPFILE)) {
    return 0;
  }
  if (path[0] == '/' && strstr(path, "/data/") == NULL) return 0;
  errno = (int)error;
  return 1;
}

static int open_at(int where, const char* path, int flags, mode_t mode) {
  return open_fails(path, flags) ? -1 : (int)syscall(SYS_openat, where, path, flags, mode);
}

#define MODE_BEHIND(last)                 \
  va_list more;                           \
  va_start(more, last);                   \
  const mode_t mode = va_arg(more, mode_t); \
  va_end(more)

int open(const char* path, int flags, ...) {
  MODE_BEHIND(flags);
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_BEHIND(flags);
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int where, const char* path, int flags, ...) {
  MODE_BEHIND(flags);
  return open_at(where, path, flags, mode);
}
int openat64(int where, const char* path, int flags, ...) {
  MODE_BEHIND(flags);
  return open_at(where, path, flags, mode);
}

int mkdirat(int where, const char* path, mode_t mode) {
  if (value(kOpenErrno) == 0) return (int)syscall(SYS_mkdirat, where, path, mode);
  errno = (int)value(kOpenErrno);
  return -1;
}
int socket(int domain, int type, int protocol) {
  return descriptor_fails() ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}
int pipe2(int ends[2], int flags) {
  return descriptor_fails() ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}
int dup(int file) { return descriptor_fails() ? -1 : (int)syscall(SYS_dup, file); }
int fcntl(int file, int command, ...) {
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && descriptor_fails()) return -1;
  return (int)syscall(SYS_fcntl, file, command, argument);
}
int pidfd_open(pid_t pid, unsigned flags) {
  return descriptor_fails() ? -1 : (int)syscall(SYS_pidfd_open, pid, flags);
}
int pidfd_send_signal(int process, int number, siginfo_t* more, unsigned flags) {
  if (value(kSignalsLost) != 0) return 0;
  return (int)syscall(SYS_pidfd_send_signal, process, number, more, flags);
}
int accept(int file, struct sockaddr* address, socklen_t* size) {
  return descriptor_fails() ? -1 : (int)syscall(SYS_accept, file, address, size);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const environment[]) {
  static __typeof__(&posix_spawn) real;
  if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, "posix_spawn");
  if (value(kSpawnErrno) != 0) return (int)value(kSpawnErrno);
  return real(pid, path, actions, attributes, arguments, environment);
}

int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  static __typeof__(&getaddrinfo) real;
  if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");
  if (name != NULL && strncmp(name, "dead", 4) == 0 && value(kNamesHold) != 0) {
    atomic_fetch_add(place(kNamesHeld), 1);
    while (value(kNamesHold) != 0) pause_for(5);
    atomic_fetch_sub(place(kNamesHeld), 1);
    return EAI_AGAIN;
  }
  return real(name, service, hints, found);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int code = (int)syscall(SYS_clock_gettime, clock, time);
  if (code == 0 && clock == CLOCK_REALTIME) time->tv_sec += value(kClockSeconds);
  return code;
}
int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  const int code = (int)syscall(SYS_gettimeofday, time, zone);
  if (code == 0) time->tv_sec += value(kClockSeconds);
  return code;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
