#include "custody/custody.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "agent/inventory/inventory.h"
#include "base/async/async_tokens.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

// From this version on `auth status` renews a login that is about to end.
constexpr std::string_view kStatusRenewsFrom = "2.1.312";
constexpr std::chrono::hours kEndToldEvery{24};
constexpr const char* kStateHelp = "1 for how the login that is kept stands; else 0.";

Result<void> make_private(const std::vector<std::string>& dirs) {
  for (const std::string& dir : dirs) {
    const fs::path above = fs::path(dir).parent_path();
    std::error_code error;
    fs::create_directories(above.parent_path(), error);
    ::mkdir(above.c_str(), 0700);
    if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(Errc::unavailable, "workspace_unavailable", "A directory cannot be made.",
                  fmt::format("making {}: {}", dir, std::strerror(errno)));
    }
  }
  return {};
}

struct Looked {
  std::string dir;
  LoginFile file;
};

}  // namespace

Custody::Custody(Dependencies deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      dir_(options_.login_dir),
      keeper_(deps_.executor, deps_.spawner),
      watch_(deps_.executor, {options_.login_dir, options_.earlier_dir}, [this] { wake(); }),
      tasks_(deps_.executor),
      expires_(deps_.metrics.gauge("clawdforge_login_expires_seconds",
                                   "Until the login that is kept expires; 0: not known.",
                                   {{"agent", options_.spec.name}})),
      held_(deps_.metrics.gauge("clawdforge_login_held",
                                "Work that waits for a login that is being renewed.")),
      renewed_(deps_.metrics.counter("clawdforge_login_renewals_total",
                                     "What became of starts of the keeper.",
                                     {{"outcome", "renewed"}})),
      failed_(deps_.metrics.counter("clawdforge_login_renewals_total",
                                    "What became of starts of the keeper.",
                                    {{"outcome", "failed"}})) {
  for (int i = 0; i < kCustodyStates; ++i) {
    const auto state = static_cast<CustodyState>(i);
    state_gauges_.at(static_cast<std::size_t>(i)) = &deps_.metrics.gauge(
        "clawdforge_login_state", kStateHelp,
        {{"agent", options_.spec.name}, {"state", std::string(name_of(state))}});
  }
}

// Neither by a key, nor by a directory of its own, nor by a program that does not know how.
bool Custody::is_kept(const AgentSpec& spec) const {
  const LoginSpec& login = spec.login;
  if (login.storage_variable.empty() || spec.applies_owner_settings ||
      spec.set_env.contains(login.dir_variable) || is_too_old(spec)) {
    return false;
  }
  const auto known = has_other_login_.find(spec.name);
  if (known != has_other_login_.end()) return !known->second;
  const Environment environment = agent_environment(options_.environment, spec, {});
  const bool has_other = has_key(environment, login) || is_elsewhere(environment, login);
  has_other_login_.emplace(spec.name, has_other);
  return !has_other;
}

bool Custody::is_too_old(const AgentSpec& spec) const {
  const auto version = options_.version();
  return version && is_older(*version, spec.login.storage_version_min);
}

bool Custody::is_external() const { return !is_kept(options_.spec) || !options_.version(); }

bool Custody::keeps(std::string_view agent) const {
  const AgentSpec* const spec = deps_.catalog.find(agent);
  return spec != nullptr && is_kept(*spec) && !is_external() &&
         states_.state(deps_.clock.now()) != CustodyState::external;
}

std::optional<LoginRefusal> Custody::refusal(std::string_view agent) const {
  if (is_stopped_ || !keeps(agent)) return std::nullopt;
  return states_.refusal(deps_.clock.now(), options_.spec.login_hint);
}

void Custody::note_waiting(int change) { held_.add(change); }

void Custody::note_refused(std::string_view agent, std::chrono::steady_clock::time_point begun) {
  if (!keeps(agent)) return;
  const auto ago =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  states_.note_refused(deps_.clock.now() - ago, deps_.clock.now());
  wake();
}

LoginView Custody::view_of(const AgentSpec& spec, bool is_jailed) const {
  LoginView view = login_view(options_.environment, spec, is_too_old(spec));
  if (!is_jailed) view.has_own_home = false;
  if (view.dir.empty()) return view;
  view.dir = dir_;
  view.is_alone = dir_ == options_.login_dir;
  // One who has the gateway's home finds what is in there by itself.
  if (!is_jailed && !view.is_alone) view.dir.clear();
  return view;
}

Task<void> Custody::begin() {
  auto made = co_await deps_.disk.call(
      Lane(), [dirs = std::vector<std::string>{options_.login_dir, options_.keeper_dir}] {
        return make_private(dirs);
      });
  if (!made) {
    deps_.log.warn("there is no place for the login of agents",
                   {{"why", std::string_view(made.error().detail)}});
  }
  watch_.renew();
  co_await look();
  is_begun_ = true;
  told_ = standing().state;
  had_login_ = states_.file().has_access;
  if (told_ == CustodyState::logged_out || (told_ == CustodyState::late && !had_login_)) {
    deps_.log.info("the login of agents is looked for",
                   {{"agent", std::string_view(options_.spec.name)},
                    {"place", std::string_view(file_in(options_.login_dir))}});
  }
}

// The directory of ours as soon as there is a login in it.
Task<void> Custody::look() {
  auto looked = co_await deps_.disk.call(Lane(),
                                         [own = options_.login_dir, earlier = options_.earlier_dir,
                                          file = options_.spec.login.file]() -> Result<Looked> {
                                           Looked found{own, look_at_login(own + "/" + file)};
                                           if (found.file.has_access || earlier.empty())
                                             return found;
                                           const LoginFile there =
                                               look_at_login(earlier + "/" + file);
                                           return there.has_access ? Looked{earlier, there} : found;
                                         });
  if (!looked) co_return;
  dir_ = std::move(looked->dir);
  states_.note_file(looked->file, deps_.clock.now());
  warn_of_place();
}

void Custody::warn_of_place() {
  if (is_external() || dir_ == options_.login_dir || place_told_ == dir_) return;
  place_told_ = dir_;
  deps_.log.warn(
      "the agents have the login of the gateway's user, beside whose files it lies; a login of "
      "their own is safer: clawdforge agent login claude",
      {{"place", std::string_view(dir_)}});
}

ChildPlan Custody::keeper_plan(KeeperTask task) const {
  const LoginSpec& login = options_.spec.login;
  ChildPlan plan;
  plan.argv = login.status_command;
  const std::string& program = login.status_command.front();
  if (task == KeeperTask::force) {
    plan.argv = {program, "-p", "/usage"};
  } else if (states_.file().has_access &&
             is_older(options_.version().value_or(""), kStatusRenewsFrom)) {
    plan.argv = {program, "-p", "/cost"};
  }
  plan.environment = agent_environment(options_.environment, options_.spec, options_.keeper_dir);
  move_home(plan.environment, login, options_.keeper_dir);
  plan.environment[login.dir_variable] = options_.keeper_dir;
  plan.environment[login.storage_variable] = dir_;
  plan.working_dir = options_.keeper_dir;
  plan.busy = {dir_ + "/" + login.refresh_lock, kKeeperBusyMax};
  plan.own_dir = fs::path(options_.keeper_dir).parent_path();
  plan.jail = options_.jail(dir_);
  return plan;
}

Task<void> Custody::keep(KeeperTask task) {
  states_.note_keeper(task);
  const auto before = states_.file().expires_at;
  const KeeperWord word = co_await keeper_.run(keeper_plan(task));
  auto looked = co_await deps_.disk.call(
      Lane(), [path = file_in(dir_)]() -> Result<LoginFile> { return look_at_login(path); });
  const LoginFile after = looked ? *looked : states_.file();
  const bool was_due = states_.state(deps_.clock.now()) != CustodyState::ok;
  const bool is_renewed = states_.note_keeper_end(word, after, deps_.clock.now());
  if (is_renewed) {
    renewed_.increment();
    note_event("login.renewed");
    deps_.log.info("a login was renewed", {{"agent", std::string_view(options_.spec.name)}});
  } else if (was_due && after.has_access) {
    failed_.increment();
    deps_.log.warn("a login was not renewed; it is tried again",
                   {{"agent", std::string_view(options_.spec.name)},
                    {"state", name_of(states_.state(deps_.clock.now()))}});
  }
  if (after.has_access && after.expires_at == before && word.logged_in == false) {
    deps_.log.warn(
        "this claude is too old for a shared login (2.1.197 or newer): update it, or give the "
        "gateway a token or a key");
  }
}

Task<void> Custody::run() {
  if (is_stopped_) co_return;
  is_running_ = true;
  tasks_.spawn(watch_.run());
  while (!is_stopped_) {
    has_news_ = false;
    co_await look();
    const auto due = is_external() ? std::nullopt : states_.keeper_due(deps_.clock.now());
    if (due && !is_stopped_) co_await keep(*due);
    tell_changes();
    changed_.notify_all();
    if (is_stopped_ || due || has_news_) continue;
    const TimePoint now = deps_.clock.now();
    co_await woken_.wait_for(states_.next_look(now) - now);
  }
  watch_.stop();
  co_await tasks_.join();
  is_running_ = false;
  ended_.notify_all();
}

Task<void> Custody::stop() {
  is_stopped_ = true;
  woken_.notify_all();
  changed_.notify_all();
  while (is_running_) co_await ended_.wait();
}

std::chrono::seconds Custody::end_max() const {
  return is_external() ? std::chrono::seconds(0) : kKeeperTimeMax + kKeeperBusyMax;
}

Custody::Standing Custody::standing() const {
  if (is_external()) return {};
  const LoginFile& file = states_.file();
  return {states_.state(deps_.clock.now()), file.expires_at, file.sign_in_ends_at};
}

std::optional<std::string> Custody::state_of(std::string_view agent) const {
  const AgentSpec* const spec = deps_.catalog.find(agent);
  if (spec == nullptr || spec->login.storage_variable.empty()) return std::nullopt;
  return std::string(name_of(is_kept(*spec) ? standing().state : CustodyState::external));
}

void Custody::show() const {
  const Standing now = standing();
  for (std::size_t i = 0; i < state_gauges_.size(); ++i) {
    state_gauges_.at(i)->set(static_cast<CustodyState>(i) == now.state ? 1 : 0);
  }
  const auto left = now.expires_at ? *now.expires_at - deps_.clock.now() : TimePoint::duration(0);
  expires_.set(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(left).count()));
}

void Custody::tell_changes() {
  const CustodyState now = standing().state;
  if (now != told_) tell_of_state(std::exchange(told_, now), now);
  tell_of_end();
}

void Custody::tell_of_state(CustodyState before, CustodyState now) {
  deps_.log.info("the login of agents stands otherwise",
                 {{"agent", std::string_view(options_.spec.name)},
                  {"before", name_of(before)},
                  {"now", name_of(now)}});
  if (now == CustodyState::logged_out) {
    deps_.log.error(
        "Claude is not logged in. On the gateway's machine run: clawdforge agent login claude");
    if (had_login_) note_event("login.lost");
    had_login_ = false;
  } else if (!had_login_ && now == CustodyState::ok) {
    had_login_ = true;
    note_event("login.back");
  }
}

// Once a day.
void Custody::tell_of_end() {
  const Standing now = standing();
  if (now.state == CustodyState::external || !now.sign_in_ends_at) return;
  const TimePoint time = deps_.clock.now();
  if (*now.sign_in_ends_at - time > kEndsSoonBefore) return;
  if (end_told_at_ && time - *end_told_at_ < kEndToldEvery) return;
  end_told_at_ = time;
  deps_.log.warn("the sign-in of Claude ends soon: run clawdforge agent login claude before",
                 {{"ends_at", unix_seconds(*now.sign_in_ends_at)}});
  note_event("login.ends_soon",
             fmt::format(R"({{"ends_at":{}}})", unix_seconds(*now.sign_in_ends_at)));
}

void Custody::note_event(std::string event, std::string meta) {
  tasks_.spawn(
      write_event({.event = std::move(event), .at = deps_.clock.now(), .meta = std::move(meta)}));
}

Task<void> Custody::write_event(AuditEvent event) {
  const std::string name = event.event;
  const auto written = co_await deps_.audit.add(std::move(event));
  if (written) co_return;
  deps_.log.warn(
      "an event of the login is not in the audit",
      {{"event", std::string_view(name)}, {"why", std::string_view(written.error().detail)}});
}

}  // namespace clawdforge
