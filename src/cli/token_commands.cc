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

const json::array* tokens_in(const Outcome& outcome) {
  const json::value* const tokens = outcome.body.if_contains("tokens");
  return tokens == nullptr ? nullptr : tokens->if_array();
}

// An older gateway does not know every field.
std::string field_of(const json::object& row, std::string_view name) {
  const json::value* const value = row.if_contains({name.data(), name.size()});
  return value == nullptr ? "-" : text_of(*value);
}

// One field a line; "-": its owner has not said it, so the default holds.
int print_row(const GatewayCall& to, const json::object& row) {
  if (to.as_json) {
    fmt::print("{}\n", json::serialize(row));
    return 0;
  }
  for (const auto& [key, value] : row) {
    const std::string_view name(key.data(), key.size());
    const bool is_time = name.ends_with("_at");
    fmt::print("{:<20} {}\n", name, is_time ? day_of(value) : text_of(value));
  }
  return 0;
}

}  // namespace

int mint_token(const GatewayCall& to, const std::string& name, const TokenSettings& settings) {
  json::object body;
  body["name"] = name;
  add_fields(settings, body);
  return print_token(to, call(to, "POST", "/admin/tokens", json::serialize(body)));
}

int set_token(const GatewayCall& to, const std::string& name, const TokenSettings& settings) {
  json::object body;
  add_fields(settings, body);
  if (body.empty()) return complain(kExitUsage, "say what to change; see token set --help.");
  const Outcome outcome = call(to, "PATCH", path_of(name), json::serialize(body));
  if (outcome.exit_code != 0) return outcome.exit_code;
  return print_row(to, outcome.body);
}

int show_token(const GatewayCall& to, const std::string& name) {
  const Outcome outcome = call(to, "GET", "/admin/tokens", {});
  if (outcome.exit_code != 0) return outcome.exit_code;
  const json::array* const tokens = tokens_in(outcome);
  if (tokens == nullptr) return complain(kExitFailed, "the answer has no list in it.");
  for (const json::value& token : *tokens) {
    const json::object& row = token.as_object();
    if (text_of(row.at("name")) == name) return print_row(to, row);
  }
  return complain(kExitRefused, "There is no token of this name.");
}

int list_tokens(const GatewayCall& to) {
  const Outcome outcome = call(to, "GET", "/admin/tokens", {});
  if (outcome.exit_code != 0) return outcome.exit_code;
  if (to.as_json) {
    fmt::print("{}\n", outcome.text);
    return 0;
  }
  const json::array* const tokens = tokens_in(outcome);
  if (tokens == nullptr) return complain(kExitFailed, "the answer has no list in it.");
  constexpr auto kLine = "{:<24} {:<21} {:<21} {:<20} {:<16} {:<16} {:<13} {}\n";
  fmt::print(kLine, "NAME", "CREATED", "LAST USED", "FROM", "AGENTS", "MODELS", "MODE MAX", "MCP");
  for (const json::value& token : *tokens) {
    const json::object& row = token.as_object();
    fmt::print(kLine, field_of(row, "name"), day_of(row.at("created_at")),
               day_of(row.at("last_used_at")), field_of(row, "ip_cidrs"), field_of(row, "agents"),
               field_of(row, "models"), field_of(row, "permission_mode_max"), field_of(row, "mcp"));
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
