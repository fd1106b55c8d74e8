#include "model/app.h"

#include <algorithm>

namespace clawdforge {

std::string_view name_of(EventFormat format) {
  return format == EventFormat::acp ? "acp" : "simple";
}

std::optional<EventFormat> event_format_from(std::string_view name) {
  if (name == "acp") return EventFormat::acp;
  if (name == "simple") return EventFormat::simple;
  return std::nullopt;
}

bool is_app_name(std::string_view text) {
  constexpr std::size_t kNameBytesMax = 64;
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace clawdforge
