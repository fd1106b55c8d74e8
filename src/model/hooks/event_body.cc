#include "model/hooks/event_body.h"

#include <fmt/format.h>

#include "json/json_members.h"

namespace clawdforge {
namespace {

std::string utc_text(TimePoint at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

}  // namespace

std::shared_ptr<const std::string> event_body(std::string_view type, TimePoint at,
                                              std::string_view data) {
  std::string body = "{";
  body.reserve(data.size() + 128);
  append_member(body, "type", type);
  append_member(body, "timestamp", utc_text(at));
  append_name(body, "data");
  body.append(data).append("}");
  return std::make_shared<const std::string>(std::move(body));
}

}  // namespace clawdforge
