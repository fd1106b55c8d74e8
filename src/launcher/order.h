// What the launcher is told to do, and how it tells what became of it. The gateway's
// side of both is src/process/tree/launch.cc and src/process/tree/report.cc.
//
// Arguments: GRACE_MS [STEP...] -- DIR [PROGRAM ARGUMENT...]
// The steps may stand in any order; they are done in this one, each before the program begins:
//   pid-namespace   the tree gets a PID namespace, and a /proc that shows nothing else
//   hide HIDDEN     the tree sees an empty directory in the place of HIDDEN
//   keep KEPT       except for this directory below HIDDEN; may be repeated
//   descriptors N   the program's soft limit on descriptors
//   busy PATH       while PATH exists, the KILL after TERM waits: the tree is saving something that
//                   would be lost
//   busy-ms N       but at most so many milliseconds
// DIR is the working directory. Always done: the launcher cannot be dumped or traced, and the
// program has no capabilities, gains no privileges, and is the kernel's first choice when memory
// runs out.
//
// Descriptors: 0, 1, 2 are the program's; 3 is this program's own file; 4 is the lifeline,
// whose end of file means "end the tree"; 5 takes the report, which is one line:
//   exited CODE | signaled NUMBER | not-started ERRNO STEP
#pragma once

#include <stddef.h>

#include "launcher/kernel.h"

namespace launcher {

inline constexpr int kOwnFile = 3;
inline constexpr int kLifeline = 4;
inline constexpr int kReport = 5;

// Directories that one tree keeps: its own, and those that all trees need.
inline constexpr int kKeptDirsMax = 8;

struct Order {
  long grace_ms;                   // between TERM and KILL
  bool is_pid_namespace_wanted;    // around the tree
  const char* hidden_dir;          // null: none
  const char* kept[kKeptDirsMax];  // below it
  int kept_count;
  bool is_soft_limit_wanted;  // on descriptors, for the program
  unsigned long descriptors_soft;
  const char* busy_path;  // null: none
  long busy_ms;           // at most, beside the grace
  const char* working_dir;
  char** program;  // its argv; empty: only try whether a program could be started
  char** environment;
};

// False: the arguments make no sense.
bool parse_order(int count, char** arguments, Order& order);

// A short text in the making. What does not fit is cut.
class Line {
 public:
  Line& add(const char* text);
  Line& add(unsigned long number);

  const char* text() const { return text_; }  // ends with a zero byte
  size_t size() const { return size_; }

 private:
  char text_[100] = {};
  size_t size_ = 0;
};

void report_exited(int code);
void report_signaled(int number);
void report_not_started(long error, const char* step);

// Reports the step that failed and what the kernel answered, and ends this process.
[[noreturn]] void give_up(const char* step, Answer answer);

}  // namespace launcher
