#include "cli/core/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

namespace clawdforge {
namespace {

constexpr std::size_t kTypoDistanceMax = 2;
constexpr std::size_t kTypoBytesMax = 64;  // longer than any name of ours

// How many letters must be changed, added, removed or swapped with their neighbour.
std::size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> steps(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) steps[i][0] = i;
  std::iota(steps[0].begin(), steps[0].end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      steps[i][j] =
          std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
      }
    }
  }
  return steps[a.size()][b.size()];
}

const Option* find_option(const Command& command, std::string_view name) {
  if (name == "-v") name = "--verbose";
  if (name == "-h") name = "--help";
  const auto is_it = [&](const Option& option) {
    return option.name == name || option.also == name;
  };
  for (const auto* list : {&command.options, &common_options(command.reach)}) {
    const auto found = std::ranges::find_if(*list, is_it);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

std::unexpected<Complaint> wrong(const Command& command, std::string_view what) {
  return complain(kExitUsage, fmt::format("{}; see clawdforge {} --help.", what, command.name));
}

std::unexpected<Complaint> unknown_option(const Command& command, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto* list : {&command.options, &common_options(command.reach)}) {
    for (const Option& option : *list) names.push_back(option.name);
  }
  const std::string_view near = nearest(name, names);
  if (near.empty()) return wrong(command, fmt::format("there is no option {}", name));
  return complain(kExitUsage, fmt::format("there is no option {}; did you mean {}?", name, near));
}

bool is_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// What is wrong with the value; empty: nothing.
std::string objection(const Option& option, std::string_view value) {
  if (option.is_number && !is_number(value)) {
    return fmt::format("{} takes a whole number, not '{}'", option.name, value);
  }
  if (option.words.empty() || option.offers == Offers::nothing) return {};
  const auto words = split_words(option.words);
  if (std::ranges::find(words, value) != words.end()) return {};
  return fmt::format("{} takes one of {}, not '{}'", option.name, fmt::join(words, ", "), value);
}

std::string objection_to_words(const Command& command, std::size_t count) {
  const auto [min, max] = words_of(command.arguments);
  if (count < min) return fmt::format("{} needs {}", command.name, command.arguments);
  if (count > max) {
    return max == 0 ? fmt::format("{} takes no arguments", command.name)
                    : fmt::format("{} takes only {}", command.name, command.arguments);
  }
  return {};
}

}  // namespace

const std::vector<Option>& common_options(Reach reach) {
  static const std::vector<Option> kLocal = {
      {.name = "--json", .help = "print JSON, for programs"},
      {.name = "--verbose", .help = "or -v: say more when something fails"},
      {.name = "--help", .help = "or -h: this text"},
  };
  static const std::vector<Option> kGateway = {
      {.name = "--url", .value = "URL", .help = "the gateway (or CLAWDFORGE_URL)"},
      {.name = "--profile",
       .value = "NAME",
       .help = "a gateway that login has stored (or CLAWDFORGE_PROFILE)",
       .offers = Offers::profiles},
      {.name = "--data-dir",
       .value = "DIR",
       .help = "the data directory of a gateway on this machine",
       .offers = Offers::files},
      {.name = "--json", .help = "print the gateway's answer as it is"},
      {.name = "--verbose", .help = "or -v: with status, code and request id of what fails"},
      {.name = "--help", .help = "or -h: this text"},
  };
  static const std::vector<Option> kRaw = {{.name = "--help", .help = "or -h: this text"}};
  if (reach == Reach::raw) return kRaw;
  return reach == Reach::gateway ? kGateway : kLocal;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

WordCount words_of(std::string_view arguments) {
  WordCount count;
  for (const std::string_view word : split_words(arguments)) {
    const bool repeats = word.ends_with("...") || word.ends_with("...]");
    if (!word.starts_with('[')) ++count.min;
    count.max = repeats ? std::numeric_limits<std::size_t>::max() : count.max + 1;
  }
  return count;
}

std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t least = kTypoDistanceMax + 1;
  if (typed.size() > kTypoBytesMax) return best;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = distance_of(typed, candidate);
    // Of a short word two letters are all that it has.
    if (distance < least && distance < candidate.size() && distance < typed.size()) {
      best = candidate;
      least = distance;
    }
  }
  if (!best.empty() || typed.size() < 2) return best;
  const auto longer = std::ranges::find_if(
      candidates, [&](std::string_view candidate) { return candidate.starts_with(typed); });
  return longer == candidates.end() ? best : *longer;
}

std::string Arguments::text(std::string_view option) const {
  const auto found = given_.find(option);
  return found == given_.end() ? std::string() : found->second.back();
}

std::vector<std::string> Arguments::all(std::string_view option) const {
  const auto found = given_.find(option);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::int64_t> Arguments::number(std::string_view option) const {
  if (!has(option)) return std::nullopt;
  const std::string value = text(option);
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

Asked<Arguments> parse_arguments(const Command& command, std::span<const std::string> given) {
  Arguments arguments;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& item = given[i];
    if (item == "--") {
      arguments.words_.insert(arguments.words_.end(), given.begin() + static_cast<long>(i) + 1,
                              given.end());
      break;
    }
    if (item.size() < 2 || item.front() != '-') {
      arguments.words_.push_back(item);
      continue;
    }
    const std::size_t equals = item.starts_with("--") ? item.find('=') : item.npos;
    const std::string name = item.substr(0, equals);
    const Option* const option = find_option(command, name);
    if (option == nullptr) return unknown_option(command, name);
    std::string value;
    if (option->value.empty()) {
      if (equals != item.npos) return wrong(command, fmt::format("{} takes no value", name));
    } else if (equals != item.npos) {
      value = item.substr(equals + 1);
    } else if (++i < given.size()) {
      value = given[i];
    } else {
      return wrong(command, fmt::format("{} needs {}", name, option->value));
    }
    if (const auto why = objection(*option, value); !why.empty()) return wrong(command, why);
    std::vector<std::string>& values = arguments.given_[std::string(option->name)];
    if (!values.empty() && !option->repeats && !option->value.empty()) {
      return wrong(command, fmt::format("{} may be given once", name));
    }
    values.push_back(std::move(value));
  }
  if (arguments.has("--help")) return arguments;
  const auto why = objection_to_words(command, arguments.words_.size());
  if (!why.empty()) return wrong(command, why);
  return arguments;
}

}  // namespace clawdforge
