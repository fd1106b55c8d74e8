// A policy says what an app may ask for. The gateway's configuration, an agent's table and an
// app's token each have one; the strictest of them wins. Plain records and pure functions.
//
// A new field is a member here, and a row of the table in model/policy_fields.cc: reading,
// showing, storing and combining go by that table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/agent.h"
#include "model/web_address.h"

namespace clawdforge {

// Which MCP servers, from none at all to whatever the app likes. Each allows what the one before
// it does. `any` includes command lines, so it lets the app run commands as the gateway's user.
enum class McpAccess { none, named, http, any };

std::string_view name_of(McpAccess access);
std::optional<McpAccess> mcp_access_from(std::string_view name);

// How an agent is kept from what is not its own. From the loosest to the strictest. automatic: as
// well as the system allows; files: by a root of its own, or it is not started; full: also with a
// network behind the gateway's proxy, limits that bind and fewer system calls.
enum class JailMode { off, automatic, files, full };

std::string_view name_of(JailMode mode);
std::optional<JailMode> jail_mode_from(std::string_view name);

// Which network an agent has, from the loosest to the strictest. open: the machine's; proxy: only
// what net_allow names, through the gateway; none: its own loopback alone.
enum class NetMode { open, proxy, none };

std::string_view name_of(NetMode mode);
std::optional<NetMode> net_mode_from(std::string_view name);

// "api.example.org:443"; "*.example.org:443" are all names below it.
bool is_net_target(std::string_view text);

// One policy. A field that is not set says nothing: another policy may.
struct Policy {
  std::optional<std::vector<std::string>> agents;
  std::optional<std::vector<std::string>> models;  // a name may end in '*'
  std::optional<PermissionMode> permission_mode_max;
  std::optional<McpAccess> mcp;
  std::optional<std::vector<WebAddress>> mcp_urls;      // prefixes, for McpAccess::http
  std::optional<std::vector<WebAddress>> webhook_urls;  // prefixes
  std::optional<std::vector<std::string>> workspaces;   // names, or "*" for all
  std::optional<JailMode> jail;
  // What the agent sees beside its own; ~ is the home of the gateway's user.
  std::optional<std::vector<std::string>> jail_read;
  std::optional<std::vector<std::string>> jail_write;
  // Of one tree of an agent's.
  std::optional<std::int64_t> memory_max;  // bytes
  std::optional<std::int64_t> pids_max;
  std::optional<std::int64_t> cpu_max_percent;  // of one processor; 200: of two
  std::optional<NetMode> net;
  std::optional<std::vector<std::string>> net_allow;  // HOST:PORT, for NetMode::proxy

  bool operator==(const Policy&) const = default;
};

// The strictest of the three, and never looser than any of them. What a field means that none of
// them sets: agents and models: all; permission_mode_max: approve_all; mcp: none; mcp_urls: none;
// webhook_urls and workspaces: none; jail: automatic. What jail_read, jail_write and
// net_allow name is put together: only the owner names it, in all three places. Of limits the
// smallest counts; net: open. An agent's policy only narrows: it cannot
// give MCP servers that neither the token nor the gateway gives. Webhooks are given by the token
// alone, because its app gets the secret that signs them.
Policy effective_policy(const Policy& gateway, const Policy& agent, const Policy& token);

// What an effective policy says to one thing that is asked for.

bool allows_agent(const Policy& policy, std::string_view agent);
// Errc::forbidden "agent_not_allowed".
Result<void> check_agent(const Policy& policy, std::string_view agent);

// Errc::forbidden "model_not_allowed". An empty name is the agent's own default, which is not
// known here: it is allowed only where every model is.
Result<void> check_model(const Policy& policy, std::string_view model);

PermissionMode permission_mode_max(const Policy& policy);
// The mode that work is done in. What the caller asks for by itself is refused over the limit,
// Errc::forbidden "permission_mode_not_allowed"; `otherwise`, which it did not choose, is lowered.
Result<PermissionMode> permitted_mode(const Policy& policy, std::optional<PermissionMode> asked,
                                      PermissionMode otherwise);

McpAccess mcp_access(const Policy& policy);
// An MCP server at this address. Errc::forbidden "mcp_not_allowed", as the next ones.
Result<void> check_mcp_url(const Policy& policy, std::string_view url);
// An MCP server that is a command line of the caller's.
Result<void> check_mcp_command(const Policy& policy);
// An MCP server of the owner's, by its name.
Result<void> check_mcp_named(const Policy& policy);

// A directory of the owner's, by its name.
bool allows_workspace(const Policy& policy, std::string_view name);
// Errc::forbidden "workspace_not_allowed", whether there is one of this name or not.
Result<void> check_workspace(const Policy& policy, std::string_view name);

// Where the gateway may be asked to call. Errc::invalid "webhook_not_allowed".
Result<void> check_webhook(const Policy& policy, std::string_view url);

// Whether the name of a model is the pattern, or begins with what stands before its '*'.
bool matches_model(std::string_view model, std::string_view pattern);

}  // namespace clawdforge
