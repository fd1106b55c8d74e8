#include "agent/failure/posix_zone.h"

#include <chrono>
#include <variant>

namespace clawdforge {
namespace {

using std::chrono::sys_days;
using std::chrono::year;

// The days on which a zone changes its time, one a year.
struct WeekdayOfMonth {
  unsigned month, week, weekday;  // week 5 is the last one
};
struct JulianDay {
  int day;  // 1 to 365: the 29th of February is not counted
};
struct DayOfYear {
  int day;  // 0 to 365
};
struct Change {
  std::variant<WeekdayOfMonth, JulianDay, DayOfYear> day;
  std::int64_t second = 2 * 3600;  // of the local time before the change; may be on another day

  // In local time, as if that were universal.
  std::int64_t local_in(year in) const {
    return sys_days(date_in(in)).time_since_epoch().count() * 86400LL + second;
  }

 private:
  sys_days date_in(year in) const {
    using namespace std::chrono;
    const sys_days first = in / January / 1;
    if (const auto* julian = std::get_if<JulianDay>(&day)) {
      return first + days(julian->day - (in.is_leap() && julian->day >= 60 ? 0 : 1));
    }
    if (const auto* plain = std::get_if<DayOfYear>(&day)) return first + days(plain->day);
    const auto& [of_month, week, of_week] = std::get<WeekdayOfMonth>(day);
    const year_month in_month = in / month(of_month);
    const weekday wanted(of_week);
    return week == 5 ? sys_days(in_month / wanted[last]) : sys_days(in_month / wanted[week]);
  }
};

struct Rule {
  std::int64_t standard = 0;  // seconds east of universal time
  std::int64_t summer = 0;
  std::optional<Change> begin, end;  // of summer time; none: there is no summer time
};

// Takes the parts of a rule from its front. After a mistake is_wrong() stays true.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text) {}

  std::optional<Rule> read() {
    Rule rule;
    name();
    rule.standard = -time(24);
    if (!rest_.empty()) {
      name();
      rule.summer = rest_.starts_with(',') ? rule.standard + 3600 : -time(24);
      rule.begin = change();
      rule.end = change();
    }
    if (is_wrong_ || !rest_.empty()) return std::nullopt;
    return rule;
  }

 private:
  bool skip(char sign) {
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char sign) {
    if (!skip(sign)) is_wrong_ = true;
  }

  // Of at least one letter, or of anything between angle brackets.
  void name() {
    std::size_t size = 0;
    if (skip('<')) {
      size = rest_.find('>');
      if (size == std::string_view::npos) size = rest_.size();
      rest_.remove_prefix(size);
      expect('>');
    } else {
      const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      };
      while (size < rest_.size() && is_letter(rest_[size])) ++size;
      rest_.remove_prefix(size);
    }
    if (size == 0) is_wrong_ = true;
  }

  int number(int most) {
    int value = 0;
    std::size_t size = 0;
    while (size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9' && value <= most) {
      value = value * 10 + (rest_[size++] - '0');
    }
    rest_.remove_prefix(size);
    if (size == 0 || value > most) is_wrong_ = true;
    return is_wrong_ ? 0 : value;
  }

  // [+-]hours[:minutes[:seconds]], in seconds.
  std::int64_t time(int hours_most) {
    const bool is_negative = skip('-');
    if (!is_negative) skip('+');
    std::int64_t seconds = number(hours_most) * 3600LL;
    if (skip(':')) seconds += number(59) * 60LL;
    if (skip(':')) seconds += number(59);
    return is_negative ? -seconds : seconds;
  }

  Change change() {
    Change change;
    expect(',');
    if (skip('M')) {
      WeekdayOfMonth day{};
      day.month = static_cast<unsigned>(number(12));
      expect('.');
      day.week = static_cast<unsigned>(number(5));
      expect('.');
      day.weekday = static_cast<unsigned>(number(6));
      if (day.month == 0 || day.week == 0) is_wrong_ = true;
      change.day = day;
    } else if (skip('J')) {
      change.day = JulianDay{number(365)};
    } else {
      change.day = DayOfYear{number(365)};
    }
    if (skip('/')) change.second = time(167);
    return change;
  }

  std::string_view rest_;
  bool is_wrong_ = false;
};

}  // namespace

std::optional<std::int64_t> posix_zone_offset(std::string_view text, std::int64_t at) {
  const auto rule = RuleReader(text).read();
  if (!rule) return std::nullopt;
  if (!rule->begin || !rule->end) return rule->standard;

  // The last change up to `at` counts. A change's time may lie in a neighbouring year.
  const auto today = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_seconds(std::chrono::seconds(at + rule->standard)));
  const year this_year = std::chrono::year_month_day(today).year();
  std::optional<std::int64_t> last;
  std::int64_t offset = rule->standard;
  for (const year in :
       {this_year - std::chrono::years(1), this_year, this_year + std::chrono::years(1)}) {
    const std::int64_t end = rule->end->local_in(in) - rule->summer;
    const std::int64_t begin = rule->begin->local_in(in) - rule->standard;
    if (end <= at && (!last || end > *last)) {
      last = end;
      offset = rule->standard;
    }
    // A begin at the instant of an end wins: summer time all year round is written so.
    if (begin <= at && (!last || begin >= *last)) {
      last = begin;
      offset = rule->summer;
    }
  }
  return offset;
}

}  // namespace clawdforge
