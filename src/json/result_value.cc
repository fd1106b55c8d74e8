#include "json/result_value.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cstddef>
#include <optional>

#include "base/json_text.h"

namespace clawdforge {
namespace json = boost::json;

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
      if (end < text.size()) return std::nullopt;  // more follows behind the fence
      return text.substr(inner, at == inner ? 0 : at - inner - 1);
    }
    at = end + 1;
  }
  return std::nullopt;
}

// Hears a JSON text and keeps nothing of it.
struct Listener {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  using Ec = json::error_code;
  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) { return true; }
  bool on_object_end(std::size_t, Ec&) { return true; }
  bool on_array_begin(Ec&) { return true; }
  bool on_array_end(std::size_t, Ec&) { return true; }
  bool on_key_part(json::string_view, std::size_t, Ec&) { return true; }
  bool on_key(json::string_view, std::size_t, Ec&) { return true; }
  bool on_string_part(json::string_view, std::size_t, Ec&) { return true; }
  bool on_string(json::string_view, std::size_t, Ec&) { return true; }
  bool on_number_part(json::string_view, Ec&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Ec&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Ec&) { return true; }
  bool on_double(double, json::string_view, Ec&) { return true; }
  bool on_bool(bool, Ec&) { return true; }
  bool on_null(Ec&) { return true; }
  bool on_comment_part(json::string_view, Ec&) { return true; }
  bool on_comment(json::string_view, Ec&) { return true; }
};

bool is_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kResultDepthMax;
  json::basic_parser<Listener> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return !error && used == text.size() && parser.done();
}

}  // namespace

std::string result_value(std::string_view text) {
  if (const auto inside = inside_fence(text)) text = *inside;
  const std::string_view value = trimmed(text);
  if (!value.empty() && is_json(value)) return std::string(value);
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

}  // namespace clawdforge
