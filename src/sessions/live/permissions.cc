#include "sessions/live/permissions.h"

#include "json/json_members.h"

namespace clawdforge {

std::string audit_json(std::string_view id, const PermissionRequest& question,
                       const Decision& decision, std::string_view by, PermissionMode mode) {
  std::string out = "{";
  append_member(out, "id", id);
  append_member(out, "kind", question.kind);
  append_member(out, "decision", name_of(decision));
  append_member(out, "by", by);
  append_member(out, "mode", name_of(mode));
  out += '}';
  return out;
}

}  // namespace clawdforge
