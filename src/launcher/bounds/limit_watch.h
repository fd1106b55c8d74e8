// LimitWatch counts what the tree uses, where no control group does, and sees when the kernel has
// ended a process of the tree because its group was out of memory. Used by the supervisor alone.
#pragma once

#include "launcher/order.h"

namespace launcher {

enum class Excess { none, memory, processes };

class LimitWatch {
 public:
  explicit LimitWatch(const Order& order) : order_(order) {}
  LimitWatch(const LimitWatch&) = delete;
  LimitWatch& operator=(const LimitWatch&) = delete;

  // In the root and the PID namespace of the tree. A step that fails is reported and ends the
  // launcher.
  void open();

  // How often look() must be called; zero: never.
  long every_ms() const;
  // Counts processes of the tree but not the supervisor. Memory is what they do not share.
  Excess look();
  // Whether the kernel has ended something of the tree's group for its memory.
  bool is_out_of_memory() const;

 private:
  bool is_counting() const { return order_.pages_max > 0 || order_.count_max > 0; }

  const Order& order_;
  int proc_ = -1;
};

}  // namespace launcher
