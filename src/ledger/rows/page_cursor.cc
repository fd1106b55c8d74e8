#include "ledger/rows/page_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

std::string id_text(const SqlValue& value) {
  if (const auto number = whole_in(value)) return std::to_string(*number);
  return text_in(value).value_or("");
}

// From the row's own time, also where that is none that can be shown.
std::string cursor_of(const SqlValue& time, const SqlValue& id) {
  if (const auto second = whole_in(time)) return fmt::format("{}.{}", *second, id_text(id));
  return fmt::format("{:.0f}.{}", std::floor(number_in(time).value_or(0)), id_text(id));
}

// Nothing later than `until` sorts before this place.
PageCursor after(TimePoint until) { return {unix_seconds(until) + 1, ""}; }

}  // namespace

std::unexpected<Failure> foreign_cursor() {
  constexpr std::string_view kMessage = "is not one that a page of this list has given";
  auto refused = fail(Errc::invalid, "validation_failed", fmt::format("cursor {}.", kMessage));
  refused.error().fields = {{"cursor", std::string(kMessage)}};
  return refused;
}

Result<PageCursor> place_of(const AuditFilter& filter) {
  PageCursor place;
  if (filter.cursor) {
    const std::string& cursor = *filter.cursor;
    const char* const end = cursor.data() + cursor.size();
    const auto [dot, error] = std::from_chars(cursor.data(), end, place.second);
    if (error != std::errc() || dot == end || *dot != '.') return foreign_cursor();
    place.id.assign(dot + 1, end);
  }
  if (filter.until) place = std::min(place, after(*filter.until));
  return place;
}

SqlRow page_params(const AuditFilter& filter, const PageCursor& place) {
  const std::int64_t since =
      filter.since ? unix_seconds(*filter.since) : std::numeric_limits<std::int64_t>::min();
  return {since, place.second, place.id, filter.limit + 1};
}

std::optional<std::string> cut_page(std::vector<SqlRow>& rows, std::int64_t limit,
                                    std::size_t time_column, std::size_t id_column) {
  const auto size_max = static_cast<std::size_t>(limit);
  if (rows.size() <= size_max) return std::nullopt;
  rows.resize(size_max);
  const SqlRow& last = rows.back();
  return cursor_of(last.at(time_column), last.at(id_column));
}

}  // namespace clawdforge
