// The one table with every configuration key: its name, default, range, help, and how a
// value gets into and out of Config. Flags, environment and file all go through it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/config_values.h"

namespace clawdforge {

enum class KeyKind { number, text, list, flag, secret };

struct KeyRow {
  std::string_view name;
  KeyKind kind;
  std::string_view default_text;
  bool default_is_value;  // else a description; config.cc finds the value
  std::int64_t min;       // of a number
  std::int64_t max;
  std::string_view allowed;  // of anything else; completes "it must be ..."
  std::string_view help;
  // Empty when the value was taken, else a sentence's end that says why not.
  std::string (*set)(const KeyRow& row, std::string_view text, const PathOrigin& origin,
                     Config& config);
  // The value as TOML, or a remark in parentheses where there is none to show.
  std::string (*show)(const Config& config);
};

std::span<const KeyRow> key_rows();
const KeyRow* find_key(std::string_view name);

std::string environment_name(std::string_view key);  // max_runs: CLAWDFORGE_MAX_RUNS
std::string flag_name(std::string_view key);         // max_runs: --max-runs

// "it must be a whole number from 1 to 4."
std::string allowed_sentence(const KeyRow& row);

std::string toml_string(std::string_view text);

}  // namespace clawdforge
