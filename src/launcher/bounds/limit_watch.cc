#include "launcher/bounds/limit_watch.h"

#include <fcntl.h>
#include <unistd.h>

namespace launcher {

namespace {

// A tree that takes a gigabyte a second has taken a quarter of one more when it is ended.
constexpr long kLookMs = 250;

// As the kernel has it.
struct DirectoryEntry {
  unsigned long inode;
  long offset;
  unsigned short size;
  unsigned char type;
  char name[1];  // and more
};

// Zero: the name is not a number.
unsigned long process_of(const char* name) {
  unsigned long number = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return 0;
    number = number * 10 + static_cast<unsigned long>(*name - '0');
  }
  return number;
}

// Of a text like "12 34 5": moves behind the number.
unsigned long take_number(const char*& text) {
  while (*text == ' ') ++text;
  unsigned long number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    number = number * 10 + static_cast<unsigned long>(*text - '0');
  }
  return number;
}

// What the process has in memory and does not share, in pages. One that has ended has nothing.
unsigned long own_pages(int proc, unsigned long process) {
  const Line path = Line().add(process).add("/statm");
  const Answer file = call(SYS_openat, proc, path.text(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128] = {};
  const Answer size = call(SYS_read, file, text, sizeof text - 1);
  call(SYS_close, file);
  if (size <= 0) return 0;
  const char* rest = text;
  take_number(rest);  // of addresses
  const unsigned long resident = take_number(rest);
  const unsigned long shared = take_number(rest);
  return resident > shared ? resident - shared : 0;
}

}  // namespace

void LimitWatch::open() {
  if (!is_counting()) return;
  const Answer proc = call(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) give_up("proc", proc);
  proc_ = static_cast<int>(proc);
}

long LimitWatch::every_ms() const { return is_counting() || order_.is_oom_polled ? kLookMs : 0; }

Excess LimitWatch::look() {
  if (order_.is_oom_polled && is_out_of_memory()) return Excess::memory;
  if (!is_counting() || call(SYS_lseek, proc_, 0, SEEK_SET) != 0) return Excess::none;
  unsigned long pages = 0;
  unsigned long count = 0;
  alignas(DirectoryEntry) char entries[8192];
  while (true) {
    const Answer size = call(SYS_getdents64, proc_, entries, sizeof entries);
    if (size <= 0) return Excess::none;
    for (Answer at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->size;
      const unsigned long process = process_of(entry->name);
      if (process <= 1) continue;
      if (order_.count_max > 0 && ++count > order_.count_max) return Excess::processes;
      if (order_.pages_max == 0) continue;
      pages += own_pages(proc_, process);
      if (pages > order_.pages_max) return Excess::memory;
    }
  }
}

bool LimitWatch::is_out_of_memory() const {
  if (order_.oom_file < 0 || call(SYS_lseek, order_.oom_file, 0, SEEK_SET) != 0) return false;
  char text[512] = {};
  if (call(SYS_read, order_.oom_file, text, sizeof text - 1) <= 0) return false;
  constexpr const char* kName = "oom_kill ";
  for (const char* line = text; *line != '\0';) {
    const char* name = kName;
    while (*name != '\0' && *line == *name) {
      ++line;
      ++name;
    }
    if (*name == '\0') return take_number(line) > 0;
    while (*line != '\0' && *line != '\n') ++line;
    if (*line == '\n') ++line;
  }
  return false;
}

}  // namespace launcher
