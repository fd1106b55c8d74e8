#include "daemon/policy_setup.h"

#include <utility>

#include "model/policy_fields.h"

namespace clawdforge {
namespace {

using Variables = std::map<std::string, std::string>;

McpServer server_of(const McpServerTable& table, const Variables& environment) {
  McpServer server;
  if (!table.command.empty()) {
    server.command = table.command.front();
    server.args.assign(table.command.begin() + 1, table.command.end());
  }
  server.url = table.url;
  server.type = table.type;
  server.env = table.set_env;
  server.headers = table.headers;
  for (const std::string& name : table.env) {
    const auto found = environment.find(name);
    if (found != environment.end()) server.env.insert_or_assign(name, found->second);
  }
  for (const auto& [header, name] : table.headers_env) {
    const auto found = environment.find(name);
    if (found != environment.end()) server.headers.insert_or_assign(header, found->second);
  }
  return server;
}

}  // namespace

Policies policies_of(const Config& config, const Variables& environment) {
  Policies::ByAgent by_agent;
  for (const auto& [name, table] : config.agents) {
    if (table.policy != Policy{}) by_agent.emplace(name, table.policy);
  }
  McpServers servers;
  for (const auto& [name, table] : config.mcp_servers) {
    servers.emplace(name, server_of(table, environment));
  }
  Policy gateway = config.defaults;
  gateway.jail = config.jail;
  if (!config.jail_read.empty()) gateway.jail_read = config.jail_read;
  if (!config.jail_write.empty()) gateway.jail_write = config.jail_write;
  narrow(gateway, config.bounds);
  return Policies(std::move(gateway), std::move(by_agent), std::move(servers));
}

std::function<Policy(const AppName& app, std::string_view agent)> policy_finder(
    const Apps& apps, const Policies& policies) {
  return [&apps, &policies](const AppName& app, std::string_view agent) {
    const auto found = apps.named(app);
    return policies.of(found ? *found : App{}, agent);
  };
}

Budgets::Options budget_options(const Config& config) {
  return {.of_gateway = config.budgets,
          .estimate_min = {.nano_usd = config.estimate_microusd_min * 1'000,
                           .tokens = config.estimate_tokens_min,
                           .asks = 1,
                           .agent_ms = config.estimate_agent_seconds_min * 1'000}};
}

Webhooks::Options webhook_options(const Config& config) {
  using std::chrono::seconds;
  std::vector<seconds> pauses = {seconds(5), seconds(30), seconds(120), seconds(600),
                                 seconds(3'600)};
  for (seconds& pause : pauses) pause = std::min(pause, config.webhook_pause_max);
  return {.retries = {.pauses = std::move(pauses), .give_up_after = config.webhook_give_up},
          .time_max = config.webhook_timeout,
          .kept_for = config.delivery_ttl};
}

}  // namespace clawdforge
