#include "quota/app_tally.h"

#include <cassert>

namespace clawdforge {

void AppShare::GiveBack::operator()(AppTally* tally) const {
  if (--entry->second == 0) tally->counts_.erase(entry);
}

AppTally::~AppTally() { assert(counts_.empty()); }

std::optional<AppShare> AppTally::take(const AppName& app, std::optional<std::int64_t> most) {
  auto entry = counts_.find(app);
  if (most && (entry == counts_.end() ? 0 : entry->second) >= *most) return std::nullopt;
  if (entry == counts_.end()) entry = counts_.emplace(app, 0).first;
  ++entry->second;
  return AppShare(this, entry);
}

std::int64_t AppTally::held_by(const AppName& app) const {
  const auto entry = counts_.find(app);
  return entry == counts_.end() ? 0 : entry->second;
}

}  // namespace clawdforge
