#include "json/schema/schema_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

namespace clawdforge {
namespace json = boost::json;
namespace {

using Wrong = std::optional<std::string>;

// They say nothing about which values are right.
constexpr std::array<std::string_view, 14> kRemarks = {
    "$schema",     "$id",      "$comment",         "$anchor",        "title",
    "description", "default",  "deprecated",       "readOnly",       "writeOnly",
    "format",      "examples", "contentMediaType", "contentEncoding"};
constexpr std::array<std::string_view, 7> kTypes = {"null",   "boolean", "object", "array",
                                                    "number", "string",  "integer"};
constexpr std::array<std::string_view, 6> kCounts = {"minLength", "maxLength",     "minItems",
                                                     "maxItems",  "minProperties", "maxProperties"};
constexpr std::array<std::string_view, 4> kNumbers = {"minimum", "maximum", "exclusiveMinimum",
                                                      "exclusiveMaximum"};
constexpr std::array<std::string_view, 3> kLists = {"anyOf", "oneOf", "allOf"};
constexpr std::array<std::string_view, 3> kNamed = {"properties", "$defs", "definitions"};
constexpr std::array<std::string_view, 3> kInner = {"items", "additionalProperties", "not"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_type(const json::value& value) {
  return value.is_string() && is_among(kTypes, std::string_view(value.get_string()));
}

bool is_list_of_texts(const json::value& value) {
  return value.is_array() &&
         std::ranges::all_of(value.get_array(), [](const auto& item) { return item.is_string(); });
}

class RuleReader {
 public:
  explicit RuleReader(const json::value& root) : root_(root) {}

  Wrong read(const json::value& schema) {  // NOLINT(misc-no-recursion): bounded by the parser
    if (schema.is_bool()) return std::nullopt;
    if (!schema.is_object()) return "a schema in it is neither an object nor true or false.";
    for (const auto& [key, value] : schema.get_object()) {
      if (auto wrong = read_keyword(key, value)) return wrong;
    }
    return std::nullopt;
  }

 private:
  Wrong read_keyword(std::string_view key, const json::value& value) {  // NOLINT(misc-no-recursion)
    if (is_among(kRemarks, key) || key == "const") return std::nullopt;
    if (is_among(kInner, key)) return read(value);
    if (is_among(kLists, key)) return read_list(key, value);
    if (is_among(kNamed, key)) return read_named(key, value);
    const bool is_good = is_plain_rule_good(key, value);
    if (!is_known_) return fmt::format("it has {}, which is not supported here.", shown(key));
    if (!is_good) return fmt::format("its {} is not what a schema has there.", shown(key));
    return std::nullopt;
  }

  bool is_plain_rule_good(std::string_view key, const json::value& value) {
    is_known_ = true;
    if (key == "type") {
      return is_type(value) || (value.is_array() && !value.get_array().empty() &&
                                std::ranges::all_of(value.get_array(), is_type));
    }
    if (key == "required") return is_list_of_texts(value);
    if (key == "enum") return value.is_array();
    if (key == "uniqueItems") return value.is_bool();
    if (is_among(kNumbers, key)) return value.is_number();
    if (key == "multipleOf") return value.is_number() && value.to_number<double>() > 0;
    if (is_among(kCounts, key)) return value.is_int64() && value.get_int64() >= 0;
    if (key == "$ref") {
      return value.is_string() && schema_at(root_, value.get_string()) != nullptr;
    }
    is_known_ = false;
    return false;
  }

  Wrong read_list(std::string_view key, const json::value& value) {  // NOLINT(misc-no-recursion)
    if (!value.is_array() || value.get_array().empty()) {
      return fmt::format("its {} is not a list of schemas.", shown(key));
    }
    for (const json::value& schema : value.get_array()) {
      if (auto wrong = read(schema)) return wrong;
    }
    return std::nullopt;
  }

  Wrong read_named(std::string_view key, const json::value& value) {  // NOLINT(misc-no-recursion)
    if (!value.is_object()) return fmt::format("its {} is not an object.", shown(key));
    for (const auto& [name, schema] : value.get_object()) {
      if (auto wrong = read(schema)) return wrong;
    }
    return std::nullopt;
  }

  // A keyword may be a long foreign text.
  static std::string_view shown(std::string_view key) {
    constexpr std::size_t kShownBytesMax = 40;
    return key.substr(0, kShownBytesMax);
  }

  const json::value& root_;
  bool is_known_ = true;  // the keyword that was looked at last
};

}  // namespace

std::optional<std::string> wrong_in_schema(const json::value& root) {
  return RuleReader(root).read(root);
}

const json::value* schema_at(const json::value& root, std::string_view reference) {
  if (reference == "#") return &root;
  if (!reference.starts_with("#/$defs/") && !reference.starts_with("#/definitions/")) {
    return nullptr;
  }
  boost::system::error_code error;
  const json::value* const found = root.find_pointer(reference.substr(1), error);
  if (error || found == nullptr || (!found->is_object() && !found->is_bool())) return nullptr;
  return found;
}

}  // namespace clawdforge
