#include "agent/failure/limit_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>

#include "agent/failure/time_zone.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::string lower_case_of(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Reads a text from its front, in lower case.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool skip(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::int64_t> number() {
    skip_blanks();
    const std::string_view digits =
        text_.substr(0, std::min(text_.find_first_not_of("0123456789"), text_.size()));
    std::int64_t value = 0;
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    text_.remove_prefix(digits.size());
    return value;
  }

 private:
  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  std::string_view text_;
};

// "|1759255200", also in milliseconds.
std::optional<std::int64_t> epoch_in(std::string_view text) {
  const std::size_t bar = text.rfind('|');
  if (bar == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(bar + 1);
  digits = digits.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(digits, is_decimal) - digits.begin()));
  std::int64_t value = 0;
  if (digits.size() < 9 || digits.size() > 14) return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return digits.size() > 11 ? value / 1000 : value;
}

// "2h 30m", "45 minutes": seconds.
std::optional<std::int64_t> span_in(Words words) {
  std::int64_t seconds = 0;
  while (const auto number = words.number()) {
    if (words.skip("d")) {
      seconds += *number * kDay;
    } else if (words.skip("h")) {
      seconds += *number * kHour;
    } else if (words.skip("m")) {
      seconds += *number * kMinute;
    } else {
      break;
    }
    for (const std::string_view rest : {"ays", "ay", "ours", "our", "inutes", "inute", "in", "r"}) {
      if (words.skip(rest)) break;
    }
    words.skip("s");
    words.skip(",");
    words.skip("and");
  }
  if (seconds == 0) return std::nullopt;
  return seconds;
}

// "3pm", "3:30 pm", "15:30": seconds since midnight.
std::optional<std::int64_t> time_of_day_in(Words& words) {
  const auto hour = words.number();
  if (!hour) return std::nullopt;
  std::optional<std::int64_t> minute;
  if (words.skip(":")) minute = words.number();
  const bool is_am = words.skip("am") || words.skip("a.m.");
  const bool is_pm = !is_am && (words.skip("pm") || words.skip("p.m."));
  if (!is_am && !is_pm && !minute) return std::nullopt;  // a number, no time
  if (*hour > 24 || minute.value_or(0) > 59 || ((is_am || is_pm) && *hour > 12)) {
    return std::nullopt;
  }
  std::int64_t hours = *hour;
  if (is_am || is_pm) hours = hours % 12 + (is_pm ? 12 : 0);
  return hours * kHour + minute.value_or(0) * kMinute;
}

struct Date {
  std::chrono::month month;
  std::chrono::day day;
};

// "oct 5", "october 5"
std::optional<Date> date_in(Words& words) {
  constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                        "jul", "aug", "sep", "oct", "nov", "dec"};
  constexpr std::array<std::string_view, 12> kRests = {
      "uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember"};
  for (unsigned month = 0; month < kMonths.size(); ++month) {
    if (!words.skip(kMonths[month])) continue;
    words.skip(kRests[month]);
    const auto day = words.number();
    if (!day || *day < 1 || *day > 31) return std::nullopt;
    return Date{std::chrono::month(month + 1), std::chrono::day(static_cast<unsigned>(*day))};
  }
  return std::nullopt;
}

// The name in the first brackets after `from`, as it was written.
std::string_view zone_in(std::string_view sentence, std::size_t from) {
  const std::size_t open = sentence.find('(', from);
  if (open == std::string_view::npos) return {};
  const std::size_t close = sentence.find(')', open);
  if (close == std::string_view::npos) return {};
  return sentence.substr(open + 1, close - open - 1);
}

class ZoneTime {
 public:
  // An unknown zone is taken to be ours: the command line runs in it.
  ZoneTime(std::string_view zone, std::int64_t now)
      : zone_(utc_offset(zone, now) ? zone : std::string_view()) {}

  std::int64_t local_of(std::int64_t at) const { return at + utc_offset(zone_, at).value_or(0); }

  // Twice, because the offset that counts is the one at the result.
  std::int64_t unix_of(std::int64_t local) const {
    const std::int64_t guess = local - utc_offset(zone_, local).value_or(0);
    return local - utc_offset(zone_, guess).value_or(0);
  }

 private:
  const std::string zone_;
};

std::int64_t end_at_time(const ZoneTime& zone, std::int64_t now, std::int64_t time_of_day) {
  const std::int64_t local_now = zone.local_of(now);
  const std::int64_t midnight = local_now - local_now % kDay;
  const std::int64_t end = zone.unix_of(midnight + time_of_day);
  return end > now - kHour ? end : zone.unix_of(midnight + kDay + time_of_day);
}

std::optional<std::int64_t> end_on_date(const ZoneTime& zone, std::int64_t now, Date date,
                                        std::int64_t time_of_day) {
  using namespace std::chrono;
  const auto today = floor<days>(sys_seconds(seconds(zone.local_of(now))));
  const year this_year = year_month_day(today).year();
  for (const year y : {this_year, this_year + years(1)}) {
    const year_month_day day{y, date.month, date.day};
    if (!day.ok()) continue;
    const sys_seconds midnight = sys_days(day);
    const std::int64_t end = zone.unix_of(midnight.time_since_epoch().count() + time_of_day);
    if (end > now - 180 * kDay) return end;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> limit_end(std::string_view sentence, std::int64_t now) {
  if (const auto epoch = epoch_in(sentence)) return epoch;
  const std::string lower = lower_case_of(sentence);
  const std::size_t reset = lower.rfind("reset");
  if (reset == std::string::npos) return std::nullopt;
  Words words(std::string_view(lower).substr(reset + 5));
  words.skip("s");
  if (words.skip("in ")) {
    const auto span = span_in(words);
    if (!span) return std::nullopt;
    return now + *span;
  }
  words.skip("at ") || words.skip("on ");
  const ZoneTime zone(zone_in(sentence, reset), now);
  const auto date = date_in(words);
  if (date) words.skip(",") || words.skip("at ");
  const auto time = time_of_day_in(words);
  if (date) return end_on_date(zone, now, *date, time.value_or(0));
  if (!time) return std::nullopt;
  return end_at_time(zone, now, *time);
}

}  // namespace clawdforge
