// Stands between the gateway and the C library while a test makes the machine misbehave: a disk
// that fails, waits or never answers, descriptors and processes that run out, a clock that jumps.
// Preloaded; obeys a small file that the test writes and both map: see tests/blackbox/faults.py,
// which has the same list of places.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
  kPlaces,
};

static _Atomic long* places;
static _Atomic long nowhere[kPlaces];

static _Atomic long* place(int number) {
  if (places == NULL) {
    const char* path = getenv("FAULTS_CONTROL");
    int (*real_open)(const char*, int, ...) = dlsym(RTLD_NEXT, "open");
    const int file = path == NULL ? -1 : real_open(path, O_RDWR | O_CLOEXEC);
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

// Finds the function that is stood in front of, once.
#define REAL(name)                                               \
  static __typeof__(&name) real;                                 \
  if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)

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
  REAL(pwrite64);
  return write_fails(file) ? -1 : real(file, bytes, size, at);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  REAL(pwrite);
  return write_fails(file) ? -1 : real(file, bytes, size, at);
}
ssize_t write(int file, const void* bytes, size_t size) {
  REAL(write);
  return write_fails(file) ? -1 : real(file, bytes, size);
}
int fsync(int file) {
  REAL(fsync);
  return sync_fails(file) ? -1 : real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  return sync_fails(file) ? -1 : real(file);
}

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

#define OPEN(name)                                         \
  int name(const char* path, int flags, ...) {             \
    REAL(name);                                            \
    va_list more;                                          \
    va_start(more, flags);                                 \
    const mode_t mode = va_arg(more, mode_t);              \
    va_end(more);                                          \
    return open_fails(path, flags) ? -1 : real(path, flags, mode); \
  }
#define OPENAT(name)                                       \
  int name(int where, const char* path, int flags, ...) {  \
    REAL(name);                                            \
    va_list more;                                          \
    va_start(more, flags);                                 \
    const mode_t mode = va_arg(more, mode_t);              \
    va_end(more);                                          \
    return open_fails(path, flags) ? -1 : real(where, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int mkdirat(int where, const char* path, mode_t mode) {
  REAL(mkdirat);
  if (value(kOpenErrno) == 0) return real(where, path, mode);
  errno = (int)value(kOpenErrno);
  return -1;
}
int socket(int domain, int type, int protocol) {
  REAL(socket);
  return descriptor_fails() ? -1 : real(domain, type, protocol);
}
int pipe2(int ends[2], int flags) {
  REAL(pipe2);
  return descriptor_fails() ? -1 : real(ends, flags);
}
int dup(int file) {
  REAL(dup);
  return descriptor_fails() ? -1 : real(file);
}
int fcntl(int file, int command, ...) {
  REAL(fcntl);
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && descriptor_fails()) return -1;
  return real(file, command, argument);
}
int pidfd_open(pid_t pid, unsigned flags) {
  REAL(pidfd_open);
  return descriptor_fails() ? -1 : real(pid, flags);
}
// The connection that brings the request under test is made before: what fails here is the next.
int accept(int file, struct sockaddr* address, socklen_t* size) {
  REAL(accept);
  return descriptor_fails() ? -1 : real(file, address, size);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const environment[]) {
  REAL(posix_spawn);
  if (value(kSpawnErrno) != 0) return (int)value(kSpawnErrno);
  return real(pid, path, actions, attributes, arguments, environment);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  REAL(clock_gettime);
  const int code = real(clock, time);
  if (code == 0 && clock == CLOCK_REALTIME) time->tv_sec += value(kClockSeconds);
  return code;
}
int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  REAL(gettimeofday);
  const int code = real(time, zone);
  if (code == 0) time->tv_sec += value(kClockSeconds);
  return code;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
