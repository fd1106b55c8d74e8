#include "model/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 4> kMcpNames = {"none", "named", "http", "any"};
constexpr std::array<std::string_view, 4> kJailNames = {"off", "auto", "files", "full"};
constexpr std::array<std::string_view, 3> kNetNames = {"open", "proxy", "none"};

std::unexpected<Failure> mcp_not_allowed(std::string sentence) {
  return fail(Errc::forbidden, "mcp_not_allowed", std::move(sentence));
}

std::unexpected<Failure> webhook_not_allowed(std::string sentence) {
  return fail(Errc::invalid, "webhook_not_allowed", std::move(sentence));
}

bool is_listed(const std::optional<std::vector<WebAddress>>& prefixes, const WebAddress& address) {
  return prefixes && std::ranges::any_of(*prefixes, [&](const WebAddress& prefix) {
           return is_within(address, prefix);
         });
}

}  // namespace

std::string_view name_of(McpAccess access) { return name_among(kMcpNames, access); }

std::optional<McpAccess> mcp_access_from(std::string_view name) {
  return value_among<McpAccess>(kMcpNames, name);
}

std::string_view name_of(JailMode mode) { return name_among(kJailNames, mode); }

std::optional<JailMode> jail_mode_from(std::string_view name) {
  return value_among<JailMode>(kJailNames, name);
}

std::string_view name_of(NetMode mode) { return name_among(kNetNames, mode); }

std::optional<NetMode> net_mode_from(std::string_view name) {
  return value_among<NetMode>(kNetNames, name);
}

bool is_net_target(std::string_view text) {
  constexpr std::size_t kNetTargetBytesMax = 259;  // a name of DNS, a colon, a port
  constexpr unsigned kPortMax = 65'535;
  const std::size_t colon = text.rfind(':');
  if (text.size() > kNetTargetBytesMax || colon == text.npos || colon == 0) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
  if (error != std::errc() || end != digits.end() || port == 0 || port > kPortMax) return false;
  const bool is_address = host.starts_with('[') && host.ends_with(']');
  if (is_address) host = host.substr(1, host.size() - 2);
  if (host.starts_with("*.")) host.remove_prefix(2);
  return !host.empty() && std::ranges::all_of(host, [&](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
           (is_address && c == ':');
  });
}

Policy effective_policy(const Policy& gateway, const Policy& agent, const Policy& token) {
  Policy policy = gateway;
  narrow(policy, token);
  const bool is_mcp_given = policy.mcp.has_value();
  narrow(policy, agent);
  if (!is_mcp_given) policy.mcp.reset();
  if (!token.webhook_urls) policy.webhook_urls.reset();
  return policy;
}

bool allows_agent(const Policy& policy, std::string_view agent) {
  return !policy.agents || std::ranges::find(*policy.agents, agent) != policy.agents->end();
}

Result<void> check_agent(const Policy& policy, std::string_view agent) {
  if (!policy.agents || allows_agent(policy, agent)) return {};
  return fail(Errc::forbidden, "agent_not_allowed",
              policy.agents->empty()
                  ? "This app may not use any agent."
                  : fmt::format("This app may not use this agent; it may use: {}.",
                                fmt::join(*policy.agents, ", ")));
}

bool matches_model(std::string_view model, std::string_view pattern) {
  if (pattern.ends_with('*')) return model.starts_with(pattern.substr(0, pattern.size() - 1));
  return model == pattern;
}

Result<void> check_model(const Policy& policy, std::string_view model) {
  if (!policy.models) return {};
  const auto is_allowed = [model](std::string_view pattern) {
    // Of a default whose name is not known only "*" can be said to match it.
    return model.empty() ? pattern == "*" : matches_model(model, pattern);
  };
  if (std::ranges::any_of(*policy.models, is_allowed)) return {};
  if (policy.models->empty()) {
    return fail(Errc::forbidden, "model_not_allowed",
                "This app may not use any model of this agent.");
  }
  return fail(Errc::forbidden, "model_not_allowed",
              fmt::format("This app may not use {}; name one in \"model\" that it may use: {}.",
                          model.empty() ? "the agent's default model" : "this model",
                          fmt::join(*policy.models, ", ")));
}

PermissionMode permission_mode_max(const Policy& policy) {
  return policy.permission_mode_max.value_or(PermissionMode::approve_all);
}

Result<PermissionMode> permitted_mode(const Policy& policy, std::optional<PermissionMode> asked,
                                      PermissionMode otherwise) {
  const PermissionMode limit = permission_mode_max(policy);
  if (!asked) return exceeds(otherwise, limit) ? limit : otherwise;
  if (!exceeds(*asked, limit)) return *asked;
  return fail(Errc::forbidden, "permission_mode_not_allowed",
              fmt::format("This app may not use the permission mode {}; it may use at most "
                          "{}.",
                          name_of(*asked), name_of(limit)));
}

McpAccess mcp_access(const Policy& policy) { return policy.mcp.value_or(McpAccess::none); }

Result<void> check_mcp_named(const Policy& policy) {
  if (mcp_access(policy) >= McpAccess::named) return {};
  return mcp_not_allowed("This app may not use MCP servers.");
}

Result<void> check_mcp_url(const Policy& policy, std::string_view url) {
  if (mcp_access(policy) == McpAccess::any) return {};
  if (mcp_access(policy) < McpAccess::http) {
    return mcp_not_allowed("This app may not bring the address of an MCP server.");
  }
  const auto address = WebAddress::parse(url);
  if (!address) {
    return mcp_not_allowed(
        fmt::format("The address of an MCP server is not one that can be checked: {}.",
                    address.error().message));
  }
  if (is_listed(policy.mcp_urls, *address)) return {};
  return mcp_not_allowed("This app may not use an MCP server at this address.");
}

Result<void> check_mcp_command(const Policy& policy) {
  if (mcp_access(policy) == McpAccess::any) return {};
  return mcp_not_allowed(
      "This app may not bring the command line of an MCP server; the owner has to allow it with "
      "mcp \"any\".");
}

bool allows_workspace(const Policy& policy, std::string_view name) {
  return policy.workspaces &&
         std::ranges::any_of(*policy.workspaces, [name](std::string_view allowed) {
           return allowed == name || allowed == "*";
         });
}

Result<void> check_workspace(const Policy& policy, std::string_view name) {
  if (allows_workspace(policy, name)) return {};
  return fail(
      Errc::forbidden, "workspace_not_allowed",
      "This app may not use this workspace; clawdforge workspace list shows those that it may "
      "use.");
}

Result<void> check_webhook(const Policy& policy, std::string_view url) {
  if (!policy.webhook_urls) {
    return webhook_not_allowed(
        "This app may not use webhooks; the owner has to name where it may be called in "
        "webhook_urls of its token.");
  }
  const auto address = WebAddress::parse(url);
  if (!address) {
    return webhook_not_allowed(
        fmt::format("The webhook's address cannot be used: {}.", address.error().message));
  }
  if (is_listed(policy.webhook_urls, *address)) return {};
  return webhook_not_allowed(
      "The webhook is not within webhook_urls of this app's token; whoami shows them.");
}

}  // namespace clawdforge
