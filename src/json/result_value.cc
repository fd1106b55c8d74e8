#include "json/result_value.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/json_text.h"
#include "json/json_check.h"

namespace clawdforge {
namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";

// Deeper JSON is given as a string: callers' own parsers have limits, too.
constexpr std::size_t kResultDepthMax = 64;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kJsonBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kJsonBlanks) - begin + 1);
}

// A line that is nothing but a fence of `sign`; its length.
std::size_t fence_length(std::string_view line, char sign) {
  line = trimmed(line);
  return std::ranges::all_of(line, [&](char c) { return c == sign; }) ? line.size() : 0;
}

// What stands between the two lines of a fence that surrounds the whole text; none if
// there is no such fence, or it ends before the text does.
std::optional<std::string_view> inside_fence(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return std::nullopt;
  const char sign = text[0];
  const std::size_t length = std::min(text.find_first_not_of(sign), text.size());
  const std::size_t head_end = text.find('\n');
  if (length < 3 || head_end == std::string_view::npos) return std::nullopt;
  if (text.substr(length, head_end - length).contains('`')) return std::nullopt;
  const std::size_t inner = head_end + 1;
  for (std::size_t at = inner; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (fence_length(text.substr(at, end - at), sign) >= length) {
      if (end < text.size()) return std::nullopt;  // more follows after the fence
      return text.substr(inner, at == inner ? 0 : at - inner - 1);
    }
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string result_value(std::string_view text) {
  if (const auto inside = inside_fence(text)) text = *inside;
  const std::string_view value = trimmed(text);
  if (!value.empty() && is_json(value, kResultDepthMax)) return std::string(value);
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

}  // namespace clawdforge
