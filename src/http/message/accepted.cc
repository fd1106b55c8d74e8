#include "http/message/accepted.h"

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace clawdforge {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The part before the separator; takes it and the separator off the text.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return without_blanks(part);
}

// "q=0", "q=0.000": the caller does not take it.
bool is_refusing(std::string_view parameters) {
  while (!parameters.empty()) {
    std::string_view value = take_until(parameters, ';');
    const std::string_view name = take_until(value, '=');
    if (!equals_ignoring_case(name, "q")) continue;
    return !value.empty() && value.find_first_not_of("0.") == value.npos;
  }
  return false;
}

// What the list says of a member: taken, refused, or not named.
enum class Word { taken, refused, absent };

Word word_on(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    std::string_view parameters = take_until(list, ',');
    if (!equals_ignoring_case(take_until(parameters, ';'), wanted)) continue;
    return is_refusing(parameters) ? Word::refused : Word::taken;
  }
  return Word::absent;
}

}  // namespace

bool accepts_type(std::string_view accept, std::string_view type) {
  return word_on(accept, type) == Word::taken;
}

bool accepts_coding(std::string_view accept_encoding, std::string_view coding) {
  const Word word = word_on(accept_encoding, coding);
  return word == Word::absent ? word_on(accept_encoding, "*") == Word::taken : word == Word::taken;
}

bool names_tag(std::string_view if_none_match, std::string_view etag) {
  while (!if_none_match.empty()) {
    std::string_view tag = take_until(if_none_match, ',');
    if (tag == "*") return true;
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag) return true;
  }
  return false;
}

}  // namespace clawdforge
