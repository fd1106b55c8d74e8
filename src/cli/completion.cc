#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "cli/core/ask.h"
#include "cli/core/env_file.h"
#include "cli/topics.h"

namespace clawdforge {
namespace {

constexpr std::chrono::milliseconds kOfferMax{300};
// In the place of candidates: the shell completes the names of files itself.
constexpr std::string_view kFilesMark = ":files";

constexpr std::string_view kBash = R"(_clawdforge() {
  local IFS=$'\n'
  COMPREPLY=($(clawdforge __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [ "${COMPREPLY[0]}" = ":files" ]; then
    COMPREPLY=()
    compopt -o default
  fi
}
complete -F _clawdforge clawdforge
)";
constexpr std::string_view kZsh = R"(#compdef clawdforge
_clawdforge() {
  local -a offers
  offers=("${(@f)$(clawdforge __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "${offers[1]}" == ":files" ]]; then
    _files
  else
    compadd -- "${offers[@]}"
  fi
}
compdef _clawdforge clawdforge
)";
constexpr std::string_view kFish = R"(function __clawdforge_offers
  set -l words (commandline -opc) (commandline -ct)
  set -l offers (clawdforge __complete $words[2..-1] 2>/dev/null)
  if test "$offers[1]" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\n' $offers
  end
end
complete -c clawdforge -f -a '(__clawdforge_offers)'
)";

Done print_script(Invocation& invocation) {
  const std::string shell = invocation.arguments.word(0);
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    return complain(kExitUsage, fmt::format("there is no completion for {}; it is for bash, zsh or "
                                            "fish.",
                                            shell));
  }
  print_answer(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return 0;
}

using Words = std::vector<std::string>;

// Where the names of a kind are, and in which member of the answer's rows.
struct Source {
  std::string_view target;
  std::string_view list;
  std::string_view member;
  TokenKind kind;
};

Words asked_names(const Source& source, const Invocation& invocation) {
  Words names;
  const auto to = find_destination(invocation, source.kind);
  if (!to) return names;
  ClientRequest request;
  request.method = "GET";
  request.target = source.target;
  request.token = Secret(std::string(to->token.reveal()));
  const auto answer = call_server(to->address, request, kOfferMax);
  if (!answer || answer->status != 200) return names;
  boost::json::error_code error;
  const auto parsed = boost::json::parse(answer->body, error);
  const auto* const rows =
      !error && parsed.is_object() ? list_of(parsed.get_object(), source.list) : nullptr;
  if (rows == nullptr) return names;
  for (const auto& row : *rows) {
    if (row.is_object()) names.push_back(plain_line(field_of(row.get_object(), source.member)));
  }
  return names;
}

Words offers_of(Offers kind, std::string_view words, const Invocation& invocation) {
  switch (kind) {
    case Offers::nothing:
      break;
    case Offers::words: {
      const auto split = split_words(words);
      return {split.begin(), split.end()};
    }
    case Offers::files:
      return {std::string(kFilesMark)};
    case Offers::profiles:
      return profile_names();
    case Offers::agents:
      return asked_names({"/agents", "agents", "name", TokenKind::any}, invocation);
    case Offers::workspaces:
      return asked_names({"/workspaces", "workspaces", "name", TokenKind::any}, invocation);
    case Offers::sessions:
      return asked_names({"/sessions", "sessions", "session_id", TokenKind::app}, invocation);
    case Offers::jobs:
      return asked_names({"/jobs", "jobs", "job_id", TokenKind::app}, invocation);
    case Offers::tokens:
      return asked_names({"/admin/tokens", "tokens", "name", TokenKind::admin}, invocation);
  }
  return {};
}

// The names of commands that follow these words.
Words next_names(const std::vector<Command>& table, const Words& before) {
  Words names;
  for (const Command& command : table) {
    const auto parts = split_words(command.name);
    if (command.group.empty() || parts.size() <= before.size()) continue;
    if (!std::equal(before.begin(), before.end(), parts.begin())) continue;
    std::string name(parts[before.size()]);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

const Command* command_of(const std::vector<Command>& table, const Words& words) {
  const Command* best = nullptr;
  for (const Command& command : table) {
    const auto parts = split_words(command.name);
    if (parts.size() > words.size()) continue;
    const bool is_it = std::equal(parts.begin(), parts.end(), words.begin());
    if (is_it && (best == nullptr || best->name.size() < command.name.size())) best = &command;
  }
  return best;
}

const Option* option_of(const Command& command, std::string_view name) {
  for (const auto* list : {&command.options, &common_options(command.reach)}) {
    const auto found = std::ranges::find(*list, name, &Option::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

// What was typed of a command: its words, without options and their values, and the options that
// say where the gateway is.
Words plain_words(const Command& command, const Words& typed, Invocation& invocation) {
  Words plain;
  Words places;
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const Option* const option = option_of(command, typed[i]);
    if (!typed[i].starts_with('-')) plain.push_back(typed[i]);
    if (option == nullptr || option->value.empty() || ++i >= typed.size()) continue;
    const bool is_place =
        option->name == "--url" || option->name == "--profile" || option->name == "--data-dir";
    if (is_place) places.insert(places.end(), {typed[i - 1], typed[i]});
  }
  static const Command kPlaces = {.name = "__complete"};
  if (auto arguments = parse_arguments(kPlaces, places)) {
    invocation.arguments = std::move(*arguments);
  }
  return plain;
}

Words offers_after(const std::vector<Command>& table, const Words& typed, std::string_view current,
                   Invocation& invocation) {
  if (!typed.empty() && typed[0] == "help") {
    Words names = next_names(table, {typed.begin() + 1, typed.end()});
    for (const std::string_view topic : topic_names()) {
      if (typed.size() == 1 && std::ranges::find(names, topic) == names.end()) {
        names.emplace_back(topic);
      }
    }
    return names;
  }
  const Command* const command = command_of(table, typed);
  if (command == nullptr) return next_names(table, typed);
  const Option* const last = typed.empty() ? nullptr : option_of(*command, typed.back());
  const Words words = plain_words(*command, typed, invocation);
  if (last != nullptr && !last->value.empty()) {
    return offers_of(last->offers, last->words, invocation);
  }
  if (current.starts_with('-')) {
    Words names;
    for (const auto* list : {&command->options, &common_options(command->reach)}) {
      for (const Option& option : *list) names.emplace_back(option.name);
    }
    return names;
  }
  const std::size_t own_words = split_words(command->name).size();
  if (words.size() > own_words) return {};
  return offers_of(command->offers, command->words, invocation);
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .arguments = "SHELL",
          .group = "This program",
          .summary = "print what makes a shell complete commands: bash, zsh or fish",
          .reach = Reach::local,
          .run = print_script,
          .examples = {"source <(clawdforge completion bash)",
                       "clawdforge completion fish > ~/.config/fish/completions/clawdforge.fish"},
          .offers = Offers::words,
          .words = "bash zsh fish"};
}

int print_offers(const std::vector<Command>& table, std::vector<std::string> words,
                 const FindLocalGateway& find_local) {
  Invocation invocation;
  invocation.find_local = find_local;
  invocation.admin_token = take_from_environment("CLAWDFORGE_ADMIN_TOKEN");
  const std::string current = words.empty() ? std::string() : words.back();
  if (!words.empty()) words.pop_back();
  for (const std::string& offer : offers_after(table, words, current, invocation)) {
    if (offer == kFilesMark || offer.starts_with(current)) fmt::print("{}\n", offer);
  }
  std::fflush(stdout);
  // A look-up of a host's name may still go on in a thread. It is not waited for.
  std::_Exit(0);
}

}  // namespace clawdforge
