// One row of the table of commands. Dispatch, help and completion are all made from it, so what a
// row says is all that there is to write for a new command. The texts are literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/core/complaint.h"

namespace clawdforge {

struct Invocation;

// What a shell offers as the value of an option, or in the place of an argument. Sessions, jobs,
// agents and tokens are asked of the gateway.
enum class Offers { nothing, words, files, agents, sessions, jobs, tokens, profiles, workspaces };

struct Option {
  std::string_view name;     // "--agent"
  std::string_view value{};  // what stands for its value in the help; empty: a flag
  std::string_view help{};
  bool repeats = false;
  bool is_number = false;
  Offers offers = Offers::nothing;
  std::string_view words{};  // the values there are, separated by spaces; no others are taken
  std::string_view also{};   // an older name of it, which the help does not show
};

// Which options a command has besides its own.
enum class Reach {
  gateway,  // talks to a gateway: where it is, --json, -v
  local,    // --json and -v
  raw,      // takes its arguments as they are; its row serves the help and the completion
};

struct Command {
  std::string_view name;         // "token mint"
  std::string_view arguments{};  // "NAME", "[PROMPT]", "FILE..."; separated by spaces
  std::string_view group{};      // its heading in the list of commands; empty: not listed
  std::string_view summary{};    // one line, lower case, no full stop
  Reach reach = Reach::gateway;
  Done (*run)(Invocation&) = nullptr;
  int (*run_raw)(std::vector<std::string>) = nullptr;  // of Reach::raw
  std::vector<Option> options{};
  std::vector<std::string_view> examples{};
  std::string_view about{};         // further paragraphs of its help
  Offers offers = Offers::nothing;  // of its first argument
  std::string_view words{};         // with Offers::words
  bool has_own_help = false;        // of Reach::raw: it answers --help itself
};

// The options that every command of this reach has.
const std::vector<Option>& common_options(Reach reach);

}  // namespace clawdforge
