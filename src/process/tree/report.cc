#include "process/tree/report.h"

#include <charconv>

namespace clawdforge {

namespace {

std::string_view take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == line.npos ? line.size() : end + 1);
  return word;
}

std::optional<int> take_number(std::string_view& line) {
  const std::string_view word = take_word(line);
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Report> parse_report(std::string_view line) {
  const std::string_view kind = take_word(line);
  const auto number = take_number(line);
  if (!number) return std::nullopt;
  if (kind == "not-started" && !line.empty()) return Report{NotStarted{*number}, line};
  if (!line.empty()) return std::nullopt;
  if (kind == "exited") return Report{Exited{*number}, {}};
  if (kind == "over-memory") return Report{OverLimit{OverLimit::What::memory}, {}};
  if (kind == "over-processes") return Report{OverLimit{OverLimit::What::processes}, {}};
  if (kind == "signaled") return Report{Signaled{*number}, {}};
  return std::nullopt;
}

}  // namespace clawdforge
