#include "process/tree/orphans.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "process/tree/proc_entry.h"

namespace clawdforge {

namespace {

// True also for one that is none of our children, which cannot be.
bool is_reaped(pid_t pid) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG) != 0 || end.si_pid == pid;
}

}  // namespace

Result<Orphans> Orphans::adopt() {
  const auto refused = [](const char* step) {
    return fail(Errc::unavailable, "no_subreaper",
                fmt::format("The gateway cannot look after its agents' processes ({}: {}).", step,
                            std::strerror(errno)));
  };
  // Orphans go to the first thread of a process, which lives as long as ours does.
  const std::string path = fmt::format("/proc/self/task/{}/children", ::getpid());
  Descriptor children(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!children.is_open()) return refused("children");
  Orphans orphans(std::move(children));
  for (const pid_t child : orphans.list()) orphans.strangers_.insert(child);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return refused("subreaper");
  return orphans;
}

void Orphans::suspect(std::int64_t since) { since_ = std::min(since, since_.value_or(since)); }

Orphans::Look Orphans::look(const std::set<pid_t>& launchers) {
  Look found;
  if (!since_) return found;
  for (const pid_t child : list()) {
    if (launchers.contains(child) || strangers_.contains(child)) continue;
    const auto entry = proc_entry(child);
    if (entry && entry->start_time < *since_) continue;
    if (!entry) {
      ++found.left;  // it is there, as only we reap it, but there is no descriptor left to look
    } else if (is_reaped(child)) {
      ++found.ended;
    } else {
      ::kill(child, SIGKILL);
      ++found.left;
    }
  }
  if (found.is_over()) since_.reset();
  return found;
}

// Children leave the list only when we reap them, so none is passed over.
std::vector<pid_t> Orphans::list() const {
  std::vector<pid_t> all;
  if (::lseek(children_.number(), 0, SEEK_SET) != 0) return all;
  std::array<char, 4096> text{};
  pid_t child = 0;
  for (ssize_t size = 0; (size = ::read(children_.number(), text.data(), text.size())) > 0;) {
    for (const char character : std::string_view(text.data(), static_cast<std::size_t>(size))) {
      if (character >= '0' && character <= '9') {
        child = child * 10 + (character - '0');
      } else if (child > 0) {
        all.push_back(std::exchange(child, 0));
      }
    }
  }
  return all;
}

}  // namespace clawdforge
