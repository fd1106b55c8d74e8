// What the launcher is told to do, and how it tells what became of it. The gateway's
// side of both is src/process/tree/launch.cc and src/process/tree/report.cc.
//
// Arguments, by position: GRACE_MS on|off NOFILE_SOFT|- DIR [PROGRAM ARGUMENT...]
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

struct Order {
  long grace_ms;              // between TERM and KILL
  bool is_namespace_wanted;   // a PID namespace around the tree
  bool is_soft_limit_wanted;  // on descriptors, for the program
  unsigned long descriptors_soft;
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
