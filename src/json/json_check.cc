#include "json/json_check.h"

#include <boost/json/basic_parser_impl.hpp>

namespace clawdforge {
namespace json = boost::json;

namespace {

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

bool begins_with(std::string_view text, char sign) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == sign;
}

// The place after the string whose opening quote stands before `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (;;) {
    const std::size_t quote = text.find('"', at);
    if (quote == std::string_view::npos) return text.size();
    std::size_t escapes = 0;
    while (quote - escapes > at && text[quote - escapes - 1] == '\\') ++escapes;
    at = quote + 1;
    if (escapes % 2 == 0) return at;
  }
}

}  // namespace

bool has_more_values(std::string_view text, std::size_t values_max) {
  if (text.size() / 2 < values_max) return false;  // each needs a byte, and a comma or bracket
  std::size_t values = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '"') at = after_string(text, at);
    if (c != ',' && c != '[' && c != '{') continue;
    if (++values > values_max) return true;
  }
  return false;
}

bool is_json(std::string_view text, std::size_t depth_max) {
  json::parse_options options;
  options.max_depth = depth_max;
  json::basic_parser<Listener> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return !error && used == text.size() && parser.done();
}

bool is_json_object(std::string_view text, std::size_t depth_max) {
  return begins_with(text, '{') && is_json(text, depth_max);
}

bool is_json_array(std::string_view text, std::size_t depth_max) {
  return begins_with(text, '[') && is_json(text, depth_max);
}

}  // namespace clawdforge
