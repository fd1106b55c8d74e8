// Tree is the program and everything that descends from it. One process supervises it
// from start to end: the launcher itself, or the first process of the namespace.
//
// How a tree is ended without ever hitting a stranger: only direct children are signalled
// by their id. An id of ours cannot get a new owner before we have reaped it, and we reap
// in the same thread that signals. Deeper descendants are not touched; when their parent
// dies they become our children, because we are the subreaper, and then it is their turn.
// The process group of the program is signalled only while the program is not reaped;
// for so long its number cannot name another group.
#pragma once

#include <signal.h>

#include "launcher/bounds/limit_watch.h"
#include "launcher/order.h"

namespace launcher {

class Tree {
 public:
  // `is_first`: we are the first process of a PID namespace.
  Tree(const Order& order, bool is_first) : order_(order), is_first_(is_first), watch_(order) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Starts the program, or reports why not and ends the process.
  void start();

  // Returns when no process of the tree is left. Reports how the program ended as soon
  // as it did. The tree is ended when the program has ended or the lifeline has.
  void supervise();

 private:
  enum class Phase { running, asked, killing };

  [[noreturn]] void become_program(int failure, Answer launcher);
  bool reap();
  void note_program_end(const siginfo_t& end);
  void ask();
  void ask_once(int child);
  void forget(int child);
  void kill_children();
  bool is_patient() const;
  void wait_for_news();
  void look_at_limits();
  template <class Action>
  void for_each_child(Action action);

  static constexpr int kAskedMax = 4096;

  const Order& order_;
  const bool is_first_;
  LimitWatch watch_;
  Excess excess_ = Excess::none;  // for which the tree was ended
  Phase phase_ = Phase::running;
  int program_ = 0;
  bool is_program_reaped_ = false;
  long kill_at_ms_ = 0;  // on the monotonic clock, once asked
  int children_ = -1;    // the kernel's list of our children
  int signals_ = -1;
  int failure_ = -1;  // where the program's process says why it could not become it
  // Children that got TERM and are not reaped: they get it once. Those that find no place
  // here get none, only the KILL at the end.
  int asked_[kAskedMax];
  int asked_count_ = 0;
};

}  // namespace launcher
