#include "upkeep/app_removals.h"

#include <utility>

#include "ledger/rows/app_rows.h"
#include "sessions/session_closer.h"
#include "sessions/sessions.h"

namespace clawdforge {

Task<void> AppRemovals::follow() {
  deps_.sessions.recheck_readers();
  for (const AppName& app : std::exchange(apps_, {})) {
    const auto closed = co_await deps_.rows.close_left(app, deps_.clock.now());
    if (closed) continue;
    deps_.log.warn(
        "what a removed app has left could not be closed yet",
        {{"app", std::string_view(app)}, {"why", std::string_view(closed.error().detail)}});
    apps_.insert(app);
  }
  const auto followed = co_await deps_.sessions.closer().follow_ledger();
  if (followed) co_return;
  deps_.log.warn("the agents of a removed app are left to the sweeper",
                 {{"why", std::string_view(followed.error().detail)}});
}

}  // namespace clawdforge
