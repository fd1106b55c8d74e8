#include "api/jobs/prefer.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"

namespace clawdforge {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Calls `look` with the name and the value of each preference, until it says true.
template <class Look>
bool any_preference(const Request& request, Look look) {
  for (const Header& header : request.headers) {
    if (!equals_ignoring_case(header.name, "Prefer")) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      one = one.substr(0, one.find(';'));
      const std::size_t equals = std::min(one.find('='), one.size());
      std::string_view value = without_blanks(one.substr(std::min(equals + 1, one.size())));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
      }
      if (look(without_blanks(one.substr(0, equals)), value)) return true;
    }
  }
  return false;
}

}  // namespace

bool prefers_async(const Request& request) {
  return any_preference(request, [](std::string_view name, std::string_view) {
    return equals_ignoring_case(name, "respond-async");
  });
}

std::optional<std::chrono::seconds> preferred_wait(const Request& request) {
  std::optional<std::chrono::seconds> wait;
  any_preference(request, [&](std::string_view name, std::string_view value) {
    if (!equals_ignoring_case(name, "wait")) return false;
    std::int64_t seconds = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, seconds);
    if (error == std::errc() && rest == end && !value.empty() && seconds >= 0) {
      wait = std::min(std::chrono::seconds(seconds), kJobWaitMax);
    }
    return true;
  });
  return wait;
}

}  // namespace clawdforge
