#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/core/arguments.h"

namespace clawdforge {
namespace {

constexpr std::size_t kHelpColumns = 96;
constexpr std::size_t kNameColumns = 26;

// The text in lines that begin after `indent` columns, the first of which is begun already.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t used = indent;
  for (const std::string_view word : split_words(text)) {
    if (used > indent && used + 1 + word.size() > kHelpColumns) {
      lines += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += word.size();
  }
  return lines;
}

std::string row(std::string_view name, std::string_view text) {
  std::string line = fmt::format("  {}", name);
  if (line.size() + 2 > kNameColumns) {
    line += "\n" + std::string(kNameColumns, ' ');
  } else {
    line.append(kNameColumns - line.size(), ' ');
  }
  return line + wrapped(text, kNameColumns) + "\n";
}

std::string option_rows(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    const auto name = option.value.empty() ? std::string(option.name)
                                           : fmt::format("{} {}", option.name, option.value);
    text += row(name, option.help);
  }
  return text;
}

std::string call_of(const Command& command) {
  return command.arguments.empty() ? std::string(command.name)
                                   : fmt::format("{} {}", command.name, command.arguments);
}

std::string rows_of(const std::vector<const Command*>& commands) {
  std::string text;
  for (const Command* command : commands) text += row(call_of(*command), command->summary);
  return text;
}

}  // namespace

std::string help_of_program(const std::vector<Command>& table) {
  std::string text =
      "clawdforge COMMAND [arguments] [options]\n\n"
      "One HTTP gateway in front of the coding agents of this machine, and its client.\n";
  std::vector<std::string_view> groups;
  for (const Command& command : table) {
    if (std::ranges::find(groups, command.group) == groups.end() && !command.group.empty()) {
      groups.push_back(command.group);
    }
  }
  for (const std::string_view group : groups) {
    std::vector<const Command*> members;
    for (const Command& command : table) {
      if (command.group == group) members.push_back(&command);
    }
    text += fmt::format("\n{}:\n{}", group, rows_of(members));
  }
  text +=
      "\nclawdforge COMMAND --help tells all about one; clawdforge help "
      "agents|tokens|config|chat\nexplains.\n";
  return text;
}

std::string help_of_family(const std::vector<Command>& table, std::string_view word) {
  std::vector<const Command*> members;
  const std::string beginning = std::string(word) + " ";
  for (const Command& command : table) {
    if (command.name.starts_with(beginning) && !command.group.empty()) members.push_back(&command);
  }
  if (members.empty()) return {};
  return fmt::format(
      "clawdforge {} COMMAND\n\nCommands:\n{}\nclawdforge {} COMMAND --help tells all "
      "about one.\n",
      word, rows_of(members), word);
}

std::string help_of_command(const Command& command) {
  std::string text = fmt::format("clawdforge {} [options]\n\n{}.\n", call_of(command),
                                 wrapped(command.summary, 0));
  const std::size_t begin = text.find("\n\n") + 2;
  text[begin] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[begin])));
  if (!command.about.empty()) text += fmt::format("\n{}\n", wrapped(command.about, 0));
  text += fmt::format("\nOptions:\n{}{}", option_rows(command.options),
                      option_rows(common_options(command.reach)));
  if (command.examples.empty()) return text;
  text += "\nExamples:\n";
  for (const std::string_view example : command.examples) text += fmt::format("  $ {}\n", example);
  return text;
}

}  // namespace clawdforge
