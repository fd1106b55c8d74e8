#include "cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "base/version.h"
#include "cli/chat/chat_row.h"
#include "cli/commands/commands.h"
#include "cli/completion.h"
#include "cli/core/invocation.h"
#include "cli/dashboard/dashboard_row.h"
#include "cli/help.h"
#include "cli/top/top.h"
#include "cli/topics.h"

namespace clawdforge {
namespace {

Done print_version(Invocation& invocation) {
  if (invocation.as_json()) {
    fmt::print("{{\"version\":\"{}\"}}\n", kVersion);
  } else {
    fmt::print("clawdforge {}\n", kVersion);
  }
  return 0;
}

std::vector<Command> own_commands() {
  return {
      {.name = "version",
       .group = "This program",
       .summary = "print the version",
       .reach = Reach::local,
       .run = print_version,
       .examples = {"clawdforge version"}},
      {.name = "help",
       .arguments = "[COMMAND]",
       .group = "This program",
       .summary = "the help of a command, or of a topic: agents, tokens, config, chat",
       .reach = Reach::local},
      completion_command(),
  };
}

// The table. A room of commands adds its rows here.
std::vector<Command> join_table(std::vector<Command> further) {
  std::vector<Command> table = run_commands();
  for (auto rows :
       {chat_commands(), gateway_commands(), agent_commands(), usage_commands(), session_commands(),
        work_commands(), job_commands(), login_commands(), token_commands(), audit_commands(),
        top_commands(), dashboard_commands(), std::move(further), own_commands()}) {
    std::ranges::move(rows, std::back_inserter(table));
  }
  return table;
}

int say(const Complaint& complaint, bool is_verbose) {
  if (complaint.sentence.empty()) return complaint.exit_code;
  std::fflush(stdout);
  if (is_verbose && !complaint.details.empty()) {
    fmt::print(stderr, "clawdforge: {} ({})\n", complaint.sentence, complaint.details);
  } else {
    fmt::print(stderr, "clawdforge: {}\n", complaint.sentence);
  }
  return complaint.exit_code;
}

int print_help(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

// The command that the words name, and how many of them its name has.
struct Found {
  const Command* command = nullptr;
  std::size_t words = 0;
};

Found find_command(const std::vector<Command>& table, const std::vector<std::string>& given) {
  for (const std::size_t count : {2U, 1U}) {
    if (given.size() < count) continue;
    const std::string name = count == 2 ? given[0] + " " + given[1] : given[0];
    const auto found = std::ranges::find(table, name, &Command::name);
    if (found != table.end()) return {&*found, count};
  }
  return {};
}

// What the names of commands have in the place of the next word.
std::vector<std::string_view> words_after(const std::vector<Command>& table,
                                          std::string_view family) {
  std::vector<std::string_view> words;
  for (const Command& command : table) {
    if (command.group.empty()) continue;
    const auto parts = split_words(command.name);
    const bool is_in = family.empty() || (parts.size() > 1 && parts[0] == family);
    const std::string_view word = is_in ? parts[family.empty() ? 0 : 1] : std::string_view();
    if (is_in && std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return words;
}

int say_unknown(const std::vector<Command>& table, const std::vector<std::string>& given) {
  const std::string family = words_after(table, given[0]).empty() ? "" : given[0];
  const std::string typed = family.empty() ? given[0] : given.size() > 1 ? given[1] : "";
  const std::string prefix = family.empty() ? "" : family + " ";
  const auto words = words_after(table, family);
  if (typed.empty() || typed.starts_with('-')) {
    return say({kExitUsage,
                fmt::format("say what to do: clawdforge {} {}.", family, fmt::join(words, "|")),
                {}},
               false);
  }
  const std::string_view near = nearest(typed, words);
  const auto hint = near.empty() ? fmt::format("clawdforge help {}lists the commands", prefix)
                                 : fmt::format("did you mean clawdforge {}{}?", prefix, near);
  return say(
      {kExitUsage,
       fmt::format("there is no command {}{}; {}{}", prefix, typed, hint, near.empty() ? "." : ""),
       {}},
      false);
}

int help(const std::vector<Command>& table, std::vector<std::string> about) {
  std::erase_if(about, [](const std::string& word) { return word.starts_with('-'); });
  if (about.empty()) return print_help(help_of_program(table));
  if (about.size() == 1 && !topic_text(about[0]).empty()) return print_help(topic_text(about[0]));
  const Found found = find_command(table, about);
  if (found.command != nullptr && found.words == about.size()) {
    if (found.command->has_own_help) return found.command->run_raw({"--help"});
    return print_help(help_of_command(*found.command));
  }
  const std::string family = help_of_family(table, about[0]);
  if (about.size() == 1 && !family.empty()) return print_help(family);
  return say_unknown(table, about);
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

int run_command(const Command& command, std::vector<std::string> given,
                const FindLocalGateway& find_local) {
  if (command.reach == Reach::raw) {
    if (std::ranges::any_of(given, asks_for_help)) {
      return command.has_own_help ? command.run_raw({"--help"})
                                  : print_help(help_of_command(command));
    }
    return command.run_raw(std::move(given));
  }
  Invocation invocation;
  invocation.command = &command;
  auto arguments = parse_arguments(command, given);
  if (!arguments) return say(arguments.error(), false);
  invocation.arguments = std::move(*arguments);
  if (invocation.arguments.has("--help")) return print_help(help_of_command(command));
  invocation.screen = look_at_screen();
  invocation.find_local = find_local;
  // Other programs of the user must not find it in what the kernel shows of this process.
  invocation.admin_token = take_from_environment("CLAWDFORGE_ADMIN_TOKEN");
  const Done done = command.run(invocation);
  if (!done) return say(done.error(), invocation.is_verbose());
  if (std::fflush(stdout) != 0) return kExitNoAnswer;
  return *done;
}

// Takes away the options in front of the command, where those of all commands may stand, too.
std::vector<std::string> take_front_options(std::vector<std::string>& given) {
  std::size_t count = 0;
  while (count < given.size() && given[count].starts_with('-')) {
    const std::string& item = given[count];
    const bool has_value = item == "--url" || item == "--profile" || item == "--data-dir";
    count += has_value ? 2 : 1;
  }
  const auto end = given.begin() + static_cast<long>(std::min(count, given.size()));
  std::vector<std::string> front(given.begin(), end);
  given.erase(given.begin(), end);
  return front;
}

int say_no_command(const std::vector<std::string>& options) {
  constexpr std::array<std::string_view, 2> kAlone = {"--version", "--help"};
  const std::string_view near = options.empty() ? "" : nearest(options[0], kAlone);
  if (!near.empty()) {
    return say(
        {kExitUsage, fmt::format("there is no option {}; did you mean {}?", options[0], near), {}},
        false);
  }
  return say({kExitUsage, "say what to do; clawdforge help lists the commands.", {}}, false);
}

}  // namespace

int run_program(std::vector<std::string> given, const FindLocalGateway& find_local,
                std::vector<Command> further) {
  const std::vector<Command> table = join_table(std::move(further));
  if (!given.empty() && given[0] == "--version") given[0] = "version";
  if (!given.empty() && given[0] == "__complete") {
    return print_offers(table, {given.begin() + 1, given.end()}, find_local);
  }
  if (!given.empty() && (given[0] == "help" || asks_for_help(given[0]))) {
    return help(table, {given.begin() + 1, given.end()});
  }
  const std::vector<std::string> front = take_front_options(given);
  if (given.empty()) return say_no_command(front);
  const Found found = find_command(table, given);
  if (found.command != nullptr) {
    given.erase(given.begin(), given.begin() + static_cast<long>(found.words));
    given.insert(given.begin(), front.begin(), front.end());
    return run_command(*found.command, std::move(given), find_local);
  }
  if (given.size() > 1 && asks_for_help(given[1])) return help(table, {given[0]});
  return say_unknown(table, given);
}

}  // namespace clawdforge
