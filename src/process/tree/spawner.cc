#include "process/tree/spawner.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "process/bounds/cgroups.h"
#include "process/launch/launch.h"
#include "process/launch/launcher_file.h"
#include "process/tree/child_parts.h"
#include "process/tree/orphans.h"
#include "process/tree/proc_entry.h"
#include "process/tree/report.h"

namespace clawdforge {

namespace {

using Parts = Child::Parts;

// What is written to standard error while its last bytes are read is not waited for.
constexpr int kLastDrains = 4;

// Between two looks for what a killed launcher has left, each of which reaches one generation
// further.
constexpr std::chrono::milliseconds kOrphansLook(10);

// How long a launcher may take that has nothing to do.
constexpr std::chrono::milliseconds kTrialMax(10'000);

// Between two looks whether a tree is still busy.
constexpr std::chrono::milliseconds kBusyLook(100);

bool is_there(const BusyPath& busy) {
  return !busy.path.empty() && ::access(busy.path.c_str(), F_OK) == 0;
}

bool becomes_readable(const Descriptor& descriptor) {
  pollfd awaited = {descriptor.number(), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + kTrialMax;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int ready = ::poll(&awaited, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Starts a launcher without a program and blocks until it is gone. The text says why it
// did not work.
std::expected<void, std::string> try_launcher(const LaunchOptions& options,
                                              std::optional<JailPlan> jail = {}) {
  ChildPlan nothing;
  nothing.working_dir = "/";
  nothing.jail = std::move(jail);
  auto launched = launch(options, nothing);
  if (!launched) return std::unexpected(launched.error().detail);
  std::array<char, kReportBytesMax> text{};
  ssize_t size = -1;
  if (becomes_readable(launched->report)) {
    size = ::read(launched->report.number(), text.data(), text.size());
  }
  launched->lifeline.close();
  const bool has_ended = size >= 0 && becomes_readable(launched->pidfd);
  abandon(std::move(*launched));  // which reaps it, too
  if (!has_ended) return std::unexpected("it does not answer");

  std::string_view line(text.data(), static_cast<std::size_t>(size));
  const auto report = parse_report(line.substr(0, line.find('\n')));
  if (!report) return std::unexpected("it ended without a report");
  const auto* not_started = std::get_if<NotStarted>(&report->status);
  if (not_started == nullptr) return {};
  return std::unexpected(fmt::format("{}: {}", report->step, std::strerror(not_started->error)));
}

// As much of a jail as shows whether the kernel allows one.
JailPlan trial_jail() {
  using Kind = JailPlace::Kind;
  return {{{Kind::temporary, "/tmp"}, {Kind::read, "/usr"}}};
}

// What the owner can do about it.
std::string with_remedy(const std::string& reason) {
  const auto says = [&](std::string_view text) { return reason.starts_with(text); };
  std::string_view remedy;
  if (says("unshare: No space")) {
    remedy = "the kernel allows no user namespaces: sysctl user.max_user_namespaces";
  } else if (says("unshare")) {
    remedy = "this container or kernel refuses user namespaces";
  } else if (says("mount-proc")) {
    remedy =
        "parts of /proc are covered: remove ProtectKernelTunables and ProtectControlGroups from "
        "the service";
  } else if (says("mount-private") || says("place") || says("tmpfs")) {
    remedy = "AppArmor may take the rights away: allow userns for clawdforge";
  }
  return remedy.empty() ? reason : fmt::format("{} ({})", remedy, reason);
}

// Root is another user in its jail: sandboxes of agents do not nest otherwise.
constexpr std::uint32_t kInsideIdOfRoot = 1000;

std::optional<std::uint32_t> inside_id() {
  if (::geteuid() != 0) return std::nullopt;
  return kInsideIdOfRoot;
}

}  // namespace

// A process may have more than the tree's memory, because what it asks for is not what it uses. It
// is only a belt for the time between two looks of the launcher.
constexpr std::uint64_t kDataOverMemoryBytes = 2ULL << 30;

// To remove the control groups of a tree that is gone.
constexpr int kGroupTriesMax = 100;

// Of the launcher itself, in the tree's user namespace.
constexpr std::uint64_t kLauncherProcesses = 2;

// What the launcher counts, and the kernel for one user, where there are no control groups.
TreeBounds counted_bounds(const TreeLimits& limits) {
  TreeBounds bounds;
  if (limits.memory_max) {
    const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    bounds.pages_max = *limits.memory_max / page_bytes;
    bounds.data_bytes_max = *limits.memory_max + kDataOverMemoryBytes;
  }
  // The kernel does not count the processes of root.
  if (limits.pids_max && ::geteuid() == 0) bounds.count_max = *limits.pids_max;
  if (limits.pids_max && ::geteuid() != 0) {
    bounds.processes_max = *limits.pids_max + kLauncherProcesses;
  }
  return bounds;
}

class Spawner::Works {
 public:
  Works(IoExecutor executor, Options options, Log& log, Descriptor launcher_file)
      : executor_(executor),
        tail_bytes_max_(options.tail_bytes_max),
        log_(log),
        launcher_file_(std::move(launcher_file)),
        launch_options_{.launcher_file = launcher_file_.number(),
                        .in_namespace = false,
                        .hidden = {},
                        .jail = JailMeans::none,
                        .inside_id = inside_id(),
                        .kill_grace = options.kill_grace,
                        .descriptors_soft = options.descriptors_soft},
        group_(executor) {}

  void adopt(Orphans orphans) { orphans_ = std::make_unique<Orphans>(std::move(orphans)); }
  Result<void> try_out(PidNamespace wanted);
  void try_hiding(HiddenDir hidden);
  void try_jails(JailMeans most);
  void find_cgroups();
  void on_over_limit(std::function<void(const std::string&, OverLimit)> told) {
    on_over_limit_ = std::move(told);
  }
  void on_failed_step(std::function<void(std::string_view)> told) {
    on_failed_step_ = std::move(told);
  }
  Result<std::unique_ptr<Child>> spawn(const ChildPlan& plan);
  Task<void> stop();

  bool uses_namespaces() const { return launch_options_.in_namespace; }
  JailMeans jail_means() const { return launch_options_.jail; }
  const std::string& jail_obstacle() const { return jail_obstacle_; }
  LimitMeans limit_means() const;
  bool limits_processor() const { return cgroups_.has_processor(); }
  const std::string& limit_obstacle() const { return cgroups_.obstacle(); }
  std::size_t alive() const { return trees_.size(); }

 private:
  std::expected<void, std::string> try_once(std::optional<JailPlan> jail = {});
  Result<TreeBounds> bounds_of(const ChildPlan& plan);
  Task<void> watch(std::shared_ptr<Parts> parts);
  Task<void> remove_groups(std::shared_ptr<Parts> parts);
  Task<void> read_report(std::shared_ptr<Parts> parts);
  Task<void> drain(std::shared_ptr<Parts> parts);
  Task<void> insist(std::shared_ptr<Parts> parts);
  void suspect(std::int64_t begun_at);
  Task<void> end_orphans();
  std::set<pid_t> launchers() const;
  void note_report(Parts& parts, std::string_view line);

  const IoExecutor executor_;
  const std::size_t tail_bytes_max_;
  Log& log_;
  const Descriptor launcher_file_;
  LaunchOptions launch_options_;
  std::string jail_obstacle_;
  Cgroups cgroups_;
  std::function<void(const std::string&, OverLimit)> on_over_limit_;
  std::function<void(std::string_view)> on_failed_step_;
  std::set<std::shared_ptr<Parts>> trees_;
  std::unique_ptr<Orphans> orphans_;  // none: they are not adopted
  bool is_stopping_ = false;
  TaskGroup group_;
};

std::expected<void, std::string> Spawner::Works::try_once(std::optional<JailPlan> jail) {
  const std::int64_t begun_at = ticks_since_boot();
  auto tried = try_launcher(launch_options_, std::move(jail));
  // One that does not answer was killed. What it has left is looked for with the first tree's end.
  if (!tried && orphans_) orphans_->suspect(begun_at);
  return tried;
}

Result<void> Spawner::Works::try_out(PidNamespace wanted) {
  if (wanted != PidNamespace::off) {
    launch_options_.in_namespace = true;
    const auto tried = try_once();
    if (tried) {
      log_.info("each agent gets a PID namespace of its own");
      return {};
    }
    if (wanted == PidNamespace::on) {
      return fail(
          Errc::unavailable, "no_pid_namespace",
          fmt::format("The system allows no PID namespace for the agents ({}); pid_namespace = "
                      "\"auto\" does without.",
                      tried.error()));
    }
    log_.info("agents run without PID namespaces", {{"reason", tried.error()}});
    launch_options_.in_namespace = false;
  }
  const auto tried = try_once();
  if (tried) return {};
  return fail(Errc::unavailable, "no_launcher",
              fmt::format("The launcher of the agents does not run ({}).", tried.error()));
}

void Spawner::Works::try_hiding(HiddenDir hidden) {
  if (hidden.path.empty()) return;
  launch_options_.hidden = std::move(hidden);
  const std::string& path = launch_options_.hidden.path;
  if (const auto tried = try_once(); !tried) {
    log_.warn("agents can read the data directory: the system does not let the gateway hide it",
              {{"path", std::string_view(path)}, {"reason", tried.error()}});
    launch_options_.hidden = {};
    return;
  }
  log_.info("agents see only their own part of the data directory",
            {{"path", std::string_view(path)}});
}

void Spawner::Works::try_jails(JailMeans most) {
  for (const JailMeans means : {JailMeans::own_root, JailMeans::rules}) {
    if (means > most) continue;
    launch_options_.jail = means;
    JailPlan trial = trial_jail();
    // Landlock can only allow what is there.
    if (means == JailMeans::rules) trial.places.erase(trial.places.begin());
    const auto tried = try_once(std::move(trial));
    if (tried) return;
    const std::string_view what = means == JailMeans::own_root ? "no own root" : "no Landlock";
    if (!jail_obstacle_.empty()) jail_obstacle_ += "; ";
    jail_obstacle_ += fmt::format("{}: {}", what, with_remedy(tried.error()));
  }
  launch_options_.jail = JailMeans::none;
}

void Spawner::Works::find_cgroups() {
  Cgroups::Places places;
  places.is_root = ::geteuid() == 0;
  cgroups_ = Cgroups::find(places);
}

LimitMeans Spawner::Works::limit_means() const {
  if (cgroups_.means() != LimitMeans::counting) return cgroups_.means();
  const bool has_namespace =
      launch_options_.in_namespace || launch_options_.jail == JailMeans::own_root;
  return has_namespace ? LimitMeans::counting : LimitMeans::nothing;
}

Result<TreeBounds> Spawner::Works::bounds_of(const ChildPlan& plan) {
  if (!plan.limits.has_any()) return TreeBounds{};
  TreeBounds bounds;
  if (cgroups_.means() != LimitMeans::counting) {
    if (auto made = cgroups_.make(plan.limits, bounds); !made) {
      return std::unexpected(std::move(made.error()));
    }
    return bounds;
  }
  const bool has_root = plan.jail && launch_options_.jail == JailMeans::own_root;
  if (has_root || launch_options_.in_namespace) bounds = counted_bounds(plan.limits);
  return bounds;
}

Result<std::unique_ptr<Child>> Spawner::Works::spawn(const ChildPlan& plan) {
  assert(!plan.argv.empty());
  if (is_stopping_) {
    return fail(Errc::unavailable, "draining", "The gateway is shutting down.");
  }
  const std::int64_t begun_at = ticks_since_boot();
  auto bounds = bounds_of(plan);
  if (!bounds) return std::unexpected(std::move(bounds.error()));
  auto launched = launch(launch_options_, plan, *bounds);
  if (!launched) {
    Cgroups::remove(*bounds);
    // It may have been abandoned, like the one below.
    if (launched.error().kind == Errc::unavailable) suspect(begun_at);
    return std::unexpected(std::move(launched).error());
  }
  auto parts = std::make_shared<Parts>(executor_, tail_bytes_max_);
  if (!parts->take(*launched)) {
    abandon(std::move(*launched));
    Cgroups::remove(*bounds);
    suspect(begun_at);
    return no_resources("epoll refuses a descriptor");
  }
  parts->begun_at = begun_at;
  parts->busy = plan.busy;
  parts->bounds = std::move(*bounds);
  parts->owner = plan.owner;
  trees_.insert(parts);
  group_.spawn(watch(parts));
  group_.spawn(drain(parts));
  group_.spawn(insist(parts));
  return std::make_unique<Child>(std::move(parts));
}

// From the start of a tree to its end.
Task<void> Spawner::Works::watch(std::shared_ptr<Parts> parts) {
  co_await read_report(parts);
  siginfo_t end{};
  while (::waitid(P_PIDFD, static_cast<id_t>(parts->pidfd.native_handle()), &end,
                  WEXITED | WNOHANG) == 0 &&
         end.si_pid == 0) {
    co_await parts->pidfd.async_wait(Parts::Stream::wait_read, kAwait);
  }
  parts->is_reaped = true;
  // It ends by itself only after its tree.
  if (end.si_code != CLD_EXITED) {
    log_.warn("a launcher was killed", {{"pid", parts->pid}, {"signal", end.si_status}});
    if (orphans_) orphans_->suspect(parts->begun_at);
  }
  if (orphans_ && orphans_->are_suspected()) {
    co_await end_orphans();
  }
  co_await remove_groups(parts);
  trees_.erase(parts);
  parts->note_gone();
}

// The kernel may hold the group of a process for a moment after its end.
Task<void> Spawner::Works::remove_groups(std::shared_ptr<Parts> parts) {
  Timer pause(executor_);
  for (int tries = 0; tries < kGroupTriesMax && !Cgroups::remove(parts->bounds); ++tries) {
    pause.expires_after(kOrphansLook);
    co_await pause.async_wait(kAwait);
  }
}

// A launcher ends by itself when its program has ended or we have let go of it. One that does not
// has been stopped by its agent, over and over perhaps. It is killed, and its orphans come to us.
Task<void> Spawner::Works::insist(std::shared_ptr<Parts> parts) {
  const auto is_ending = [&] { return parts->is_let_go || parts->exit_status || parts->is_gone; };
  while (!is_ending()) co_await parts->changed.wait();
  const auto end = Timer::clock_type::now() + launch_options_.kill_grace + kLauncherEndMax;
  while (!parts->is_gone && Timer::clock_type::now() < end) {
    co_await parts->changed.wait_until(end);
  }
  // Looked at only for a tree that is late; most end long before.
  const auto busy_end = end + parts->busy.wait_max;
  while (!parts->is_gone && Timer::clock_type::now() < busy_end && is_there(parts->busy)) {
    co_await parts->changed.wait_until(
        std::min<Timer::time_point>(busy_end, Timer::clock_type::now() + kBusyLook));
  }
  if (parts->is_gone || parts->is_reaped) co_return;
  log_.warn("a launcher does not end its tree and is killed", {{"pid", parts->pid}});
  parts->signal_launcher(SIGKILL);
}

// Of a launcher that we have killed ourselves.
void Spawner::Works::suspect(std::int64_t begun_at) {
  if (!orphans_) return;
  orphans_->suspect(begun_at);
  group_.spawn(end_orphans());
}

// Whose orphans they are cannot be told, so several of these at a time do the same work; no
// look is interrupted by another.
Task<void> Spawner::Works::end_orphans() {
  const auto end = std::chrono::steady_clock::now() + kOrphansEndMax;
  std::int64_t ended = 0;
  Timer pause(executor_);
  while (true) {
    const Orphans::Look found = orphans_->look(launchers());
    ended += static_cast<std::int64_t>(found.ended);
    if (found.is_over()) break;
    if (std::chrono::steady_clock::now() >= end) {
      log_.warn("processes that a launcher has left do not end",
                {{"processes", static_cast<std::int64_t>(found.left)}});
      break;
    }
    pause.expires_after(kOrphansLook);
    co_await pause.async_wait(kAwait);
  }
  if (ended > 0) log_.info("processes that a launcher has left were ended", {{"processes", ended}});
}

std::set<pid_t> Spawner::Works::launchers() const {
  std::set<pid_t> all;
  for (const auto& parts : trees_) {
    if (!parts->is_reaped) all.insert(parts->pid);
  }
  return all;
}

Task<void> Spawner::Works::read_report(std::shared_ptr<Parts> parts) {
  std::array<char, kReportBytesMax> text{};
  std::size_t size = 0;
  while (true) {
    const ssize_t count =
        ::read(parts->report.native_handle(), text.data() + size, text.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
    const std::string_view all(text.data(), size);
    const bool is_over = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
    if (is_over || all.contains('\n')) {
      note_report(*parts, all.substr(0, all.find('\n')));
      co_return;
    }
    if (count < 0) co_await parts->report.async_wait(Parts::Stream::wait_read, kAwait);
  }
}

void Spawner::Works::note_report(Parts& parts, std::string_view line) {
  // What the program said last is there when its end is known.
  for (int i = 0; i < kLastDrains && parts.drain_errors(); ++i) {
  }
  const auto report = parse_report(line);
  if (report && !report->step.empty()) {
    // The last step fails where the program is not there, which its user is told.
    const bool is_walls = report->step != "exec";
    log_.write(is_walls ? LogLevel::warn : LogLevel::debug, "a program was not started",
               {{"step", report->step},
                {"error", std::strerror(std::get<NotStarted>(report->status).error)}});
    if (is_walls && on_failed_step_) on_failed_step_(report->step);
  }
  if (const auto* over = report ? std::get_if<OverLimit>(&report->status) : nullptr) {
    log_.warn("a tree was ended: it used more than it may",
              {{"pid", parts.pid},
               {"app", std::string_view(parts.owner)},
               {"what", over->what == OverLimit::What::memory ? "memory" : "processes"}});
    if (on_over_limit_) on_over_limit_(parts.owner, *over);
  }
  parts.note_exit(report ? report->status : ExitStatus(Unknown{}));
}

Task<void> Spawner::Works::drain(std::shared_ptr<Parts> parts) {
  while (parts->drain_errors() && !parts->is_gone) {
    co_await parts->errors.async_wait(Parts::Stream::wait_read, kAwait);
  }
}

Task<void> Spawner::Works::stop() {
  is_stopping_ = true;
  for (const auto& parts : trees_) parts->let_go();
  co_await group_.join();
}

Result<std::unique_ptr<Spawner>> Spawner::make(IoExecutor executor, Options options, Log& log) {
  auto launcher_file = make_launcher_file();
  if (!launcher_file) return std::unexpected(std::move(launcher_file).error());
  auto works = std::make_unique<Works>(executor, options, log, std::move(*launcher_file));
  if (options.adopts_orphans) {
    auto orphans = Orphans::adopt();
    if (!orphans) return std::unexpected(std::move(orphans).error());
    works->adopt(std::move(*orphans));
  }
  const auto tried = works->try_out(options.pid_namespace);
  if (!tried) return std::unexpected(tried.error());
  works->try_hiding(std::move(options.hidden));
  works->try_jails(options.jail_max);
  if (options.uses_cgroups) works->find_cgroups();
  return std::unique_ptr<Spawner>(new Spawner(std::move(works)));
}

Spawner::Spawner(std::unique_ptr<Works> works) : works_(std::move(works)) {}
Spawner::~Spawner() = default;

Result<std::unique_ptr<Child>> Spawner::spawn(const ChildPlan& plan) { return works_->spawn(plan); }
bool Spawner::uses_namespaces() const { return works_->uses_namespaces(); }
JailMeans Spawner::jail_means() const { return works_->jail_means(); }
const std::string& Spawner::jail_obstacle() const { return works_->jail_obstacle(); }
void Spawner::on_over_limit(std::function<void(const std::string&, OverLimit)> told) {
  works_->on_over_limit(std::move(told));
}

void Spawner::on_failed_step(std::function<void(std::string_view)> told) {
  works_->on_failed_step(std::move(told));
}
LimitMeans Spawner::limit_means() const { return works_->limit_means(); }
bool Spawner::limits_processor() const { return works_->limits_processor(); }
const std::string& Spawner::limit_obstacle() const { return works_->limit_obstacle(); }
std::size_t Spawner::alive() const { return works_->alive(); }
Task<void> Spawner::stop() { return works_->stop(); }

}  // namespace clawdforge
