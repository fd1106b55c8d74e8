#include "quota/policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

namespace clawdforge {
namespace json = boost::json;
namespace {

std::unexpected<Failure> refuse_mcp(std::string sentence) {
  return fail(Errc::forbidden, "mcp_not_allowed", std::move(sentence));
}

// Only an address, and nothing in which some agent could see a command.
bool is_only_address(const json::object& server) {
  constexpr std::string_view kMembers[] = {"name", "type", "url", "headers"};
  const json::value* const url = server.if_contains("url");
  return url != nullptr && url->is_string() && std::ranges::all_of(server, [&](const auto& member) {
           return std::ranges::find(kMembers, std::string_view(member.key())) != std::end(kMembers);
         });
}

Result<void> check_own(const Policy& policy, const json::object& server) {
  if (!is_only_address(server)) return check_mcp_command(policy);
  return check_mcp_url(policy, std::string_view(server.at("url").get_string()));
}

json::array pairs_of(const std::map<std::string, std::string>& pairs) {
  json::array list;
  for (const auto& [name, value] : pairs) list.push_back({{"name", name}, {"value", value}});
  return list;
}

json::value as_protocol_has_it(const std::string& name, const McpServer& server) {
  if (server.command.empty()) {
    return {{"type", server.type},
            {"name", name},
            {"url", server.url},
            {"headers", pairs_of(server.headers)}};
  }
  return {{"name", name},
          {"command", server.command},
          {"args", json::array(server.args.begin(), server.args.end())},
          {"env", pairs_of(server.env)}};
}

// None: the row was written by another program, and is not a list.
std::optional<json::array> list_in(std::string_view servers) {
  json::error_code error;
  json::value parsed = json::parse({servers.data(), servers.size()}, error);
  if (error || !parsed.is_array()) return std::nullopt;
  return std::move(parsed.get_array());
}

// Also its words, such as the token that follows "Bearer".
void add_secret(std::vector<std::string>& secrets, std::string_view value) {
  constexpr std::size_t kSecretBytesMin = 8;  // a shorter value would mask ordinary words
  const auto add = [&](std::string_view text) {
    if (text.size() >= kSecretBytesMin) secrets.emplace_back(text);
  };
  add(value);
  for (std::size_t blank = value.find(' '); blank != value.npos; blank = value.find(' ')) {
    add(value.substr(0, blank));
    value.remove_prefix(blank + 1);
    if (!value.contains(' ')) add(value);
  }
}

// A list of {"name":…,"value":…}, as a caller may have written it.
void add_values(std::vector<std::string>& secrets, const json::value* pairs) {
  if (pairs == nullptr || !pairs->is_array()) return;
  for (const json::value& pair : pairs->get_array()) {
    const json::value* const value =
        pair.is_object() ? pair.get_object().if_contains("value") : nullptr;
    if (value != nullptr && value->is_string()) add_secret(secrets, value->get_string());
  }
}

}  // namespace

Policies::Policies(Policy gateway, ByAgent by_agent, McpServers mcp_servers)
    : gateway_(std::move(gateway)),
      by_agent_(std::move(by_agent)),
      mcp_servers_(std::move(mcp_servers)) {}

Policy Policies::of(const App& app, std::string_view agent) const {
  const auto found = by_agent_.find(agent);
  return effective_policy(gateway_, found == by_agent_.end() ? Policy{} : found->second,
                          app.policy);
}

Policy Policies::of(const App& app) const { return effective_policy(gateway_, {}, app.policy); }

Result<void> Policies::check(const App& app, std::string_view agent, std::string_view model) const {
  const Policy policy = of(app, agent);
  if (auto allowed = check_agent(policy, agent); !allowed) return allowed;
  return check_model(policy, model);
}

Result<void> Policies::check_mcp_servers(const Policy& policy, std::string_view servers) const {
  if (servers.empty()) return {};
  const auto list = list_in(servers);
  if (!list) return refuse_mcp("The session's MCP servers are not a list.");
  for (const json::value& server : *list) {
    const json::string* const name = server.if_string();
    auto allowed = name != nullptr      ? check_mcp_named(policy)
                   : server.is_object() ? check_own(policy, server.get_object())
                                        : check_mcp_command(policy);
    if (!allowed) return allowed;
    if (name != nullptr && !mcp_servers_.contains(std::string(*name))) {
      return refuse_mcp(mcp_servers_.empty()
                            ? "The gateway's owner has not set up any MCP server."
                            : fmt::format("There is no MCP server of this name; there are: {}.",
                                          fmt::join(mcp_server_names(), ", ")));
    }
  }
  return {};
}

std::string Policies::resolved(std::string_view servers) const {
  if (!servers.contains('"')) return std::string(servers);  // an empty list
  auto list = list_in(servers);
  if (!list) return std::string(servers);
  for (json::value& server : *list) {
    if (!server.is_string()) continue;
    const auto found = mcp_servers_.find(std::string(server.get_string()));
    if (found != mcp_servers_.end()) server = as_protocol_has_it(found->first, found->second);
  }
  return json::serialize(*list);
}

std::vector<std::string> Policies::mcp_secrets(std::string_view servers) const {
  std::vector<std::string> secrets;
  const auto list = list_in(resolved(servers));
  if (!list) return secrets;
  for (const json::value& server : *list) {
    if (!server.is_object()) continue;
    for (const std::string_view member : {"env", "headers"}) {
      add_values(secrets, server.get_object().if_contains(member));
    }
  }
  return secrets;
}

std::vector<std::string> Policies::mcp_server_names() const {
  std::vector<std::string> names;
  for (const auto& [name, server] : mcp_servers_) names.push_back(name);
  return names;
}

}  // namespace clawdforge
