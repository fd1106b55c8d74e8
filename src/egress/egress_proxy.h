// EgressProxy is the way out for agents whose network is `proxy`: a proxy for HTTP's CONNECT that
// lets them reach what Policy::net_allow names, and nothing else. Each of their trees has a network
// of its own, and in it a listener that the launcher has handed to us; names are looked up here, so
// that there are none inside. What goes through a tunnel is not looked at. Owned by the daemon; io
// thread only. Its owner calls stop().
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/task_group.h"
#include "base/descriptor.h"
#include "base/strong_id.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "hooks/name_lookups.h"

namespace clawdforge {

inline constexpr std::size_t kTunnelsMaxPerTree = 64;  // more are closed at once
inline constexpr std::size_t kTunnelsMax = 1'024;      // of all trees; likewise
inline constexpr std::size_t kTunnelHeadBytesMax = 8 * 1024;
inline constexpr std::size_t kRefusalsToldMax = 20;  // of one tree; each target once
// For the head, the look-up and the connection together.
inline constexpr std::chrono::seconds kTunnelOpenMax{20};
inline constexpr std::chrono::minutes kTunnelIdleMax{60};  // in neither direction a byte

// Whose tree it is, and what it may reach.
struct EgressRules {
  AppName app;
  std::string agent;
  std::vector<std::string> allowed;
};

class EgressProxy {
 public:
  // Is told of each target that an agent was refused.
  using OnRefused = std::function<void(const EgressRules& rules, const std::string& target)>;

  EgressProxy(IoExecutor executor, Metrics& metrics, Log& log, OnRefused on_refused);
  ~EgressProxy();
  EgressProxy(const EgressProxy&) = delete;
  EgressProxy& operator=(const EgressProxy&) = delete;

  // Until the tree ends: then `outlet`, of Child::take_outlet(), does.
  void serve(Descriptor outlet, EgressRules rules);

  // Ends all tunnels.
  Task<void> stop();

 private:
  struct Tree;
  struct Tunnel;

  Task<void> serve_tree(std::shared_ptr<Tree> tree);
  Task<void> accept(std::shared_ptr<Tree> tree);
  Task<void> open(std::shared_ptr<Tree> tree, std::shared_ptr<Tunnel> tunnel);
  Task<std::string> connect(std::shared_ptr<Tree> tree, std::shared_ptr<Tunnel> tunnel);
  Task<void> carry(std::shared_ptr<Tunnel> tunnel, bool is_outward);
  Task<void> watch_idle(std::shared_ptr<Tunnel> tunnel);
  void note_refused(Tree& tree, const std::string& target);

  const IoExecutor executor_;
  Log& log_;
  const OnRefused on_refused_;
  Gauge& tunnels_;
  Counter& refused_;
  NameLookups names_;
  std::size_t tunnel_count_ = 0;
  TaskGroup tasks_;
};

}  // namespace clawdforge
