#include "model/app.h"

#include <algorithm>

#include "base/json_text.h"
#include "model/token_event.h"

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

AuditEvent token_event(std::string_view event, const AdminOrigin& by, TimePoint at,
                       std::string_view members) {
  AuditEvent noted{.event = std::string(event), .at = at, .meta = {}};
  std::string& meta = noted.meta;
  switch (by.door) {
    case AdminDoor::token:
      meta = R"({"by":"admin_token")";
      break;
    case AdminDoor::socket:
      meta = R"({"by":"admin_socket")";
      break;
    case AdminDoor::browser:
      meta = R"({"by":"browser","name":)";
      append_json_string(meta, by.browser);
      break;
  }
  if (!by.address.empty()) {
    meta += R"(,"address":)";
    append_json_string(meta, by.address);
  }
  if (!members.empty()) meta.append(",").append(members);
  meta += '}';
  return noted;
}

}  // namespace clawdforge
