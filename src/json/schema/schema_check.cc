#include "json/schema/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>

#include "json/schema/json_schema.h"
#include "json/schema/schema_rules.h"

// NOLINTBEGIN(misc-no-recursion): kSchemaDepthMax bounds it
namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::size_t kShownPathBytesMax = 200;

bool is_whole(const json::value& value) {
  if (value.is_int64() || value.is_uint64()) return true;
  return value.is_double() && std::trunc(value.get_double()) == value.get_double();
}

bool has_type(const json::value& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return is_whole(value);
  return value.is_number();
}

bool has_one_type(const json::value& value, const json::value& types) {
  if (types.is_string()) return has_type(value, types.get_string());
  return std::ranges::any_of(types.get_array(), [&](const json::value& type) {
    return has_type(value, type.get_string());
  });
}

// 1 and 1.0 are one number.
bool is_same(const json::value& one, const json::value& other) {
  if (one.is_number() && other.is_number()) {
    return one == other || one.to_number<double>() == other.to_number<double>();
  }
  return one == other;
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

const json::value* rule(const json::object& rules, std::string_view name) {
  return rules.if_contains(name);
}

// How many there are, against a least and a most.
std::optional<std::string> check_count(const json::object& rules, std::string_view least,
                                       std::string_view most, std::size_t count,
                                       std::string_view noun) {
  const json::value* const min = rule(rules, least);
  if (min != nullptr && std::cmp_less(count, min->get_int64())) {
    return fmt::format("must have at least {} {}", min->get_int64(), noun);
  }
  const json::value* const max = rule(rules, most);
  if (max != nullptr && std::cmp_greater(count, max->get_int64())) {
    return fmt::format("must have at most {} {}", max->get_int64(), noun);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> SchemaCheck::mismatch(const json::value& value) {
  return check(root_, value);
}

std::string SchemaCheck::wrong(std::string_view what) const {
  const std::string_view place = std::string_view(path_).substr(0, kShownPathBytesMax);
  return fmt::format("{} {}", place.empty() ? "the value" : place, what);
}

SchemaCheck::Wrong SchemaCheck::check(const json::value& schema, const json::value& value) {
  if (++steps_ > kSchemaStepsMax || depth_ >= kSchemaDepthMax) {
    return wrong("cannot be checked: the schema and the value together are too large");
  }
  if (schema.is_bool()) {
    return schema.get_bool() ? Wrong() : wrong("must not be there");
  }
  ++depth_;
  Wrong found = check_rules(schema.get_object(), value);
  --depth_;
  return found;
}

SchemaCheck::Wrong SchemaCheck::check_rules(const json::object& rules, const json::value& value) {
  if (const json::value* types = rule(rules, "type"); types && !has_one_type(value, *types)) {
    return wrong(fmt::format("must be of the type {}", json::serialize(*types)));
  }
  if (const json::value* one = rule(rules, "const"); one && !is_same(*one, value)) {
    return wrong("must be the one value that the schema names");
  }
  if (const json::value* values = rule(rules, "enum")) {
    steps_ += values->get_array().size();
    const bool is_named = std::ranges::any_of(
        values->get_array(), [&](const json::value& named) { return is_same(named, value); });
    if (!is_named) return wrong("must be one of the values that the schema names");
  }
  if (auto found = check_joined(rules, value)) return found;
  if (value.is_number()) return check_number(rules, value);
  if (value.is_string()) return check_text(rules, value);
  if (value.is_array()) return check_array(rules, value);
  if (value.is_object()) return check_object(rules, value);
  return std::nullopt;
}

std::size_t SchemaCheck::matches(const json::array& schemas, const json::value& value) {
  std::size_t count = 0;
  for (const json::value& schema : schemas) count += check(schema, value) ? 0 : 1;
  return count;
}

SchemaCheck::Wrong SchemaCheck::check_joined(const json::object& rules, const json::value& value) {
  if (const json::value* reference = rule(rules, "$ref")) {
    if (auto found = check(*schema_at(root_, reference->get_string()), value)) return found;
  }
  if (const json::value* all = rule(rules, "allOf")) {
    for (const json::value& schema : all->get_array()) {
      if (auto found = check(schema, value)) return found;
    }
  }
  const json::value* const any = rule(rules, "anyOf");
  if (any != nullptr && matches(any->get_array(), value) == 0) {
    return wrong("meets none of the schemas in anyOf");
  }
  const json::value* const one = rule(rules, "oneOf");
  if (one != nullptr && matches(one->get_array(), value) != 1) {
    return wrong("does not meet exactly one of the schemas in oneOf");
  }
  const json::value* const forbidden = rule(rules, "not");
  if (forbidden != nullptr && !check(*forbidden, value)) return wrong("meets the schema in not");
  return std::nullopt;
}

SchemaCheck::Wrong SchemaCheck::check_number(const json::object& rules,
                                             const json::value& value) const {
  const auto number = value.to_number<double>();
  const auto limit = [&](std::string_view name, auto is_within, std::string_view words) -> Wrong {
    const json::value* const bound = rule(rules, name);
    if (bound == nullptr || is_within(number, bound->to_number<double>())) return std::nullopt;
    return wrong(fmt::format("must be {} {}", words, json::serialize(*bound)));
  };
  if (auto found = limit("minimum", std::greater_equal<>(), "at least")) return found;
  if (auto found = limit("maximum", std::less_equal<>(), "at most")) return found;
  if (auto found = limit("exclusiveMinimum", std::greater<>(), "more than")) return found;
  if (auto found = limit("exclusiveMaximum", std::less<>(), "less than")) return found;
  constexpr double kClose = 1e-9;  // 0.3 is a multiple of 0.1
  return limit(
      "multipleOf",
      [](double of, double step) {
        const double times = of / step;
        return std::abs(times - std::round(times)) <= kClose * std::max(1.0, std::abs(times));
      },
      "a multiple of");
}

SchemaCheck::Wrong SchemaCheck::check_text(const json::object& rules,
                                           const json::value& value) const {
  const auto found =
      check_count(rules, "minLength", "maxLength", characters_in(value.get_string()), "characters");
  return found ? Wrong(wrong(*found)) : Wrong();
}

SchemaCheck::Wrong SchemaCheck::check_array(const json::object& rules, const json::value& value) {
  const json::array& list = value.get_array();
  if (auto found = check_count(rules, "minItems", "maxItems", list.size(), "items")) {
    return wrong(*found);
  }
  if (const json::value* unique = rule(rules, "uniqueItems"); unique && unique->get_bool()) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t j = i + 1; j < list.size(); ++j) {
        if (++steps_ > kSchemaStepsMax) return check(root_, value);  // says that it is too large
        if (is_same(list[i], list[j])) return wrong("must not have an item twice");
      }
    }
  }
  const json::value* const items = rule(rules, "items");
  if (items == nullptr) return std::nullopt;
  const std::size_t here = path_.size();
  for (std::size_t i = 0; i < list.size(); ++i) {
    path_ += fmt::format("/{}", i);
    if (auto found = check(*items, list[i])) return found;
    path_.resize(here);
  }
  return std::nullopt;
}

SchemaCheck::Wrong SchemaCheck::check_object(const json::object& rules, const json::value& value) {
  const json::object& members = value.get_object();
  if (auto found =
          check_count(rules, "minProperties", "maxProperties", members.size(), "members")) {
    return wrong(*found);
  }
  if (const json::value* required = rule(rules, "required")) {
    for (const json::value& name : required->get_array()) {
      ++steps_;
      if (members.contains(name.get_string())) continue;
      return wrong(fmt::format("must have the member {}", std::string_view(name.get_string())));
    }
  }
  const json::value* const named = rule(rules, "properties");
  const json::value* const others = rule(rules, "additionalProperties");
  const std::size_t here = path_.size();
  for (const auto& [name, member] : members) {
    const json::value* schema = named == nullptr ? nullptr : named->get_object().if_contains(name);
    if (schema == nullptr) schema = others;
    if (schema == nullptr) continue;
    path_.append("/").append(name);
    if (auto found = check(*schema, member)) return found;
    path_.resize(here);
  }
  return std::nullopt;
}

}  // namespace clawdforge
// NOLINTEND(misc-no-recursion)
