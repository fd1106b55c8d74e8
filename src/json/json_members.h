// Members of JSON objects that are written without building a document first. Each is
// appended with a comma in front of it, unless the object has only just begun.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json_text.h"

namespace clawdforge {

inline void append_name(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":");
}

inline void append_member(std::string& out, std::string_view name, std::string_view text) {
  append_name(out, name);
  append_json_string(out, text);
}

inline void append_member(std::string& out, std::string_view name, const char* text) {
  append_member(out, name, std::string_view(text));
}

// Also "true" and "false", for bool.
inline void append_member(std::string& out, std::string_view name, std::integral auto number) {
  append_name(out, name);
  fmt::format_to(std::back_inserter(out), "{}", number);
}

// JSON has no word for a number that is none.
inline void append_member(std::string& out, std::string_view name, double number) {
  append_name(out, name);
  if (std::isfinite(number)) {
    fmt::format_to(std::back_inserter(out), "{}", number);
  } else {
    out += "null";
  }
}

inline void append_member(std::string& out, std::string_view name, TimePoint at) {
  append_member(out, name, unix_seconds(at));
}

// A record that has a JSON form of its own.
template <class Record>
  requires requires(std::string& out, const Record& record) { append_json(out, record); }
void append_member(std::string& out, std::string_view name, const Record& record) {
  append_name(out, name);
  append_json(out, record);
}

// Null where there is none.
template <class T>
void append_member(std::string& out, std::string_view name, const std::optional<T>& value) {
  if (value) return append_member(out, name, *value);
  append_name(out, name);
  out += "null";
}

inline std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace clawdforge
