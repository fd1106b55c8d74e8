#include "agent/claude/cli_result.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>

#include "agent/failure/masking.h"
#include "json/json_fields.h"
#include "json/json_parse.h"
#include "json/json_repair.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kStopReasonBytesMax = 64;

std::optional<json::value> parsed(std::string_view text) {
  json::parse_options options;
  options.max_depth = kAgentJsonDepthMax;
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

std::optional<Usage> usage_of(const json::object& object) {
  const json::value* value = object.if_contains("usage");
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const json::object& usage = value->get_object();
  return Usage{.input_tokens = count_in(usage, "input_tokens"),
               .output_tokens = count_in(usage, "output_tokens"),
               .cache_read_tokens = count_in(usage, "cache_read_input_tokens"),
               .cache_write_tokens = count_in(usage, "cache_creation_input_tokens")};
}

// Not in the middle of a character.
std::string beginning_of(std::string text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U) {
    --bytes_max;
  }
  text.resize(bytes_max);
  return text;
}

std::vector<Denial> denials_of(const json::object& object) {
  std::vector<Denial> denials;
  const json::value* value = object.if_contains("permission_denials");
  if (value == nullptr || !value->is_array()) return denials;
  for (const json::value& entry : value->get_array()) {
    if (denials.size() == kDenialsMax) break;
    if (!entry.is_object()) continue;
    const json::object& denial = entry.get_object();
    const json::value* input = denial.if_contains("tool_input");
    denials.push_back(
        {.tool = beginning_of(text_of(denial, "tool_name").value_or(""), kDenialToolBytesMax),
         .input = input == nullptr
                      ? ""
                      : beginning_of(valid_utf8(json::serialize(*input)), kDenialInputBytesMax)});
  }
  return denials;
}

bool is_error_of(const json::object& object, const std::string& subtype) {
  const json::value* value = object.if_contains("is_error");
  if (value != nullptr && value->is_bool()) return value->get_bool();
  return subtype.starts_with("error");
}

// The answer. None if there is no such key: then the line is not a result.
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

}  // namespace

std::optional<CliResult> cli_result_in(const json::object& object) {
  if (text_of(object, "type") != "result") return std::nullopt;

  CliResult result;
  result.subtype = text_of(object, "subtype").value_or("");
  result.terminal_reason = text_of(object, "terminal_reason").value_or("");
  result.api_error = text_of(object, "api_error").value_or("");
  result.api_error_type = text_of(object, "api_error_type").value_or("");
  const std::int64_t status = count_in(object, "api_error_status");
  if (status >= 100 && status <= 999) result.api_status = static_cast<int>(status);
  result.stop_reason = text_of(object, "stop_reason");
  // It is a word; it goes into the ledger and into every page of the audit.
  if (result.stop_reason && result.stop_reason->size() > kStopReasonBytesMax) {
    result.stop_reason.reset();
  }
  result.usage = usage_of(object);
  result.cost_usd = number_in(object, "total_cost_usd");
  result.denials = denials_of(object);
  result.is_error = is_error_of(object, result.subtype);
  if (result.is_error) {
    result.text = complaint_of(object, result);
    return result;
  }
  auto answer = answer_of(object);
  if (!answer) return std::nullopt;
  result.text = std::move(*answer);
  const json::value* structured = object.if_contains("structured_output");
  if (structured != nullptr && !structured->is_null()) {
    result.structured = valid_utf8(json::serialize(*structured));
  }
  return result;
}

namespace {

// The object, or the last of a list of messages.
std::optional<CliResult> result_in(const json::value& value) {
  if (value.is_array()) {
    const json::array& list = value.get_array();
    if (list.empty() || !list.back().is_object()) return std::nullopt;
    return cli_result_in(list.back().get_object());
  }
  if (!value.is_object()) return std::nullopt;
  return cli_result_in(value.get_object());
}

}  // namespace

FailureReport CliResult::report() const {
  return {.text = text,
          .api_status = api_status,
          .terminal_reason = terminal_reason,
          .api_error = api_error,
          .api_error_type = api_error_type};
}

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
  // Most lines are not results; this finds that out without parsing them.
  if (begin == std::string_view::npos || line[begin] != '{' || !line.contains("result")) return;
  if (const auto value = parsed(line)) result_ = result_in(*value);
}

}  // namespace clawdforge
