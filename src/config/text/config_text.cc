#include "config/text/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::size_t kShownBytesMax = 80;
constexpr std::size_t kGuessedBytesMax = 64;  // longer texts are not misspelt keys
constexpr std::size_t kCutBytesMin = 6;
constexpr std::string_view kMask = "***";

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '%';
}

// How many characters must be put in, taken out or changed.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::unexpected<Failure> refuse_config(std::string_view sentence) {
  std::string line;
  append_printable(line, sentence);
  return fail(Errc::invalid, "invalid_config", std::move(line));
}

std::string shortened(std::string_view text) {
  if (text.size() <= kShownBytesMax) return std::string(text);
  std::size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // in a character
  return std::string(text.substr(0, end)) + "...";
}

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", shortened(text)); }

std::string mask_passwords(std::string_view text) {
  std::string masked(text);
  const std::size_t scheme = masked.find("://");
  if (scheme != std::string::npos) {
    const std::size_t at = masked.rfind('@');
    const std::size_t colon = masked.find(':', scheme + 3);
    if (at != std::string::npos && colon < at) masked.replace(colon + 1, at - colon - 1, kMask);
  }
  for (std::size_t equals = masked.find('='); equals != std::string::npos;
       equals = masked.find('=', equals + 1)) {
    std::size_t begin = equals;
    while (begin > 0 && is_name_character(masked[begin - 1])) --begin;
    const std::string name = masked.substr(begin, equals - begin);
    // An encoded name could be any name.
    if (!looks_secret(name) && name.find('%') == std::string::npos) continue;
    const std::size_t end = masked.find('&', equals);
    masked.replace(equals + 1, end == std::string::npos ? end : end - equals - 1, kMask);
  }
  return masked;
}

bool looks_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL",
                                              "AUTH"},
      [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

std::string did_you_mean(std::string_view text, std::span<const std::string> names,
                         std::string_view common_prefix) {
  if (text.size() > kGuessedBytesMax || !text.starts_with(common_prefix)) return ".";
  text.remove_prefix(common_prefix.size());
  const std::string* nearest = nullptr;
  std::size_t nearest_distance = std::max<std::size_t>(2, text.size() / 4) + 1;
  for (const std::string& name : names) {
    const std::string_view rest = std::string_view(name).substr(common_prefix.size());
    // A forgotten unit at the end counts as one fault.
    const bool is_cut = text.size() >= kCutBytesMin && rest.starts_with(text);
    const std::size_t distance = is_cut ? 1 : edit_distance(text, rest);
    if (distance >= nearest_distance || distance >= rest.size()) continue;
    nearest = &name;
    nearest_distance = distance;
  }
  return nearest == nullptr ? "." : fmt::format("; did you mean {}?", *nearest);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t first = item.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    items.emplace_back(item.substr(first, item.find_last_not_of(" \t") - first + 1));
  }
  return items;
}

bool has_control_characters(std::string_view text) { return std::ranges::any_of(text, is_control); }

}  // namespace clawdforge
