#include "agent/cli_result.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>

#include "agent/masking.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kCliDepthMax = 128;
constexpr std::size_t kStopReasonBytesMax = 64;

// Length of the hexadecimal escape at text[at] ("\uD83D"), and its number; zero if none.
struct Escape {
  std::size_t length = 0;
  unsigned unit = 0;
};
Escape escape_at(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\\u" || at + 6 > text.size()) return {};
  unsigned unit = 0;
  for (const char c : text.substr(at + 2, 4)) {
    const bool is_digit = c >= '0' && c <= '9';
    const char letter = static_cast<char>(c | 0x20);
    if (!is_digit && (letter < 'a' || letter > 'f')) return {};
    unit = unit * 16 + static_cast<unsigned>(is_digit ? c - '0' : letter - 'a' + 10);
  }
  return {6, unit};
}

// JavaScript cuts an emoji in two where it cuts a string, and writes the half as an escape
// that is no character. Such halves become U+FFFD.
std::string without_half_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Escape escape = escape_at(text, at);
    if (escape.length == 0) {
      // A backslash and what it escapes belong together: \\uD800 is no escape.
      const std::size_t step = text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
      out.append(text, at, step);
      at += step;
      continue;
    }
    const bool is_high = escape.unit >= 0xd800 && escape.unit < 0xdc00;
    const bool is_low = escape.unit >= 0xdc00 && escape.unit < 0xe000;
    const Escape next = is_high ? escape_at(text, at + escape.length) : Escape{};
    const bool is_pair = next.unit >= 0xdc00 && next.unit < 0xe000;
    const std::size_t length = escape.length + (is_pair ? next.length : 0);
    if ((is_high || is_low) && !is_pair) {
      out += "\\ufffd";
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out;
}

std::optional<json::value> parsed(std::string_view text) {
  json::parse_options options;
  options.max_depth = kCliDepthMax;
  options.allow_invalid_utf8 = true;  // repaired() below
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error && text.contains("\\u")) {
    error.clear();
    value = json::parse(without_half_characters(text), error, {}, options);
  }
  if (error) return std::nullopt;
  return value;
}

std::string repaired(const json::string& text) {
  return valid_utf8(std::string_view(text.data(), text.size()));
}

std::optional<std::string> text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return repaired(value->get_string());
}

std::optional<double> number_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto number = value->to_number<double>();
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

std::int64_t count_of(const json::object& object, std::string_view key) {
  constexpr double kCountMax = 1e15;  // far from where a double loses whole numbers
  const auto number = number_of(object, key);
  return number && *number <= kCountMax ? static_cast<std::int64_t>(*number) : 0;
}

std::optional<Usage> usage_of(const json::object& object) {
  const json::value* value = object.if_contains("usage");
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const json::object& usage = value->get_object();
  return Usage{.input_tokens = count_of(usage, "input_tokens"),
               .output_tokens = count_of(usage, "output_tokens"),
               .cache_read_tokens = count_of(usage, "cache_read_input_tokens"),
               .cache_write_tokens = count_of(usage, "cache_creation_input_tokens")};
}

bool is_error_of(const json::object& object, const std::string& subtype) {
  const json::value* value = object.if_contains("is_error");
  if (value != nullptr && value->is_bool()) return value->get_bool();
  return subtype.starts_with("error");
}

// The answer. None if there is no such key: then it is no result at all.
std::optional<std::string> answer_of(const json::object& object) {
  for (const std::string_view key : {"result", "structured_output"}) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) continue;
    if (value->is_string()) return repaired(value->get_string());
    return valid_utf8(json::serialize(*value));
  }
  return std::nullopt;
}

// What went wrong, in the words of the command line.
std::string complaint_of(const json::object& object, const CliResult& result) {
  if (auto text = text_of(object, "result"); text && !text->empty()) return *text;
  std::string joined;
  if (const json::value* errors = object.if_contains("errors"); errors && errors->is_array()) {
    for (const json::value& error : errors->get_array()) {
      if (!error.is_string()) continue;
      if (!joined.empty()) joined += "; ";
      joined += repaired(error.get_string());
    }
  }
  if (!joined.empty()) return joined;
  if (!result.api_error.empty()) return result.api_error;
  return result.subtype.empty() ? "The agent reported an error." : result.subtype;
}

std::optional<CliResult> result_in(const json::value& value) {
  if (value.is_array()) {
    const json::array& list = value.get_array();
    if (list.empty() || !list.back().is_object()) return std::nullopt;
    return result_in(list.back());
  }
  if (!value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  if (text_of(object, "type") != "result") return std::nullopt;

  CliResult result;
  result.subtype = text_of(object, "subtype").value_or("");
  result.terminal_reason = text_of(object, "terminal_reason").value_or("");
  result.api_error = text_of(object, "api_error").value_or("");
  result.api_error_type = text_of(object, "api_error_type").value_or("");
  const std::int64_t status = count_of(object, "api_error_status");
  if (status >= 100 && status <= 999) result.api_status = static_cast<int>(status);
  result.stop_reason = text_of(object, "stop_reason");
  // It is a word; it goes into the ledger and into every page of the audit.
  if (result.stop_reason && result.stop_reason->size() > kStopReasonBytesMax) {
    result.stop_reason.reset();
  }
  result.usage = usage_of(object);
  result.cost_usd = number_of(object, "total_cost_usd");
  result.is_error = is_error_of(object, result.subtype);
  if (result.is_error) {
    result.text = complaint_of(object, result);
    return result;
  }
  auto answer = answer_of(object);
  if (!answer) return std::nullopt;
  result.text = std::move(*answer);
  return result;
}

}  // namespace

bool ResultReader::feed(std::string_view piece) {
  if (result_ || is_too_large_) return true;
  const std::size_t room = kResultBytesMax - output_.size();
  output_.append(piece.substr(0, room));
  while (!result_) {
    const std::size_t end = output_.find('\n', searched_);
    if (end == std::string::npos) break;
    take_line(std::string_view(output_).substr(line_begin_, end - line_begin_));
    line_begin_ = end + 1;
    searched_ = line_begin_;
  }
  if (result_) return true;
  searched_ = output_.size();
  is_too_large_ = piece.size() > room;
  return is_too_large_;
}

void ResultReader::finish() {
  if (result_ || is_too_large_) return;
  take_line(std::string_view(output_).substr(line_begin_));
  if (result_) return;
  const std::size_t begin = output_.find_first_not_of(kBlanks);
  if (begin == std::string::npos || (output_[begin] != '{' && output_[begin] != '[')) return;
  if (const auto value = parsed(output_)) result_ = result_in(*value);
}

bool ResultReader::has_output() const {
  return output_.find_first_not_of(kBlanks) != std::string::npos;
}

void ResultReader::take_line(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(kBlanks);
  // Most of what is no result is cheap to tell.
  if (begin == std::string_view::npos || line[begin] != '{' || !line.contains("result")) return;
  if (const auto value = parsed(line)) result_ = result_in(*value);
}

}  // namespace clawdforge
