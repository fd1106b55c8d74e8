#include "json/json_fields.h"

#include <boost/json.hpp>
#include <cmath>

namespace clawdforge {
namespace json = boost::json;

const json::object* object_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

std::optional<std::string_view> text_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr) return std::nullopt;
  return std::string_view(text->data(), text->size());
}

bool is_true_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<double> number_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto number = value->to_number<double>();
  if (!std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

std::int64_t count_in(const json::object& object, std::string_view key) {
  constexpr double kCountMax = 1e15;  // far from where a double loses whole numbers
  const auto number = number_in(object, key);
  return number && *number <= kCountMax ? static_cast<std::int64_t>(*number) : 0;
}

}  // namespace clawdforge
