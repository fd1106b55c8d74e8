// What the launcher is told to do, and how it tells what became of it. The gateway's
// side of both is src/process/launch/launch_order.cc and src/process/tree/report.cc.
//
// The order is a sealed file in memory, which only the launcher can read: an argument would show to
// every process, and in /proc/1/cmdline to the program. It is a list of fields. Each is a name and
// its values, all ended by a zero byte. `version` is the first; a name that is not known is
// refused:
//   version N         of this list: kOrderVersion
//   grace-ms N        between TERM and KILL
//   pid-namespace N   1: the tree gets a PID namespace, and a /proc that shows nothing else
//   hide HIDDEN       the tree sees an empty directory in the place of HIDDEN
//   keep KEPT         except for this directory below HIDDEN; may be repeated
//   root N            1: the tree gets a root of its own, with nothing in it but the places below
//   inside-id N       the user and group that the tree sees itself as; else those that it has
//   rules N           1: Landlock allows the tree nothing but the places below
//   ro PATH           a place that can be read; must be there. A parent stands before its child
//   ro? PATH          likewise; left out where it is not there
//   rw PATH           a place that can be written; must be there
//   cover PATH        an empty directory in the place of PATH
//   tmp PATH          an empty directory that can be written, in memory
//   link PATH TARGET  a symbolic link
//   descriptors N     the program's soft limit on descriptors
//   busy PATH         while PATH exists, the KILL after TERM waits: the tree is saving something
//                     that would be lost
//   busy-ms N         but at most so many milliseconds
//   cgroup DIR        a control group that the program joins; may be repeated
//   oom-count FILE    says how often the kernel has ended something of it for its memory
//   oom-polled N      1: and the tree is ended when it has; 0: the kernel ends all of it by itself
//   pages-max N       of memory that the tree's processes do not share; counted by the launcher
//   count-max N       of processes in the tree; likewise
//   processes N       of the tree's user namespace, which the kernel counts, threads and launcher
//                     included
//   data-bytes N      of one process
//   file-bytes N      of one file that a process writes
//   network N         1: the tree gets a network of its own, with loopback alone; only with a root
//   listener PORT     and on this port of it a listener, which is handed out on descriptor 7
//   filter N          1: system calls that no agent needs are refused
//   cwd DIR           the working directory
//   arg TEXT          of the program's argv; may be repeated. None: only try whether a program
//                     could be started
// Always done: the launcher cannot be dumped or traced, and the program has no capabilities, gains
// no privileges, and is the kernel's first choice when memory runs out.
//
// Descriptors: 0, 1, 2 are the program's; 3 is this program's own file; 4 is the lifeline,
// whose end of file means "end the tree"; 5 takes the report; 6 is the order; 7 is a socket for the
// listener, where there is one. The report is one line:
//   exited CODE | signaled NUMBER | not-started ERRNO STEP | over-memory 0 | over-processes 0
#pragma once

#include <stddef.h>

#include "launcher/kernel.h"

namespace launcher {

inline constexpr int kOwnFile = 3;
inline constexpr int kLifeline = 4;
inline constexpr int kReport = 5;
inline constexpr int kOrder = 6;
inline constexpr int kOutlet = 7;

inline constexpr unsigned long kOrderVersion = 1;

// Directories that one tree keeps: its own, and those that all trees need.
inline constexpr int kKeptDirsMax = 8;
// In the root of one tree.
inline constexpr int kPlacesMax = 256;

// Of one tree: memory, processes and processor time may each have a group of their own.
inline constexpr int kCgroupsMax = 4;

enum class PlaceKind { read, read_if_there, write, cover, temporary, link };

struct Place {
  PlaceKind kind;
  const char* path;
  const char* target;  // of a link
};

struct Order {
  long grace_ms;                   // between TERM and KILL
  bool is_pid_namespace_wanted;    // around the tree
  const char* hidden_dir;          // null: none
  const char* kept[kKeptDirsMax];  // below it
  int kept_count;
  bool is_root_wanted;    // an own one
  bool are_rules_wanted;  // of Landlock
  bool is_inside_id_wanted;
  unsigned long inside_id;
  Place places[kPlacesMax];
  int place_count;
  bool is_soft_limit_wanted;  // on descriptors, for the program
  unsigned long descriptors_soft;
  const char* busy_path;  // null: none
  long busy_ms;           // at most, beside the grace
  const char* cgroups[kCgroupsMax];
  int cgroup_files[kCgroupsMax];  // once open_limits() was called
  int cgroup_count;
  const char* oom_count;  // null: none
  int oom_file;           // once open_limits() was called; -1: none
  bool is_oom_polled;
  // Of these zero means that there is no limit.
  unsigned long pages_max;
  unsigned long count_max;
  unsigned long processes_max;
  unsigned long data_bytes_max;
  unsigned long file_bytes_max;
  bool is_network_wanted;       // an own one
  unsigned long listener_port;  // zero: none
  bool is_filter_wanted;
  const char* working_dir;
  char** program;  // its argv; empty: only try whether a program could be started
  char** environment;
};

// Takes the order out of its descriptor, and closes that. A negated errno: it makes no sense.
Answer read_order(Order& order);

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
void report_over_memory();
void report_over_processes();
void report_not_started(long error, const char* step);

// Reports the step that failed and what the kernel answered, and ends this process.
[[noreturn]] void give_up(const char* step, Answer answer);

}  // namespace launcher
