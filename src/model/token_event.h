// What the audit keeps of a change to an app's token: what was done, by which admin, from where.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/session.h"

namespace clawdforge {

// How the admin came in.
enum class AdminDoor { token, socket, browser };

struct AdminOrigin {
  AdminDoor door = AdminDoor::token;
  std::string address;    // where the request really comes from; empty for the socket
  std::string browser{};  // its name, where it came by a browser
};

inline constexpr std::string_view kTokenMint = "token_mint";
inline constexpr std::string_view kTokenChange = "token_change";
inline constexpr std::string_view kTokenRotate = "token_rotate";
inline constexpr std::string_view kTokenRevoke = "token_revoke";
inline constexpr std::string_view kWebhookSecret = "webhook_secret";  // made, or replaced

// `event` is one of those above. The meta is {"by":"admin_token","address":"10.0.0.7"}, or
// {"by":"admin_socket"}, or {"by":"browser","name":"Firefox on Linux","address":"10.0.0.7"};
// `members`, JSON text such as "\"fields\":[\"max_runs\"]", follows them.
AuditEvent token_event(std::string_view event, const AdminOrigin& by, TimePoint at,
                       std::string_view members = {});

}  // namespace clawdforge
