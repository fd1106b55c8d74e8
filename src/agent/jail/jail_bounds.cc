#include "agent/jail/jail_bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "process/launch/tree_bounds.h"

namespace clawdforge {
namespace {

std::optional<std::uint64_t> limit_of(const std::optional<std::int64_t>& named) {
  if (!named) return std::nullopt;
  return static_cast<std::uint64_t>(*named);
}

bool is_full(const Policy& policy) { return policy.jail == JailMode::full; }

TreeNet net_of(NetMode mode) {
  switch (mode) {
    case NetMode::open:
      return TreeNet::open;
    case NetMode::proxy:
      return TreeNet::proxy;
    case NetMode::none:
      return TreeNet::none;
  }
  return TreeNet::none;
}

}  // namespace

TreeLimits tree_limits(const Policy& policy) {
  TreeLimits limits{.memory_max = limit_of(policy.memory_max),
                    .pids_max = limit_of(policy.pids_max),
                    .cpu_max_percent = limit_of(policy.cpu_max_percent)};
  if (is_full(policy) && !limits.memory_max) limits.memory_max = kFullMemoryBytes;
  if (is_full(policy) && !limits.pids_max) limits.pids_max = kFullPids;
  return limits;
}

NetMode net_mode(const Policy& policy) {
  const NetMode mode = policy.net.value_or(NetMode::open);
  return is_full(policy) ? std::max(mode, NetMode::proxy) : mode;
}

std::vector<std::string> net_targets(const Policy& policy) {
  return policy.net_allow.value_or(std::vector<std::string>{"api.anthropic.com:443"});
}

void add_bounds(const Policy& policy, JailPlan& plan) {
  plan.net = net_of(net_mode(policy));
  plan.has_call_filter = is_full(policy);
  plan.file_bytes_max = kJailFileBytesMax;
}

void add_proxy_variables(std::map<std::string, std::string>& environment) {
  const std::string proxy = fmt::format("http://127.0.0.1:{}", kProxyPort);
  for (const char* name :
       {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}) {
    environment.insert_or_assign(name, proxy);
  }
  // What the tree itself listens on.
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    environment.insert_or_assign(name, "localhost,127.0.0.1,::1");
  }
  environment.insert_or_assign("NODE_USE_ENV_PROXY", "1");
}

}  // namespace clawdforge
