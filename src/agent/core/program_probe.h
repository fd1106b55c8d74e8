// ProgramProbe finds out in the background whether a program is there and what version it
// says it is, at start and every few minutes. Io thread only. Its owner calls stop() and
// waits for run() before it dies.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/async/async.h"
#include "base/async/timer.h"
#include "model/program.h"
#include "process/tree/spawner.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kProbeInterval{300};
// While it is absent: the owner may be installing it just now.
inline constexpr std::chrono::seconds kProbeAbsentInterval{30};
inline constexpr std::chrono::seconds kProbeTimeMax{10};
inline constexpr std::size_t kVersionCharactersMax = 200;

class ProgramProbe {
 public:
  using Finding = ProgramFinding;

  // The jail that the program will run in, asked for before each look; none: it is not jailed.
  struct Jail {
    std::function<std::optional<JailPlan>()> plan;
    // The program runs outside, and not inside: what it said last. Once until it runs inside.
    std::function<void(std::string_view said)> on_failure;
  };

  // `working_dir` is where it runs: the data directory. In a jail that is the root.
  ProgramProbe(IoExecutor executor, Spawner& spawner, std::string program,
               std::map<std::string, std::string> environment, std::string working_dir,
               Jail jail = {});

  const Finding& finding() const { return finding_; }
  bool has_looked() const { return has_looked_; }  // at least once

  // Looks now: runs `program --version` and waits for it, bounded. Absent is also what
  // does not end well or in time. A machine that refuses a process changes no finding.
  Task<void> look();
  // Looks at once and then every kProbeInterval, until stop().
  Task<void> run();
  void stop();

 private:
  struct Trial {
    bool has_run = false;  // else the machine has refused a process
    bool is_good = false;
    std::string version;
    std::string said;  // on standard error
  };

  Task<void> end_in_time();
  Task<Trial> try_program(ChildPlan plan);
  Task<std::string> first_line();

  IoExecutor executor_;
  Timer timer_;     // between two looks
  Timer deadline_;  // of one look
  Spawner& spawner_;
  const std::string program_;
  const std::map<std::string, std::string> environment_;
  const std::string working_dir_;
  const Jail jail_;
  bool is_jail_failure_told_ = false;
  Finding finding_;
  Child* child_ = nullptr;  // while looking
  bool has_looked_ = false;
  bool is_stopped_ = false;
};

}  // namespace clawdforge
