#include "agent/failure/missing_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace clawdforge {
namespace {

constexpr int kNotFoundCode = 127;  // what shells and env end with
constexpr std::size_t kProgramNameBytesMax = 64;
constexpr std::string_view kWhatToDo =
    "on the PATH that the gateway gives to its agents: add its directory to the PATH in the "
    "environment of the gateway, and restart the gateway.";

// Foreign text: only what looks like the bare name of a program is repeated.
bool is_program_name(std::string_view text) {
  return !text.empty() && text.size() <= kProgramNameBytesMax &&
         std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '+';
         });
}

// The word of a line that ends before `end`, without quotation marks of any kind.
std::string_view last_word(std::string_view line) {
  const auto is_part = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '+';
  };
  while (!line.empty() && !is_part(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  std::size_t begin = line.size();
  while (begin > 0 && is_part(static_cast<unsigned char>(line[begin - 1]))) --begin;
  return line.substr(begin);
}

// None: the line does not say that a program was not found. Empty: it does, without a name that
// can be repeated.
std::optional<std::string_view> missing_in(std::string_view line) {
  constexpr std::array<std::string_view, 3> kEnds = {": not found", ": command not found",
                                                     ": No such file or directory"};
  for (const std::string_view end : kEnds) {
    const std::size_t at = line.find(end);
    if (at == std::string_view::npos) continue;
    const std::string_view before = line.substr(0, at);
    // A file that a program misses is not a program: here only env and interpreters count.
    const bool is_of_file = end == kEnds.back();
    if (is_of_file && !before.contains("env: ") && !before.contains("bad interpreter")) continue;
    const std::string_view word = last_word(before);
    if (before.contains("bad interpreter") || !is_program_name(word)) return std::string_view();
    return word;
  }
  return std::nullopt;
}

}  // namespace

std::string missing_program_hint(const ExitStatus& status, std::string_view error_tail) {
  const auto* const exited = std::get_if<Exited>(&status);
  if (exited == nullptr || exited->code == 0) return {};
  std::optional<std::string_view> missing;
  for (std::size_t begin = 0; begin < error_tail.size();) {
    const std::size_t end = std::min(error_tail.find('\n', begin), error_tail.size());
    if (const auto found = missing_in(error_tail.substr(begin, end - begin))) missing = found;
    begin = end + 1;
  }
  if (missing && !missing->empty()) return fmt::format("{} is not {}", *missing, kWhatToDo);
  if (missing || exited->code == kNotFoundCode) {
    return fmt::format("A program that it needs is not {}", kWhatToDo);
  }
  return {};
}

}  // namespace clawdforge
