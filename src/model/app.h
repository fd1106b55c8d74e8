// An app is a caller with a token; it is known by its name. Plain records, no I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net.h"
#include "base/secret.h"
#include "base/strong_id.h"
#include "model/policy.h"

namespace clawdforge {

struct AppLimits;  // model/limits/app_limits.h

enum class EventFormat { acp, simple };

std::string_view name_of(EventFormat format);
std::optional<EventFormat> event_format_from(std::string_view name);

struct App {
  AppName name;
  Digest token_digest{};
  std::vector<Cidr> ip_cidrs;  // empty: wherever the gateway itself allows
  std::optional<EventFormat> event_format;
  std::optional<std::int64_t> sessions_max;
  std::optional<std::int64_t> runs_max;
  Policy policy;                            // what it may ask for, as far as its owner has said
  std::shared_ptr<const AppLimits> limits;  // what it may use; null: its owner has set no limit
  TimePoint created_at;
  std::optional<TimePoint> last_used_at;
};

// ^[a-z0-9_-]{1,64}$
bool is_app_name(std::string_view text);

}  // namespace clawdforge
