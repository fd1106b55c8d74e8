#include "cli/gateway_call.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "base/net.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

// The sentence of an error body, or the body itself where it is none of ours.
std::string sentence_of(const ClientAnswer& answer) {
  json::error_code error;
  const json::value body = json::parse(answer.body, error);
  if (!error && body.is_object()) {
    if (const auto* detail = body.get_object().if_contains("detail");
        detail != nullptr && detail->is_string()) {
      return std::string(detail->get_string());
    }
  }
  return fmt::format("the answer was HTTP {}", answer.status);
}

// A token must not end up with a stranger: on a port that a gateway has left, or on
// another host than the one whose file it comes from.
std::optional<int> check_admin(const GatewayCall& to, const GatewayDoor& door,
                               const ServerAddress& address) {
  if (door.admin_token.empty()) {
    return complain(kExitNoToken,
                    "no admin token was found; start the gateway once, or set "
                    "CLAWDFORGE_ADMIN_TOKEN.");
  }
  const auto host = IpAddress::parse(address.host == "localhost" ? "127.0.0.1" : address.host);
  if (door.is_token_from_file && !to.url.empty() && !(host && host->is_loopback())) {
    return complain(kExitNoToken,
                    "the admin token of this machine is not sent to another one; set "
                    "CLAWDFORGE_ADMIN_TOKEN to that gateway's.");
  }
  return std::nullopt;
}

Outcome outcome_of(ClientAnswer answer) {
  if (answer.status >= 400) {
    const int code = answer.status >= 500 ? kExitFailed : kExitRefused;
    return {complain(code, sentence_of(answer)), {}, {}};
  }
  json::error_code error;
  json::value parsed = json::parse(answer.body, error);
  if (error || !parsed.is_object()) {
    return {complain(kExitFailed, "the answer is not a clawdforge gateway's."), {}, {}};
  }
  return {0, std::move(answer.body), std::move(parsed.get_object())};
}

}  // namespace

int complain(int exit_code, std::string_view sentence) {
  fmt::print(stderr, "clawdforge: {}\n", sentence);
  return exit_code;
}

Outcome call_gateway(const GatewayCall& to, TokenKind kind, ClientRequest request,
                     std::chrono::seconds timeout) {
  auto door = to.find_door(to.data_dir);
  if (!door) return {complain(kExitUsage, door.error().message), {}, {}};
  auto address = parse_server_url(to.url.empty() ? door->url : to.url);
  if (!address) return {complain(kExitUsage, address.error().message), {}, {}};
  if (to.url.empty() && !door->is_running) {
    return {complain(kExitNoAnswer, "no gateway runs on this data directory."), {}, {}};
  }
  if (kind == TokenKind::admin && to.url.empty() && !door->socket_file.empty()) {
    // Its file's mode says who may use it, so no token is needed, and no limit on addresses holds.
    ServerAddress local = *address;
    local.socket_file = door->socket_file;
    auto answer = call_server(local, request, timeout);
    if (answer) return outcome_of(std::move(*answer));
    if (door->admin_token.empty()) {
      return {complain(kExitNoAnswer, answer.error().message), {}, {}};
    }
  }
  if (kind == TokenKind::admin) {
    if (const auto refused = check_admin(to, *door, *address)) return {*refused, {}, {}};
    request.token = std::move(door->admin_token);
  } else {
    const char* token = std::getenv("CLAWDFORGE_TOKEN");
    if (token == nullptr || *token == '\0') {
      return {complain(kExitNoToken,
                       "set CLAWDFORGE_TOKEN to an app's token (clawdforge token mint NAME)."),
              {},
              {}};
    }
    request.token = Secret(token);
  }
  if (to.url.empty()) address->pinned_cert = door->pinned_cert;
  auto answer = call_server(*address, request, timeout);
  if (!answer) return {complain(kExitNoAnswer, answer.error().message), {}, {}};
  return outcome_of(std::move(*answer));
}

}  // namespace clawdforge
