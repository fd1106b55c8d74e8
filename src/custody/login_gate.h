// LoginGate tells whether the login of an agent is good for more work now: what the admission of
// work asks, without knowing how logins are kept. Io thread only; outlives all who ask.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/async/signal.h"
#include "base/result.h"

namespace clawdforge {

// Work waits so long for a login that is being renewed.
inline constexpr std::chrono::seconds kLoginHoldMax{20};

struct LoginRefusal {
  Failure failure;
  bool may_wait = false;  // the login may be good soon: worth a wait for changed()
};

class LoginGate {
 public:
  virtual ~LoginGate() = default;

  // Whether the agent's login is kept: that it fails is then ours to mend, not to be tried by runs.
  virtual bool keeps(std::string_view agent) const = 0;
  // None: its work may begin.
  virtual std::optional<LoginRefusal> refusal(std::string_view agent) const = 0;
  // Notified when refusal() may have changed.
  virtual Signal& changed() = 0;
  // Work begins, or ends, to wait for changed().
  virtual void note_waiting(int change) = 0;
  // An agent whose work began then was refused by its maker for its login.
  virtual void note_refused(std::string_view agent,
                            std::chrono::steady_clock::time_point begun) = 0;
};

}  // namespace clawdforge
