#include "cli/token_commands.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <ctime>

#include "base/net.h"
#include "http/client.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kCallMax{30};

int complain(int exit_code, std::string_view sentence) {
  fmt::print(stderr, "clawdforge: {}\n", sentence);
  return exit_code;
}

struct Outcome {
  int exit_code = 0;  // not zero: said why already
  std::string text;
  json::object body;
};

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
std::optional<int> check(const GatewayCall& to, const GatewayDoor& door,
                         const ServerAddress& address) {
  if (to.url.empty() && !door.is_running) {
    return complain(kExitNoAnswer, "no gateway runs on this data directory.");
  }
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

Outcome call(const GatewayCall& to, std::string method, std::string target, std::string body) {
  auto door = to.find_door(to.data_dir);
  if (!door) return {complain(kExitUsage, door.error().message), {}, {}};
  auto address = parse_server_url(to.url.empty() ? door->url : to.url);
  if (!address) return {complain(kExitUsage, address.error().message), {}, {}};
  if (const auto refused = check(to, *door, *address)) return {*refused, {}, {}};
  if (to.url.empty()) address->pinned_cert = door->pinned_cert;
  ClientRequest request{.method = std::move(method),
                        .target = std::move(target),
                        .token = std::move(door->admin_token),
                        .body = std::move(body)};
  auto answer = call_server(*address, request, kCallMax);
  if (!answer) return {complain(kExitNoAnswer, answer.error().message), {}, {}};
  if (answer->status >= 400) {
    const int code = answer->status >= 500 ? kExitFailed : kExitRefused;
    return {complain(code, sentence_of(*answer)), {}, {}};
  }
  json::error_code error;
  json::value parsed = json::parse(answer->body, error);
  if (error || !parsed.is_object()) {
    return {complain(kExitFailed, "the answer is not a clawdforge gateway's."), {}, {}};
  }
  return {0, std::move(answer->body), std::move(parsed.get_object())};
}

std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return "-";
  if (!value.is_array()) return json::serialize(value);
  std::string joined;
  for (const json::value& item : value.get_array()) {
    if (!joined.empty()) joined += ',';
    joined += text_of(item);
  }
  return joined.empty() ? "-" : joined;
}

std::string day_of(const json::value& value) {
  if (!value.is_int64()) return "never";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}Z",
                     fmt::gmtime(static_cast<std::time_t>(value.get_int64())));
}

// A name that the gateway would refuse anyway must not become another path.
std::string path_of(const std::string& name) {
  std::string path = "/admin/tokens/";
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_') {
      path += static_cast<char>(c);
    } else {
      fmt::format_to(std::back_inserter(path), "%{:02X}", c);
    }
  }
  return path;
}

int print_token(const GatewayCall& to, const Outcome& outcome) {
  if (outcome.exit_code != 0) return outcome.exit_code;
  if (to.as_json) {
    fmt::print("{}\n", outcome.text);
    return 0;
  }
  const json::value* token = outcome.body.if_contains("token");
  if (token == nullptr) return complain(kExitFailed, "the answer has no token in it.");
  fmt::print("{}\n", text_of(*token));
  return 0;
}

}  // namespace

int mint_token(const GatewayCall& to, const NewToken& fresh) {
  json::object body;
  body["name"] = fresh.name;
  if (!fresh.ip_cidrs.empty()) {
    body["ip_cidrs"] = json::array(fresh.ip_cidrs.begin(), fresh.ip_cidrs.end());
  }
  if (!fresh.event_format.empty()) body["event_format"] = fresh.event_format;
  if (fresh.max_sessions) body["max_sessions"] = *fresh.max_sessions;
  if (fresh.max_runs) body["max_runs"] = *fresh.max_runs;
  return print_token(to, call(to, "POST", "/admin/tokens", json::serialize(body)));
}

int list_tokens(const GatewayCall& to) {
  const Outcome outcome = call(to, "GET", "/admin/tokens", {});
  if (outcome.exit_code != 0) return outcome.exit_code;
  if (to.as_json) {
    fmt::print("{}\n", outcome.text);
    return 0;
  }
  const json::value* tokens = outcome.body.if_contains("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    return complain(kExitFailed, "the answer has no list in it.");
  }
  fmt::print("{:<24} {:<21} {:<21} {}\n", "NAME", "CREATED", "LAST USED", "FROM");
  for (const json::value& token : tokens->get_array()) {
    const json::object& row = token.as_object();
    fmt::print("{:<24} {:<21} {:<21} {}\n", text_of(row.at("name")), day_of(row.at("created_at")),
               day_of(row.at("last_used_at")), text_of(row.at("ip_cidrs")));
  }
  return 0;
}

int rotate_token(const GatewayCall& to, const std::string& name) {
  return print_token(to, call(to, "POST", path_of(name) + "/rotate", {}));
}

int revoke_token(const GatewayCall& to, const std::string& name) {
  const Outcome outcome = call(to, "DELETE", path_of(name), {});
  if (outcome.exit_code == 0 && to.as_json) fmt::print("{}\n", outcome.text);
  return outcome.exit_code;
}

}  // namespace clawdforge
