// Child is one program that runs for us, with everything it starts: a tree. Between us
// and it stands the launcher, which ends the whole tree when we let go of it, also when
// we are killed. A Child is used from the io thread by one owner.
//
// Its end has two steps. The program itself ends: exit(). Then the last process of its
// tree is gone: gone(). The destructor lets go; the Spawner reaps what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/async/async.h"
#include "base/descriptor.h"
#include "process/tree/exit_status.h"

namespace clawdforge {

// What tells a leftover process from a stranger that has its pid now.
struct ProcessId {
  std::int64_t pid = 0;         // of the launcher
  std::int64_t start_time = 0;  // in clock ticks since boot, as /proc has it
};

class Child {
 public:
  struct Parts;  // in child_parts.h: what it shares with the Spawner
  explicit Child(std::shared_ptr<Parts> parts);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ProcessId id() const;
  IoExecutor executor() const;

  // To its standard input. Waits while the pipe is full. Errc::gone when the program
  // does not read any more; that does not mean that the program has failed.
  Async<void> write(std::string bytes);
  void close_input();
  // False: no process is left that could read its standard input. Does not wait.
  bool has_input_reader() const;

  // The next bytes of its standard output; empty: the end. At most `bytes_max` at once.
  // One reader at a time. After let_go() it gives the end soon.
  Async<std::string> read(std::size_t bytes_max);

  // The last bytes of its standard error so far, at most Spawner::Options::tail_bytes_max.
  // It is read all the time, so that a program which complains much does not stand still.
  // When exit() is known, what the program said last is in it. Good until the next co_await.
  std::string_view error_tail() const;

  // On which the listener of its own network comes, once; it ends with the tree. Not open: it has
  // no such network.
  Descriptor take_outlet();

  // How the program ended; waits for it. Its descendants are ended by the launcher then.
  Task<ExitStatus> exit();

  // TERM to the tree, the grace, then KILL until nothing is left. Returns at once; calling
  // it again does nothing. Pending reads and writes end.
  void let_go();

  // Waits until no process of the tree is left and the launcher is reaped.
  Task<void> gone();

 private:
  std::shared_ptr<Parts> parts_;
};

}  // namespace clawdforge
