#include "api/core/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/core/wrong_fields.h"
#include "http/message/request.h"

namespace clawdforge {
namespace {

// As forms write it: a plus stands for a space.
std::optional<std::string> decoded(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return percent_decoded(spaced);
}

}  // namespace

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decoded(pair.substr(0, equals));
    if (!name || name->empty()) continue;  // no route could ask for it
    parameters_.push_back(
        {std::move(*name), decoded(pair.substr(std::min(equals + 1, pair.size())))});
  }
}

void Query::wrong(std::string_view name, std::string message) {
  wrong_.push_back({std::string(name), std::move(message)});
}

std::optional<std::string> Query::text(std::string_view name) {
  const auto first = std::ranges::find(parameters_, name, &Parameter::name);
  if (first == parameters_.end()) return std::nullopt;
  if (std::find_if(first + 1, parameters_.end(), [&](const Parameter& other) {
        return other.name == name;
      }) != parameters_.end()) {
    wrong(name, "must be given only once");
    return std::nullopt;
  }
  if (!first->value) wrong(name, "has a broken percent-escape");
  return first->value;
}

std::optional<std::int64_t> Query::integer(std::string_view name, std::int64_t min,
                                           std::int64_t max) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = given->data() + given->size();
  const auto parsed = std::from_chars(given->data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= min && number <= max) {
    return number;
  }
  wrong(name, fmt::format("must be a whole number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<bool> Query::flag(std::string_view name) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  if (*given == "true" || *given == "1") return true;
  if (*given == "false" || *given == "0") return false;
  wrong(name, "must be true, false, 1 or 0");
  return std::nullopt;
}

Result<void> Query::check() const { return refuse_wrong(wrong_); }

}  // namespace clawdforge
