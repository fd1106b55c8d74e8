#include "process/tree/leftovers.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "base/descriptor.h"
#include "process/tree/proc_entry.h"

extern "C" {  // which this header of glibc 2.36 forgets
#include <sys/pidfd.h>
}

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kLook{10};
// What a launcher needs beside the grace that it gives.
constexpr std::chrono::seconds kLauncherLag{1};

// One process, whatever becomes of its number.
class Handle {
 public:
  explicit Handle(pid_t pid) : descriptor_(::pidfd_open(pid, 0)) {}

  bool is_open() const { return descriptor_.is_open(); }
  // Also while it is not reaped yet.
  bool has_ended() const {
    pollfd ended = {descriptor_.number(), POLLIN, 0};
    return ::poll(&ended, 1, 0) > 0;
  }
  // One that has ended meanwhile needs none.
  void signal(int number) const { ::pidfd_send_signal(descriptor_.number(), number, nullptr, 0); }

 private:
  Descriptor descriptor_;
};

// A launcher that is as it was written down, and what is known to descend from it.
class LeftTree {
 public:
  // None: it is gone, or a stranger has its number.
  static std::optional<LeftTree> find(const Leftover& leftover, const std::string& boot_id);

  std::int64_t pid() const { return pid_; }
  bool is_gone() const { return root_.has_ended() && below_.empty(); }
  // Descendants come to know, and those that have ended are forgotten. Says whether there
  // was a new one.
  bool look();
  void ask() const;
  // The launcher comes last: while it is there, what loses its parent comes to it.
  void kill(bool with_root) const;

 private:
  LeftTree(pid_t pid, Handle root) : pid_(pid), root_(std::move(root)) {}

  bool look_below(pid_t parent, const Handle& handle);

  pid_t pid_;
  Handle root_;
  std::map<pid_t, Handle> below_;
};

std::optional<LeftTree> LeftTree::find(const Leftover& leftover, const std::string& boot_id) {
  const auto [pid, start_time] = leftover.id;
  if (boot_id.empty() || leftover.boot_id != boot_id || start_time <= 0) return std::nullopt;
  if (pid <= 1 || pid > std::numeric_limits<pid_t>::max() || pid == ::getpid()) return std::nullopt;
  const auto number = static_cast<pid_t>(pid);
  Handle root(number);
  if (!root.is_open()) return std::nullopt;
  // Asked after the handle was opened: whom this start time belongs to is whom we hold, or
  // it had ended by then.
  const auto entry = proc_entry(number);
  if (!entry || entry->start_time != start_time || root.has_ended()) return std::nullopt;
  return LeftTree(number, std::move(root));
}

bool LeftTree::look() {
  bool has_found = look_below(pid_, root_);
  // What is found on the way may have children of its own; an insertion moves no other.
  for (auto entry = below_.begin(); entry != below_.end(); ++entry) {
    has_found = look_below(entry->first, entry->second) || has_found;
  }
  std::erase_if(below_, [](const auto& entry) { return entry.second.has_ended(); });
  return has_found;
}

bool LeftTree::look_below(pid_t parent, const Handle& handle) {
  bool has_found = false;
  for (const pid_t child : proc_children(parent)) {
    if (below_.contains(child) || below_.size() >= kLeftoverProcessesMax) continue;
    Handle held(child);
    if (!held.is_open() || held.has_ended()) continue;
    const auto entry = proc_entry(child);
    // While its parent lives, the parent's number and so its list of children are its own.
    if (!entry || entry->parent != parent || handle.has_ended()) continue;
    below_.emplace(child, std::move(held));
    has_found = true;
  }
  return has_found;
}

// A launcher ignores TERM. If it was stopped, it must be continued so that it can end its tree.
void LeftTree::ask() const {
  root_.signal(SIGTERM);
  root_.signal(SIGCONT);
}

void LeftTree::kill(bool with_root) const {
  for (const auto& [pid, handle] : below_) handle.signal(SIGKILL);
  if (with_root) root_.signal(SIGKILL);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<LeftTree> find_trees(const std::vector<Leftover>& leftovers) {
  std::vector<LeftTree> trees;
  const std::string boot_id = read_boot_id();
  for (const Leftover& leftover : leftovers) {
    auto tree = LeftTree::find(leftover, boot_id);
    if (!tree) continue;
    tree->look();
    tree->ask();
    trees.push_back(std::move(*tree));
  }
  return trees;
}

}  // namespace

Task<LeftoversReport> end_leftovers(IoExecutor executor, std::vector<Leftover> leftovers,
                                    std::chrono::milliseconds kill_grace,
                                    std::vector<std::string> busy) {
  const auto begin = steady_clock::now();
  const auto busy_end = begin + kLeftoversBusyMax;
  auto end = begin + kLeftoversEndMax;
  auto kill_at = std::min<steady_clock::time_point>(begin + kill_grace + kLauncherLag,
                                                    begin + kLeftoversEndMax / 2);
  auto trees = find_trees(leftovers);
  LeftoversReport report;
  Timer pause(executor);
  while (!trees.empty() && steady_clock::now() < end) {
    pause.expires_after(kLook);
    co_await pause.async_wait(kAwait);
    const auto now = steady_clock::now();
    if (now >= kill_at && now < busy_end && std::ranges::any_of(busy, exists)) {
      kill_at = std::min(now + kLauncherLag, busy_end);
      end = std::max(end, kill_at + kLeftoversEndMax / 2);
    }
    const bool is_patient = now < kill_at;
    for (LeftTree& tree : trees) {
      const bool has_found = tree.look();
      if (!is_patient) tree.kill(!has_found);
    }
    report.ended += static_cast<std::int64_t>(
        std::erase_if(trees, [](const LeftTree& tree) { return tree.is_gone(); }));
  }
  for (const LeftTree& tree : trees) report.stuck.push_back(tree.pid());
  co_return report;
}

}  // namespace clawdforge
