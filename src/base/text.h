// Small questions about text. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// Of the ASCII letters; the others count as they are.
constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower_case, lower_case);
}

// The beginning of a text in UTF-8, at most so many characters.
constexpr std::string_view first_characters(std::string_view text, std::size_t count) {
  const auto is_lead = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_lead(text[i]) && count-- == 0) return text.substr(0, i);
  }
  return text;
}

// The beginning of `text` in at most `bytes_max` bytes, without a half character at its end.
constexpr std::string_view cut_to(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

// Appends `text`, and then the number: several times as fast as a format, which has to be read
// first.
void append_numbered(std::string& out, std::string_view text, std::integral auto number) {
  const fmt::format_int digits(number);
  out.append(text).append(digits.data(), digits.size());
}

// `names` are those of an enum, in its order: the one table from which it becomes text and is
// read again.
template <class Enum, std::size_t N>
constexpr std::string_view name_among(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}
template <class Enum, std::size_t N>
constexpr std::optional<Enum> value_among(const std::array<std::string_view, N>& names,
                                          std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace clawdforge
