#include "agent/memory/agent_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace clawdforge {
namespace {

constexpr std::string_view kOtherApps = "other";

}  // namespace

AgentMemory::AgentMemory(Dependencies deps, std::uint64_t bytes_max)
    : deps_(std::move(deps)), bytes_max_(bytes_max) {}

// Those that have ended are forgotten on the way.
template <class Visit>
void AgentMemory::each(Visit visit) const {
  std::erase_if(trees_, [&](const std::weak_ptr<TrackedTree>& known) {
    const auto tree = known.lock();
    if (tree) visit(*tree);
    return tree == nullptr;
  });
}

std::shared_ptr<TrackedTree> AgentMemory::track(TrackedTree tree) {
  tree.bytes = expected(tree.agent);
  const std::shared_ptr<TrackedTree> tracked(new TrackedTree(std::move(tree)),
                                             [this](const TrackedTree* ended) {
                                               delete ended;
                                               if (told_ && !is_stopped_) told_();
                                             });
  trees_.push_back(tracked);
  is_started_ = true;
  woken_.notify_all();
  if (told_ && is_full()) told_();
  return tracked;
}

Task<void> AgentMemory::run() {
  while (!is_stopped_) {
    co_await woken_.wait_for(trees_.empty() ? std::chrono::hours(24) : kMemoryLookInterval);
    // Trees that are started together are measured together.
    if (std::exchange(is_started_, false) && !is_stopped_) {
      const auto at = Timer::clock_type::now() + kMemoryLookAfterStart;
      while (!is_stopped_ && Timer::clock_type::now() < at) co_await woken_.wait_until(at);
    }
    if (!is_stopped_) co_await measure();
  }
}

Task<void> AgentMemory::measure() {
  std::vector<ProcessId> roots;
  std::vector<std::weak_ptr<TrackedTree>> of;
  for (const std::weak_ptr<TrackedTree>& known : trees_) {
    if (const auto tree = known.lock()) {
      roots.push_back(tree->process);
      of.push_back(tree);
    }
  }
  const auto measured = co_await deps_.compute.call(
      Lane(),
      [roots = std::move(roots), look = deps_.measure]() -> Result<std::vector<std::uint64_t>> {
        std::vector<std::uint64_t> bytes;
        bytes.reserve(roots.size());
        for (const ProcessId root : roots) bytes.push_back(look(root));
        return bytes;
      });
  if (measured) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      const auto tree = of[i].lock();
      if (!tree) continue;
      tree->bytes = (*measured)[i];
      // A mean that follows what agents take now.
      std::uint64_t& mean = expected_[tree->agent];
      mean = mean == 0 ? tree->bytes : (7 * mean + tree->bytes) / 8;
    }
  }
  if (told_ && !is_stopped_) told_();
}

void AgentMemory::stop() {
  is_stopped_ = true;
  woken_.notify_all();
}

std::uint64_t AgentMemory::bytes() const {
  std::uint64_t sum = 0;
  each([&](const TrackedTree& tree) { sum += tree.bytes; });
  return sum;
}

std::uint64_t AgentMemory::excess() const {
  const std::uint64_t taken = bytes();
  return taken > bytes_max_ ? taken - bytes_max_ : 0;
}

std::uint64_t AgentMemory::expected(std::string_view agent) const {
  const auto found = expected_.find(agent);
  return found == expected_.end() ? 0 : found->second;
}

std::uint64_t AgentMemory::bytes_of_agent(std::string_view agent) const {
  std::uint64_t sum = 0;
  each([&](const TrackedTree& tree) { sum += tree.agent == agent ? tree.bytes : 0; });
  return sum;
}

std::uint64_t AgentMemory::bytes_of_dir(std::string_view own_dir) const {
  std::uint64_t sum = 0;
  each([&](const TrackedTree& tree) { sum += tree.own_dir == own_dir ? tree.bytes : 0; });
  return sum;
}

void AgentMemory::show() {
  std::map<std::string, std::uint64_t> by_agent;
  std::map<std::string, std::uint64_t> by_app;
  for (const auto& [agent, bytes] : expected_) by_agent[agent];
  for (const std::string& app : shown_apps_) by_app[app];
  each([&](const TrackedTree& tree) {
    by_agent[tree.agent] += tree.bytes;
    const bool is_shown =
        shown_apps_.contains(tree.app.str()) ||
        (shown_apps_.size() < kMemoryAppLabelsMax && shown_apps_.insert(tree.app.str()).second);
    by_app[is_shown ? tree.app.str() : std::string(kOtherApps)] += tree.bytes;
  });
  for (const auto& [agent, bytes] : by_agent) {
    deps_.metrics
        .gauge("clawdforge_agent_memory_bytes", "Memory of agents' processes, by agent.",
               {{"agent", agent}})
        .set(static_cast<std::int64_t>(bytes));
  }
  for (const auto& [app, bytes] : by_app) {
    deps_.metrics
        .gauge("clawdforge_app_memory_bytes", "Memory of agents' processes, by app.",
               {{"app", app}})
        .set(static_cast<std::int64_t>(bytes));
  }
  deps_.metrics
      .gauge("clawdforge_agent_memory_max_bytes", "What all agents' processes may take together.")
      .set(static_cast<std::int64_t>(bytes_max_));
}

}  // namespace clawdforge
