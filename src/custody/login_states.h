// LoginStates decides how a login that is kept stands, when it has to be renewed, and what callers
// get meanwhile. Pure: it is told what was seen, and the time. Io thread only.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "custody/login_file.h"
#include "custody/login_gate.h"

namespace clawdforge {

// The program renews a login that has 300 seconds left; it is asked one second after.
inline constexpr std::chrono::seconds kRenewBefore{299};
// With less than that, no work begins: its first request would come too late.
inline constexpr std::chrono::seconds kTooLateBefore{30};
// A person is told so long before the sign-in ends.
inline constexpr std::chrono::days kEndsSoonBefore{7};

enum class CustodyState { external, ok, renewing, late, unreachable, refused, logged_out };
inline constexpr int kCustodyStates = 7;

std::string_view name_of(CustodyState state);

// What the keeper is started for.
enum class KeeperTask {
  renew,  // what the program does of its own accord when the time has come
  force,  // also a login that looks good, because an agent was refused
};

// What a keeper that has ended has told.
struct KeeperWord {
  bool was_there = true;               // else there is no such program
  std::optional<bool> logged_in = {};  // as the program says; none: it said nothing
};

class LoginStates {
 public:
  // The file was looked at.
  void note_file(const LoginFile& file, TimePoint now);

  // None: there is nothing to do for it.
  std::optional<KeeperTask> keeper_due(TimePoint now) const;
  void note_keeper(KeeperTask task);
  // `after` is the file as the keeper has left it. True: the login was renewed.
  bool note_keeper_end(const KeeperWord& word, const LoginFile& after, TimePoint now);

  // An agent that began its work at `begun` was refused for its login.
  void note_refused(TimePoint begun, TimePoint now);

  CustodyState state(TimePoint now) const;
  std::optional<LoginRefusal> refusal(TimePoint now, std::string_view login_hint) const;
  const LoginFile& file() const { return file_; }
  bool is_keeper_busy() const { return keeper_.has_value(); }
  // When something has to be done, or the state changes, without news.
  TimePoint next_look(TimePoint now) const;

 private:
  bool has_login(TimePoint now) const;
  void postpone(TimePoint now);
  void note_good();

  LoginFile file_;
  bool has_looked_ = false;
  bool needs_word_ = false;    // of the program: a login has come, or there is none
  bool needs_trial_ = true;    // of the program, with a login that was there at the start
  bool is_elsewhere_ = false;  // there is no file, and the program says that it is logged in
  bool is_program_gone_ = false;
  std::optional<KeeperTask> keeper_;  // that runs
  bool is_refused_ = false;
  int tries_ = 0;  // in vain, since it was good
  TimePoint next_try_;
  std::optional<TimePoint> renewed_at_;
};

}  // namespace clawdforge
