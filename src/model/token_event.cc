#include "model/token_event.h"

#include "base/json_text.h"

namespace clawdforge {

AuditEvent token_event(std::string_view event, const AdminOrigin& by, TimePoint at,
                       std::string_view members) {
  AuditEvent noted{.event = std::string(event), .at = at, .meta = {}};
  std::string& meta = noted.meta;
  meta = by.door == AdminDoor::socket ? R"({"by":"admin_socket")" : R"({"by":"admin_token")";
  if (!by.address.empty()) {
    meta += R"(,"address":)";
    append_json_string(meta, by.address);
  }
  if (!members.empty()) meta.append(",").append(members);
  meta += '}';
  return noted;
}

}  // namespace clawdforge
