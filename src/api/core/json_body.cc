#include "api/core/json_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "api/core/wrong_fields.h"
#include "json/json_check.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

bool is_json(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  const std::size_t end = type.find_last_not_of(" \t");
  const std::string_view bare = type.substr(0, end == type.npos ? 0 : end + 1);
  return equals_ignoring_case(bare, "application/json") ||
         (bare.size() > 5 && equals_ignoring_case(bare.substr(bare.size() - 5), "+json"));
}

std::unexpected<Failure> bad_json(const char* sentence) {
  return fail(Errc::malformed, "bad_json", sentence);
}

json::value parse_within_depth(std::string_view text, json::error_code& error) {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  return json::parse({text.data(), text.size()}, error, {}, options);
}

// Of the string whose opening quote stands at `begin`: the place after its closing one.
std::size_t string_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// `quoted` is the JSON text of a string, escapes and all.
bool spells(std::string_view quoted, std::string_view name) {
  if (!quoted.contains('\\')) return quoted.substr(1, quoted.size() - 2) == name;
  json::error_code error;
  const json::value value = json::parse({quoted.data(), quoted.size()}, error);
  const json::string* const spelt = value.if_string();
  return spelt != nullptr && std::string_view(spelt->data(), spelt->size()) == name;
}

}  // namespace

Result<json::object> parse_json_object(std::string_view body) {
  if (body.empty()) return json::object();
  if (has_more_values(body, kJsonValuesMax)) return bad_json("The JSON body has too many values.");
  json::error_code error;
  json::value value = parse_within_depth(body, error);
  if (error == json::error::too_deep) return bad_json("The JSON body is nested too deeply.");
  if (error) return bad_json("The body is not valid JSON.");
  if (!value.is_object()) return bad_json("The body must be a JSON object.");
  return std::move(value.get_object());
}

std::string member_text(std::string_view text, std::string_view name) {
  std::string found;
  int depth = 0;
  bool is_name = true;  // the next string at depth 1 is a member's name
  bool is_wanted = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t end = c == '"' ? string_end(text, at) : at + 1;
    const std::string_view part = text.substr(at, end - at);
    at = end;
    if (std::string_view(" \t\r\n").contains(c)) continue;
    if (c == '}' || c == ']') --depth;
    if (depth == 1 && c == ',') {
      is_name = true;
      is_wanted = false;
    } else if (depth == 1 && is_name && c == '"') {
      is_name = false;
      is_wanted = spells(part, name);
      if (is_wanted) found.clear();
    } else if (is_wanted && depth >= 1 && !(depth == 1 && c == ':')) {
      found += part;
    }
    if (c == '{' || c == '[') ++depth;
  }
  return found;
}

bool brings_another_type(const Request& request) {
  const auto content_type = request.header("Content-Type");
  if (!content_type || content_type->empty() || is_json(*content_type)) return false;
  return request.header("Transfer-Encoding") ||
         request.header("Content-Length").value_or("0") != "0";
}

void name_ignored_fields(Request& request, std::string names) {
  if (!names.empty()) request.answer_headers.emplace_back("X-Clawdforge-Ignored", std::move(names));
}

const json::value* Fields::given(std::string_view name) {
  asked_.push_back(name);
  return object_.if_contains({name.data(), name.size()});
}

const json::value* Fields::find(std::string_view name) {
  const json::value* const value = given(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool Fields::has(std::string_view name) { return find(name) != nullptr; }

// Names are foreign text: what could end a header, or look like two names, becomes '?'.
std::string Fields::ignored_names() const {
  std::string names;
  std::size_t count = 0;
  for (const auto& member : object_) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    if (count > 0) names += ", ";
    if (++count > kIgnoredNamesMax) return names + "...";
    for (const char c : name.substr(0, kIgnoredNameBytesMax)) {
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
      names += is_plain ? c : '?';
    }
    if (name.empty()) names += '?';
  }
  return names;
}

void Fields::wrong(std::string_view name, std::string message) {
  wrong_.push_back({std::string(name), std::move(message)});
}

std::optional<std::string> Fields::text(std::string_view name) {
  const json::value* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const json::value& value = *found;
  if (value.is_string()) return std::string(value.get_string());
  wrong(name, "must be a string");
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t min,
                                            std::int64_t max) {
  const json::value* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const json::value& value = *found;
  if (value.is_int64() && value.get_int64() >= min && value.get_int64() <= max) {
    return value.get_int64();
  }
  wrong(name, fmt::format("must be a whole number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name,
                                                      std::size_t count_max) {
  const json::value* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const json::value& value = *found;
  if (!value.is_array() || value.get_array().size() > count_max) {
    wrong(name, fmt::format("must be a list of at most {} strings", count_max));
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const json::value& item : value.get_array()) {
    if (!item.is_string()) {
      wrong(name, fmt::format("must be a list of at most {} strings", count_max));
      return std::nullopt;
    }
    texts.emplace_back(item.get_string());
  }
  return texts;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const json::value* const found = find(name);
  if (found == nullptr) return std::nullopt;
  const json::value& value = *found;
  if (value.is_bool()) return value.get_bool();
  wrong(name, "must be true or false");
  return std::nullopt;
}

const json::object* Fields::object(std::string_view name) {
  const json::value* const found = find(name);
  if (found == nullptr) return nullptr;
  const json::object* const object = found->if_object();
  if (object == nullptr) wrong(name, "must be an object");
  return object;
}

const json::array* Fields::array(std::string_view name) {
  const json::value* const found = find(name);
  if (found == nullptr) return nullptr;
  const json::array* const array = found->if_array();
  if (array == nullptr) wrong(name, "must be a list");
  return array;
}

Result<void> Fields::check(std::string* ignored) const {
  if (ignored != nullptr) *ignored = ignored_names();
  return refuse_wrong(wrong_);
}

}  // namespace clawdforge
