#include "model/limits/app_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

namespace clawdforge {
namespace json = boost::json;
namespace {

using Whole = std::optional<std::int64_t>;

template <Whole AppLimits::* Member, std::int64_t Min, std::int64_t Max>
std::string set_whole(AppLimits& limits, const json::value& value) {
  limits.*Member = std::nullopt;
  if (value.is_null()) return {};
  boost::system::error_code error;
  const auto number = value.to_number<std::int64_t>(error);
  if (error || number < Min || number > Max) {
    return fmt::format("must be a whole number from {} to {}", Min, Max);
  }
  limits.*Member = number;
  return {};
}

template <Whole AppLimits::* Member>
json::value show_whole(const AppLimits& limits) {
  const Whole& number = limits.*Member;
  return number ? json::value(*number) : json::value(nullptr);
}

std::string set_budgets(AppLimits& limits, const json::value& value) {
  limits.budgets.clear();
  if (value.is_null()) return {};
  auto budgets = budgets_from(value);
  if (!budgets) return std::move(budgets.error());
  limits.budgets = std::move(*budgets);
  return {};
}

json::value show_budgets(const AppLimits& limits) {
  return limits.budgets.empty() ? json::value(nullptr) : shown(limits.budgets);
}

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

constexpr LimitField kLimitFields[] = {
    {"expires_at", set_whole<&AppLimits::expires_at, 0, kNeverEnds - 1>,
     show_whole<&AppLimits::expires_at>},
    {"asks_per_minute", set_whole<&AppLimits::asks_per_minute, 1, kAsksPerMinuteMax>,
     show_whole<&AppLimits::asks_per_minute>},
    {"budgets", set_budgets, show_budgets},
    {"upload_bytes_max", set_whole<&AppLimits::upload_bytes_max, 0, kAny>,
     show_whole<&AppLimits::upload_bytes_max>},
    {"weight", set_whole<&AppLimits::weight, 1, kWeightMax>, show_whole<&AppLimits::weight>},
};

}  // namespace

std::span<const LimitField> limit_fields() { return kLimitFields; }

std::string limits_text(const AppLimits& limits) {
  json::object object;
  for (const LimitField& field : kLimitFields) {
    json::value value = field.show(limits);
    if (!value.is_null()) object[field.name] = std::move(value);
  }
  return json::serialize(object);
}

std::expected<AppLimits, std::string> limits_from(std::string_view text) {
  boost::system::error_code error;
  const json::value parsed = json::parse(text, error);
  if (error || !parsed.is_object()) return std::unexpected("limits is not a JSON object");
  AppLimits limits;
  for (const auto& member : parsed.get_object()) {
    const std::string_view name(member.key().data(), member.key().size());
    const auto* const field = std::ranges::find(kLimitFields, name, &LimitField::name);
    if (field == std::end(kLimitFields)) {
      return std::unexpected(fmt::format("limits has a field that is not known: {}", name));
    }
    if (const std::string wrong = field->set(limits, member.value()); !wrong.empty()) {
      return std::unexpected(fmt::format("limits: {} {}", name, wrong));
    }
  }
  return limits;
}

}  // namespace clawdforge
