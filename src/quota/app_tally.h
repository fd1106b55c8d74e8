// AppTally counts how many of one thing each app holds: runs, connections, streams of events.
// An AppShare is one of them; dropping it gives it back. Io thread only. The tally outlives its
// shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong_id.h"

namespace clawdforge {

class AppTally;

class AppShare {
 public:
  AppShare() = default;  // of nothing

 private:
  friend class AppTally;
  using Counts = std::map<AppName, std::int64_t>;
  struct GiveBack {
    Counts::iterator entry;
    void operator()(AppTally* tally) const;
  };
  AppShare(AppTally* tally, Counts::iterator entry) : tally_(tally, GiveBack{entry}) {}

  std::unique_ptr<AppTally, GiveBack> tally_;
};

class AppTally {
 public:
  AppTally() = default;
  ~AppTally();
  AppTally(const AppTally&) = delete;
  AppTally& operator=(const AppTally&) = delete;

  // None: the app holds `most` already. Without `most` there is no limit.
  std::optional<AppShare> take(const AppName& app, std::optional<std::int64_t> most);

  std::int64_t held_by(const AppName& app) const;

 private:
  friend class AppShare;

  AppShare::Counts counts_;  // of apps that hold any
};

}  // namespace clawdforge
