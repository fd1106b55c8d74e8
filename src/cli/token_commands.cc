#include "cli/token_commands.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <ctime>

#include "cli/gateway_call.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kCallMax{30};

Outcome call(const GatewayCall& to, std::string method, std::string target, std::string body) {
  ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return call_gateway(to, TokenKind::admin, std::move(request), kCallMax);
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
