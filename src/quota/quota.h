// Quota says what an app may hold of what all apps share. Io thread only; it outlives the shares
// that it gives.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/app.h"
#include "quota/app_tally.h"

namespace clawdforge {

class Quota {
 public:
  struct Options {
    std::int64_t connections_max_per_app = 0;
    std::int64_t event_streams_max_per_app = 0;
  };

  explicit Quota(Options options) : options_(options) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // For a connection that shows the app's token: held until it shows another one, or ends.
  // Errc::over_quota "too_many_app_connections".
  Result<AppShare> admit_connection(const App& app);
  // For a stream of events, until it ends. Errc::over_quota "too_many_streams".
  Result<AppShare> admit_event_stream(const App& app);

 private:
  const Options options_;
  AppTally connections_;
  AppTally event_streams_;
};

}  // namespace clawdforge
