#include "agent/warm/warm_pool.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace clawdforge {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPoolLook{1};
// How often it is looked whether a spare is still what a start would give.
constexpr std::chrono::seconds kStartLook{5};
// The next spare is started when the start that has taken one is mostly over: both need the cores.
constexpr std::chrono::milliseconds kRefillPause{250};
// After a spare that failed; doubled up to the longest.
constexpr std::chrono::seconds kFailurePause{10};
constexpr std::chrono::seconds kFailurePauseMax{600};

}  // namespace

// A session that is being made has it. Ends the spare, unless a start has taken it.
class WarmPool::Claim final : public SpareClaim {
 public:
  Claim(WarmPool& pool, std::string id) : pool_(pool), id_(std::move(id)) {}
  ~Claim() override { pool_.release(id_, false); }
  const std::string& id() const override { return id_; }
  void give_back() override { pool_.release(id_, true); }

 private:
  WarmPool& pool_;
  const std::string id_;
};

WarmPool::WarmPool(Dependencies deps, Options options)
    : deps_(std::move(deps)), options_(options), tasks_(deps_.executor) {}

WarmPool::~WarmPool() = default;

bool WarmPool::is_kept(const AgentSpec& spec) const {
  return spec.protocol != AgentProtocol::acpx && (spec.warm.is_auto || spec.warm.spares > 0);
}

// Kinds

SpareKind& WarmPool::kind_of(const StartOrder& order, const OneShotRequest* request) {
  SpareKind wanted{.is_run = request != nullptr,
                   .agent = order.spec.name,
                   .model = request != nullptr ? request->model : "",
                   .effort = request != nullptr ? request->effort : "",
                   .mode = order.permission_mode,
                   .profile = deps_.profile_of(order.app, order.spec.name),
                   .app = order.app};
  const auto key = [](const SpareKind& kind) {
    return std::tie(kind.is_run, kind.agent, kind.model, kind.effort, kind.mode, kind.profile);
  };
  const auto found =
      std::ranges::find_if(kinds_, [&](const SpareKind& kind) { return key(kind) == key(wanted); });
  if (found != kinds_.end()) return *found;
  if (kinds_.size() >= kSpareKindsMax) forget_oldest_kind();
  return kinds_.emplace_back(std::move(wanted));
}

// One with something under way stays.
void WarmPool::forget_oldest_kind() {
  const auto is_in_use = [this](const SpareKind& kind) {
    return kind.starting > 0 || std::ranges::any_of(spares_, [&](const Spare& spare) {
             return spare.kind == &kind && spare.is_claimed;
           });
  };
  const auto oldest = std::ranges::min_element(kinds_, {}, [&](const SpareKind& kind) {
    return std::pair(is_in_use(kind), kind.demand.last_use());
  });
  if (oldest == kinds_.end() || is_in_use(*oldest)) return;
  for (auto spare = spares_.begin(); spare != spares_.end();) {
    const auto next = std::next(spare);
    if (spare->kind == &*oldest) discard(spare, "unused");
    spare = next;
  }
  kinds_.erase(oldest);
}

// Giving out

// What a start in the spare's place would give now is what was started there.
bool WarmPool::is_same_start(const Spare& spare) const {
  const auto text = deps_.start_text(spare.order, *spare.kind);
  return text && *text == spare.start_text;
}

WarmPool::Spares::iterator WarmPool::fitting(const SpareKind& kind, const StartOrder& order) {
  for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
    if (spare->kind != &kind || spare->is_claimed || spare->is_stale) continue;
    if (spare->is_ending()) continue;
    StartOrder same = order;
    same.working_dir = spare->order.working_dir;
    same.temp_dir = spare->order.temp_dir;
    same.own_dir = spare->order.own_dir;
    same.home_dir = spare->order.home_dir;
    same.conversation_id = spare->order.conversation_id;
    const auto text = deps_.start_text(same, kind);
    if (text && *text == spare->start_text) return spare;
    spare->is_stale = !is_same_start(*spare);
  }
  return spares_.end();
}

std::unique_ptr<SpareClaim> WarmPool::claim(const StartOrder& order,
                                            const OneShotRequest* request) {
  if (is_closed_ || !is_kept(order.spec)) return nullptr;
  SpareKind& kind = kind_of(order, request);
  kind.app = order.app;
  kind.demand.note(deps_.now());
  refill_at_ = std::min(refill_at_, steady_clock::now() + kRefillPause);
  woken_.notify_all();
  StartOrder wanted = order;
  wanted.is_spare = true;
  const auto spare = fitting(kind, wanted);
  if (spare == spares_.end()) {
    count("missed");
    return nullptr;
  }
  spare->is_claimed = true;
  return std::make_unique<Claim>(*this, spare->id);
}

std::unique_ptr<SpareClaim> WarmPool::claim_session(StartOrder order) {
  return claim(order, nullptr);
}

// Only Claude's own command line can be given its prompt later.
std::unique_ptr<SpareClaim> WarmPool::claim_run(StartOrder order, OneShotRequest request) {
  const bool can_wait = order.spec.protocol == AgentProtocol::claude &&
                        order.spec.one_shot_protocol == OneShotProtocol::claude_print;
  return can_wait ? claim(order, &request) : nullptr;
}

void WarmPool::release(const std::string& id, bool is_good) {
  const auto spare = std::ranges::find(spares_, id, &Spare::id);
  if (spare == spares_.end() || !spare->is_claimed) return;  // a start has taken it
  spare->is_claimed = false;
  if (!is_good || is_closed_) discard(spare, "unused");
}

// The spare that this start has claimed, if it is one that it can have. One that it cannot have
// ends; its directory is the session's or the run's, and stays.
std::optional<Spare> WarmPool::take_claimed(const StartOrder& order) {
  const auto found = std::ranges::find_if(spares_, [&](const Spare& one) {
    return one.is_claimed && one.order.own_dir == order.own_dir;
  });
  if (found == spares_.end()) return std::nullopt;
  Spare spare = std::move(*found);
  spares_.erase(found);
  show();
  const bool is_fit = order.spec.name == spare.order.spec.name &&
                      order.permission_mode == spare.order.permission_mode &&
                      order.working_dir == spare.order.working_dir && !order.loads_conversation &&
                      order.secrets.empty() && order.visible.empty() &&
                      order.home_dir == spare.order.home_dir;
  if (is_fit && !spare.is_ending()) {
    count("used");
    return spare;
  }
  count(is_fit ? "died" : "unused");
  tasks_.spawn(end(std::move(spare), false));
  return std::nullopt;
}

Result<std::unique_ptr<SessionAgent>> WarmPool::start_session(StartOrder order) {
  auto spare = take_claimed(order);
  woken_.notify_all();  // a place is taken, or a spare is
  if (!spare) return deps_.starter.start_session(std::move(order));
  spare->session->adopt(std::move(order.app));
  return std::move(spare->session);
}

Result<std::unique_ptr<OneShotAgent>> WarmPool::start_one_shot(StartOrder order,
                                                               OneShotRequest request) {
  auto spare = take_claimed(order);
  woken_.notify_all();
  if (!spare) return deps_.starter.start_one_shot(std::move(order), std::move(request));
  spare->shot->adopt(std::move(order.app), std::move(request));
  return std::move(spare->shot);
}

bool WarmPool::holds_read_only(const AppName& app, const std::string& agent) const {
  return deps_.starter.holds_read_only(app, agent);
}

// Keeping

Task<void> WarmPool::run() {
  // An agent with a configured number has its spares from the start.
  for (const AgentSpec& known : deps_.catalog.specs()) {
    const AgentSpec* const spec = deps_.catalog.find(known.name);
    if (spec == nullptr || spec->warm.is_auto || !is_kept(*spec)) continue;
    StartOrder order;
    order.spec = *spec;
    order.permission_mode = spec->permission_mode.value_or(options_.permission_mode);
    kind_of(order, nullptr);
  }
  while (!is_closed_) {
    look();
    auto next = Demand::Time::max();
    if (!kinds_.empty()) next = steady_clock::now() + kPoolLook;
    co_await woken_.wait_until(next);
    // A start has just taken one, or needs the cores for itself.
    if (refill_at_ == Demand::Time::max()) continue;
    while (!is_closed_ && steady_clock::now() < refill_at_) {
      co_await woken_.wait_until(refill_at_);
    }
    refill_at_ = Demand::Time::max();
  }
}

void WarmPool::look() {
  if (is_closed_) return;
  discard_bad();
  decide();
  discard_unwanted();
  start_missing();
  show();
}

void WarmPool::discard_bad() {
  const auto now = deps_.now();
  for (auto spare = spares_.begin(); spare != spares_.end();) {
    const auto one = spare++;
    if (one->is_claimed) continue;
    if (!one->is_stale && now - one->looked >= kStartLook) {
      one->looked = now;
      one->is_stale = !is_same_start(*one);
    }
    if (one->is_ending()) {
      discard(one, "died");
    } else if (one->is_stale) {
      discard(one, "changed");
    } else if (now - one->born >= kSpareAgeMax) {
      discard(one, "aged");
    }
  }
}

// Kinds that were used last come first.
void WarmPool::decide() {
  kinds_.sort([](const SpareKind& a, const SpareKind& b) {
    return a.demand.last_use() > b.demand.last_use();
  });
  for (SpareKind& kind : kinds_) kind.wanted = 0;
  std::map<bool, std::size_t> left = {{false, deps_.places_left(false)},
                                      {true, deps_.places_left(true)}};
  for (const AgentSpec& known : deps_.catalog.specs()) {
    const AgentSpec* const spec = deps_.catalog.find(known.name);
    if (spec == nullptr || !is_kept(*spec)) continue;
    if (!deps_.has_login || deps_.has_login(spec->name)) decide_for(*spec, left);
  }
}

void WarmPool::decide_for(const AgentSpec& spec, std::map<bool, std::size_t>& left) {
  std::size_t own = spec.warm.is_auto ? options_.auto_max : spec.warm.spares;
  SpareKind* first = nullptr;
  for (SpareKind& kind : kinds_) {
    if (kind.agent != spec.name) continue;
    if (first == nullptr) first = &kind;
    kind.wanted = std::min({kind.demand.wanted(deps_.now()), own, left[kind.is_run]});
    own -= kind.wanted;
    left[kind.is_run] -= kind.wanted;
  }
  // A configured number is kept whatever was used; what was used last has the rest of it.
  if (spec.warm.is_auto || first == nullptr) return;
  const std::size_t rest = std::min(own, left[first->is_run]);
  first->wanted += rest;
  left[first->is_run] -= rest;
}

std::size_t WarmPool::ready(const SpareKind& kind) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      spares_, [&](const Spare& spare) { return spare.kind == &kind && !spare.is_claimed; }));
}

void WarmPool::discard_unwanted() {
  for (auto spare = spares_.begin(); spare != spares_.end();) {
    const auto one = spare++;
    if (!one->is_claimed && ready(*one->kind) > one->kind->wanted) discard(one, "unused");
  }
}

void WarmPool::start_missing() {
  for (SpareKind& kind : kinds_) {
    while (ready(kind) + kind.starting < kind.wanted && starting_ < kSpareStartsMax &&
           deps_.now() >= kind.not_before) {
      ++kind.starting;
      ++starting_;
      tasks_.spawn(start_spare(&kind));
    }
  }
}

std::uint64_t WarmPool::give_way(std::uint64_t bytes,
                                 const std::function<std::uint64_t(const std::string&)>& bytes_of) {
  std::uint64_t freed = 0;
  for (auto spare = spares_.begin(); spare != spares_.end() && freed < bytes;) {
    const auto one = spare++;
    if (one->is_claimed) continue;
    freed += bytes_of(one->order.own_dir);
    discard(one, "gave_way");
  }
  return freed;
}

// Starting and ending

StartOrder WarmPool::order_for(const SpareKind& kind, const AgentSpec& spec,
                               const SpareDir& dir) const {
  return {.spec = spec,
          .app = kind.app,
          .working_dir = dir.work,
          .temp_dir = dir.temp,
          .own_dir = dir.own,
          .permission_mode = kind.mode,
          .home_dir = dir.home,
          .conversation_id = deps_.ids.uuid(),
          .is_spare = true};
}

Task<void> WarmPool::start_spare(SpareKind* kind) {
  const std::string why = co_await make_spare(kind, deps_.ids.uuid());
  --kind->starting;
  --starting_;
  if (why.empty()) {
    kind->pause = {};
  } else if (!is_closed_) {
    kind->pause = std::clamp(2 * kind->pause, kFailurePause, kFailurePauseMax);
    kind->not_before = deps_.now() + kind->pause;
    count("failed");
    deps_.log.warn("a spare agent could not be started; starts go on without",
                   {{"agent", std::string_view(kind->agent)}, {"why", std::string_view(why)}});
  }
  woken_.notify_all();
}

Result<void> WarmPool::start_process(Spare& spare) {
  if (spare.kind->is_run) {
    OneShotRequest request;
    request.model = spare.kind->model;
    request.effort = spare.kind->effort;
    auto started = deps_.starter.start_one_shot(spare.order, std::move(request));
    if (!started) return std::unexpected(std::move(started.error()));
    spare.shot = std::move(*started);
  } else {
    auto started = deps_.starter.start_session(spare.order);
    if (!started) return std::unexpected(std::move(started.error()));
    spare.session = std::move(*started);
  }
  return {};
}

Task<std::optional<Failure>> WarmPool::warm_up(Spare* spare) {
  if (spare->session) co_return co_await spare->session->warm_up();
  co_return co_await spare->shot->warm_up();
}

// Empty: there is one more.
Task<std::string> WarmPool::make_spare(SpareKind* kind, std::string id) {
  const AgentSpec* const spec = deps_.catalog.find(kind->agent);
  if (spec == nullptr || !is_kept(*spec)) co_return std::string("the agent has changed");
  const auto switches = spec->modes.find(kind->mode);
  const auto files = switches == spec->modes.end() || kind->is_run
                         ? std::map<std::string, std::string>()
                         : switches->second.files;
  const auto dir = co_await deps_.make_dir(kind->is_run, id, files);
  if (!dir) co_return dir.error().message;
  Spare spare{.kind = kind, .id = id, .order = order_for(*kind, *spec, *dir)};
  auto text = deps_.start_text(spare.order, *kind);
  auto started = text ? start_process(spare) : Result<void>(std::unexpected(text.error()));
  if (!started || is_closed_) {
    if (started) {
      co_await end(std::move(spare), true);
      co_return std::string("the gateway ends");
    }
    deps_.remove_dir(kind->is_run, std::move(id));
    co_return started.error().message;
  }
  spare.start_text = std::move(*text);
  const auto mark = warming_.insert(warming_.end(), &spare);
  const auto failure = co_await warm_up(&spare);
  warming_.erase(mark);
  if (failure || is_closed_) {
    co_await end(std::move(spare), true);
    co_return failure ? failure->message : std::string("the gateway ends");
  }
  spare.born = spare.looked = deps_.now();
  spares_.push_back(std::move(spare));
  show();
  co_return std::string();
}

void WarmPool::discard(Spares::iterator spare, const char* why) {
  count(why);
  tasks_.spawn(end(std::move(*spare), true));
  spares_.erase(spare);
  show();
}

Task<void> WarmPool::end(Spare spare, bool removes_dir) {
  const bool is_run = spare.shot != nullptr;
  if (spare.session) co_await spare.session->finish(true);
  if (spare.shot) co_await spare.shot->finish();
  spare.session.reset();
  spare.shot.reset();
  if (removes_dir) deps_.remove_dir(is_run, std::move(spare.id));
}

void WarmPool::close() {
  if (std::exchange(is_closed_, true)) return;
  give_way(UINT64_MAX, [](const std::string&) { return 0; });
  for (Spare* const spare : warming_) spare->stop();
  woken_.notify_all();
}

Task<void> WarmPool::stop() {
  close();
  co_await tasks_.join();
}

// Telling

std::size_t WarmPool::spares_of(std::string_view agent) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      spares_, [&](const Spare& spare) { return spare.kind->agent == agent; }));
}

void WarmPool::count(const char* outcome) {
  deps_.metrics
      .counter("clawdforge_spare_agents_total", "What became of agents that were started ahead.",
               {{"outcome", outcome}})
      .increment();
}

void WarmPool::show() {
  for (const AgentSpec& spec : deps_.catalog.specs()) {
    if (!is_kept(spec)) continue;
    deps_.metrics
        .gauge("clawdforge_spare_agents", "Agents that were started ahead and wait for a start.",
               {{"agent", spec.name}})
        .set(static_cast<std::int64_t>(spares_of(spec.name)));
  }
}

}  // namespace clawdforge
