#include "config/config_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "config/text/config_text.h"

namespace clawdforge {
namespace {

constexpr std::string_view kFileFlag = "--config";

const KeyRow* find_flag(std::string_view flag) {
  for (const KeyRow& row : key_rows()) {
    if (flag_name(row.name) == flag) return &row;
  }
  return nullptr;
}

std::unexpected<Failure> refuse_unknown_flag(std::string_view flag) {
  std::vector<std::string> known = {std::string(kFileFlag)};
  for (const KeyRow& row : key_rows()) {
    if (row.kind != KeyKind::secret) known.push_back(flag_name(row.name));
  }
  return refuse_config(
      fmt::format("{} is not a known flag{}", shortened(flag), did_you_mean(flag, known, "--")));
}

// The key that a flag names, null for --config.
Result<const KeyRow*> row_of(std::string_view flag) {
  if (flag == kFileFlag) return nullptr;
  const KeyRow* row = find_flag(flag);
  if (row == nullptr) return refuse_unknown_flag(flag);
  if (row->kind == KeyKind::secret) {
    return refuse_config(fmt::format(
        "{} is not allowed: every user of the machine can read a command line; set {} instead.",
        flag, environment_name(row->name)));
  }
  return row;
}

}  // namespace

Result<Flags> parse_flags(const std::vector<std::string>& arguments) {
  Flags flags;
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with("--")) {
      return refuse_config(
          fmt::format("{} is not a flag; flags look like --max-runs 4.", in_quotes(argument)));
    }
    const std::size_t equals = argument.find('=');
    const std::string_view flag = argument.substr(0, equals);
    const auto row = row_of(flag);
    if (!row) return std::unexpected(row.error());
    if (!seen.emplace(flag).second) return refuse_config(fmt::format("{} comes twice.", flag));

    std::optional<std::string> value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      value = arguments[++i];
    }
    const bool is_file = *row == nullptr;
    if (!value && !is_file && (*row)->kind == KeyKind::flag) value = "true";
    if (!value || (is_file && value->empty())) {
      return refuse_config(
          fmt::format("{} needs a value, like {} {}.", flag, flag, is_file ? "FILE" : "VALUE"));
    }
    if (is_file) {
      flags.file = std::move(*value);
    } else {
      flags.values.push_back({*row, std::move(*value)});
    }
  }
  return flags;
}

}  // namespace clawdforge
