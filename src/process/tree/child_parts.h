// What a Child shares with the Spawner: the pipes, and what is known of the tree. It lives
// until both the Child and the Spawner's coroutines are done with it. Io thread only.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <optional>
#include <string>

#include "base/async/signal.h"
#include "process/launch/launch.h"
#include "process/tree/child.h"

namespace clawdforge {

struct Child::Parts {
  using Stream = boost::asio::posix::basic_stream_descriptor<IoExecutor>;

  Parts(IoExecutor executor, std::size_t tail_bytes_max);

  // Takes the descriptors over. False, with some of them left in `launched`, when the
  // system cannot watch one more.
  [[nodiscard]] bool take(Launched& launched);

  void let_go();
  // The launcher, unless it is reaped.
  void signal_launcher(int number);
  void close_input();
  void note_exit(ExitStatus status);
  void note_gone();

  // Reads what there is of standard error, without waiting. False: that was the end.
  bool drain_errors();
  std::string_view error_tail() const;

  pid_t pid = 0;
  Stream pidfd;
  Descriptor lifeline;
  Stream input;
  Stream output;
  Stream errors;
  Stream report;
  std::optional<ExitStatus> exit_status;
  bool is_let_go = false;
  bool is_reaped = false;  // the launcher: from then on another process may have its pid
  bool is_gone = false;
  BusyPath busy;  // of the plan
  TreeBounds bounds;
  std::string owner;  // of the plan
  Descriptor outlet;
  std::int64_t begun_at = 0;    // in ticks as below, from before the launcher's start
  std::int64_t start_time = 0;  // zero: not asked for yet
  Signal changed;               // one of the above is news

 private:
  const std::size_t tail_bytes_max_;
  std::string tail_;  // may have some more than the tail before its end
};

}  // namespace clawdforge
