// The options of `clawdforge token mint` and `token set` that say what an app may do. One table has
// them all; each becomes a field of the request's body.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/fwd.hpp>
#include <map>
#include <string>
#include <vector>

namespace clawdforge {

struct TokenSettings {
  std::map<std::string, std::vector<std::string>> given;  // by the field's name
  std::vector<std::string> reset;                         // fields that get their default back
};

// `settings` outlives the parsing.
void add_setting_options(CLI::App& command, TokenSettings& settings);
// --reset; for a token that there is already.
void add_reset_option(CLI::App& command, TokenSettings& settings);

// Adds the fields that were given to the body.
void add_fields(const TokenSettings& settings, boost::json::object& body);

}  // namespace clawdforge
