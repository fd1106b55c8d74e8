#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "config/config.h"
#include "config/config_keys.h"

namespace clawdforge {
namespace {

ConfigSources no_sources() {
  ConfigSources sources;
  sources.environment["HOME"] = "/home/cf";
  sources.working_dir = "/";
  return sources;
}

const KeyRow& any_number_key() {
  std::vector<const KeyRow*> rows;
  for (const KeyRow& row : key_rows()) {
    if (row.kind == KeyKind::number) rows.push_back(&row);
  }
  return **rc::gen::elementOf(rows);
}

// Its edges are frequent.
std::int64_t any_between(std::int64_t min, std::int64_t max) {
  return *rc::gen::weightedOneOf<std::int64_t>(
      {{1, rc::gen::just(min)},
       {1, rc::gen::just(max)},
       {4, rc::gen::resize(rc::kNominalSize, max == std::numeric_limits<std::int64_t>::max()
                                                 ? rc::gen::inRange(min, max)
                                                 : rc::gen::inRange(min, max + 1))}});
}

enum class From { file, environment, flag };

// Gives `value` to `row` through one source; the file's text grows in `toml`.
void give(From from, const KeyRow& row, const std::string& value, ConfigSources& sources,
          std::string& toml) {
  switch (from) {
    case From::file:
      toml += std::string(row.name) + " = " + value + "\n";
      break;
    case From::environment:
      sources.environment[environment_name(row.name)] = value;
      break;
    case From::flag:
      if (*rc::gen::arbitrary<bool>()) {
        sources.flags.push_back(flag_name(row.name) + "=" + value);
      } else {
        sources.flags.insert(sources.flags.end(), {flag_name(row.name), value});
      }
      break;
  }
}

From any_source() { return *rc::gen::element(From::file, From::environment, From::flag); }

// So that the check between the two times does not come in between.
void allow_long_timeouts(const KeyRow& row, ConfigSources& sources) {
  if (row.name == "default_timeout_secs") sources.flags.push_back("--max-timeout-secs=604800");
}

Config::Line told_line(const Config& config, std::string_view key) {
  const auto line = std::ranges::find(config.lines, key, &Config::Line::key);
  RC_ASSERT(line != config.lines.end());
  return *line;
}

void check_refusal(const Failure& error) {
  RC_ASSERT(error.kind == Errc::invalid);
  RC_ASSERT(!error.message.empty());
  RC_ASSERT(std::ranges::none_of(
      error.message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }));
  RC_ASSERT(error.message.ends_with('.') || error.message.ends_with('?'));
}

RC_GTEST_PROP(ConfigProperty, AStrongerSourceWins, ()) {
  const KeyRow& row = any_number_key();
  ConfigSources sources = no_sources();
  std::string toml;
  allow_long_timeouts(row, sources);
  std::string expected;
  std::string expected_source = "default";
  for (const auto& [from, source] :
       {std::pair(From::file, "file"), std::pair(From::environment, "environment"),
        std::pair(From::flag, "flag")}) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    expected = std::to_string(any_between(row.min, row.max));
    expected_source = source;
    give(from, row, expected, sources, toml);
  }
  const auto config = load_config_with_file_text(std::move(sources), toml);
  RC_ASSERT(config.has_value());
  const Config::Line line = told_line(*config, row.name);
  RC_ASSERT(line.source.starts_with(expected_source));
  if (!expected.empty()) RC_ASSERT(line.value == expected);
}

RC_GTEST_PROP(ConfigProperty, ANumberInRangeComesThroughEverySource, ()) {
  const KeyRow& row = any_number_key();
  const std::string value = std::to_string(any_between(row.min, row.max));
  ConfigSources sources = no_sources();
  std::string toml;
  allow_long_timeouts(row, sources);
  give(any_source(), row, value, sources, toml);
  const auto config = load_config_with_file_text(std::move(sources), toml);
  RC_ASSERT(config.has_value());
  RC_ASSERT(told_line(*config, row.name).value == value);
}

RC_GTEST_PROP(ConfigProperty, ANumberOutOfRangeIsRefusedByKey, ()) {
  const KeyRow& row = any_number_key();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t value = *rc::gen::arbitrary<bool>() ? any_between(kLeast, row.min - 1)
                                                         : any_between(row.max + 1, kMost);
  ConfigSources sources = no_sources();
  std::string toml;
  const From from = any_source();
  give(from, row, std::to_string(value), sources, toml);
  const auto config = load_config_with_file_text(std::move(sources), toml);
  RC_ASSERT(!config.has_value());
  check_refusal(config.error());
  const std::string name = from == From::file          ? std::string(row.name)
                           : from == From::environment ? environment_name(row.name)
                                                       : flag_name(row.name);
  RC_ASSERT(config.error().message.starts_with(name + " "));
  RC_ASSERT(config.error().message.find(std::to_string(value)) != std::string::npos);
  RC_ASSERT(config.error().message.find(std::to_string(row.max)) != std::string::npos);
}

RC_GTEST_PROP(ConfigProperty, AnyBytesAsAFileGiveAConfigOrASentence, ()) {
  // Pieces of real files, so that more than the parser's first complaint is reached.
  const std::vector<std::string> pieces = {
      "max_runs", "listen", "agents.a", "[agents.a]\n", "command", "set_env", " = ",   "\"x\"", "[",
      "]",        "{",      "}",        "\n",           "1",       "-1",      "1e9",   ",",     ".",
      "\"",       "'",      "#",        "\xff",         "\\u0000", "true",    "ledger"};
  const std::string toml = *rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)),
                   [](const std::vector<std::string>& chosen) {
                     std::string text;
                     for (const std::string& piece : chosen) text += piece;
                     return text;
                   }));
  const auto config = load_config_with_file_text(no_sources(), toml);
  if (config) {
    RC_ASSERT(load_config_with_file_text(no_sources(), render_config(*config)).has_value());
  } else {
    check_refusal(config.error());
  }
}

RC_GTEST_PROP(ConfigProperty, AnyBytesAsAValueGiveAConfigOrASentence, (std::string value)) {
  const auto rows = key_rows();
  const KeyRow& row = rows[*rc::gen::inRange<std::size_t>(0, rows.size())];
  ConfigSources sources = no_sources();
  if (*rc::gen::arbitrary<bool>()) {
    sources.environment[environment_name(row.name)] = value;
  } else {
    sources.flags.push_back(flag_name(row.name) + "=" + value);
  }
  sources.environment["CLAWDFORGE_" + value] = value;
  const auto config = load_config_with_file_text(std::move(sources), "");
  if (!config) {
    check_refusal(config.error());
    return;
  }
  RC_ASSERT(load_config_with_file_text(no_sources(), render_config(*config)).has_value());
  for (const std::string& warning : config->warnings) {
    RC_ASSERT(warning.find('\n') == std::string::npos);
  }
}

RC_GTEST_PROP(ConfigProperty, AnyArgumentsGiveAConfigOrASentence,
              (std::vector<std::string> arguments)) {
  ConfigSources sources = no_sources();
  sources.flags = std::move(arguments);
  for (std::string& argument : sources.flags) {
    if (*rc::gen::arbitrary<bool>()) argument.insert(0, "--");
  }
  const auto config = load_config_with_file_text(std::move(sources), "");
  if (!config) check_refusal(config.error());
}

}  // namespace
}  // namespace clawdforge
