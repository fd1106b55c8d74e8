#include "api/shapes/audit_page.h"

#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kAuditPageDefault = 100;
constexpr std::int64_t kAuditPageMax = 1'000;
constexpr std::int64_t kQuerySecondsMax = 253'402'300'799;  // the end of the year 9999

std::optional<TimePoint> time_of(Query& query, std::string_view name) {
  return query.integer(name, 0, kQuerySecondsMax).transform([](std::int64_t second) {
    return TimePoint(std::chrono::seconds(second));
  });
}

}  // namespace

AuditFilter audit_filter_of(Query& query) {
  AuditFilter filter;
  filter.since = time_of(query, "since");
  filter.until = time_of(query, "until");
  filter.limit = query.integer("limit", 1, kAuditPageMax).value_or(kAuditPageDefault);
  filter.cursor = query.text("cursor");
  return filter;
}

void append_page_end(std::string& out, std::size_t count,
                     const std::optional<std::string>& next_cursor) {
  out += ']';
  append_member(out, "count", count);
  append_member(out, "next_cursor", next_cursor);
  out += '}';
}

}  // namespace clawdforge
