#include "sessions/live_sessions.h"

#include <algorithm>
#include <utility>

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

Counter& sleeps(Metrics& metrics, const char* reason) {
  return metrics.counter("clawdforge_session_sleeps_total", "Idle sessions put to sleep.",
                         {{"reason", reason}});
}

}  // namespace

LiveSessions::LiveSessions(const SessionDependencies& deps, const SessionOptions& options,
                           Feeds& feeds, ByteTally& journal_space)
    : quota_(deps.quota),
      feeds_(feeds),
      slept_for_others_(sleeps(deps.metrics, "place")),
      slept_unused_(sleeps(deps.metrics, "idle")),
      slept_for_memory_(sleeps(deps.metrics, "memory")),
      tasks_(deps.executor),
      shared_{
          .services = deps,
          .options = options,
          .tasks = tasks_,
          .lines_skipped = deps.metrics.counter("clawdforge_agent_lines_skipped_total",
                                                "Lines of sessions' agents that were no message."),
          .make_space = [this] { make_space(); },
          .on_quiet = [this](const LiveSession& quiet) { forget(quiet); },
          .journal_space = journal_space} {}

void LiveSessions::on_seat_change(std::function<void(SeatTransition)> observer) {
  shared_.on_seat_change = std::move(observer);
}

std::shared_ptr<LiveSession> LiveSessions::find(const SessionId& id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

std::shared_ptr<LiveSession> LiveSessions::find_or_add(Session session) {
  if (auto known = find(session.id)) return known;
  const SessionId id = session.id;
  auto feed = feeds_.of(session);
  auto added = std::make_shared<LiveSession>(shared_, std::move(feed), std::move(session));
  sessions_.emplace(id, added);
  return added;
}

// There may be a newer one of the same id already.
void LiveSessions::forget(const LiveSession& quiet) {
  const auto found = sessions_.find(quiet.id());
  if (found != sessions_.end() && found->second.get() == &quiet) sessions_.erase(found);
}

void LiveSessions::forget_quiet() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second->is_quiet(); });
}

std::vector<SessionId> LiveSessions::ids_at_work() const {
  std::vector<SessionId> ids;
  for (const auto& [id, live] : sessions_) {
    if (live->is_live() || live->is_busy()) ids.push_back(id);
  }
  return ids;
}

Task<void> LiveSessions::end(SessionId id, TurnStop reason) {
  const Entry live = find(id);
  if (!live) co_return;
  live->begin_end(reason);
  co_await live->ended();
  forget(*live);
}

Task<void> LiveSessions::stop() {
  is_stopping_ = true;
  std::vector<Entry> entries;
  for (const auto& [id, live] : sessions_) entries.push_back(live);
  for (const Entry& live : entries) live->begin_end(TurnStop::shutdown);
  for (const Entry& live : entries) co_await live->ended();
  sessions_.clear();
  co_await tasks_.join();
}

// The idle agent that can be missed best: one that loads its conversation again, and among those
// the one that has been idle for longest. Null: there is none.
LiveSessions::Entry LiveSessions::idlest(bool must_reload) const {
  Entry best;
  std::pair<bool, steady_clock::time_point> best_rank;
  for (const auto& [id, live] : sessions_) {
    const auto idle = live->idle_since();
    if (!idle || (must_reload && !live->can_reload_conversation())) continue;
    const std::pair rank(!live->can_reload_conversation(), *idle);
    if (best && best_rank <= rank) continue;
    best = live;
    best_rank = rank;
  }
  return best;
}

// A slot that comes back soon is enough for one that waits. Where it is memory that is wanting,
// there is an order of what goes first.
void LiveSessions::make_space() {
  if (quota_.are_starts_held()) {
    if (shared_.services.relieve_memory) shared_.services.relieve_memory();
    return;
  }
  const auto leaving = std::ranges::count_if(
      sessions_, [](const auto& entry) { return entry.second->seat().is_leaving(); });
  if (static_cast<std::size_t>(leaving) >= quota_.agents_waiting()) return;
  const Entry best = idlest(false);
  if (!best) return;
  slept_for_others_.increment();
  best->sleep();
}

std::uint64_t LiveSessions::sleep_for_memory(std::uint64_t bytes) {
  std::uint64_t freed = 0;
  while (freed < bytes && !is_stopping_) {
    const Entry best = idlest(true);
    if (!best) break;
    freed += memory_of(best->id());
    slept_for_memory_.increment();
    best->sleep();
  }
  return freed;
}

std::uint64_t LiveSessions::memory_of(const SessionId& id) const {
  const SessionDependencies& deps = shared_.services;
  return deps.memory_of ? deps.memory_of(deps.dirs.of(id.str()).own) : 0;
}

// A conversation that cannot be loaded again would be lost: its agent stays.
void LiveSessions::sleep_idle() {
  const auto sleep_after = shared_.options.sleep_after;
  if (sleep_after == std::chrono::seconds::zero() || is_stopping_) return;
  const auto last = steady_clock::now() - sleep_after;
  for (const auto& [id, live] : sessions_) {
    const auto idle = live->idle_since();
    if (!idle || *idle > last || !live->can_reload_conversation()) continue;
    slept_unused_.increment();
    live->sleep();
  }
}

std::size_t LiveSessions::live_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sessions_, [](const auto& entry) { return entry.second->is_live(); }));
}

std::size_t LiveSessions::busy_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sessions_, [](const auto& entry) { return entry.second->is_busy(); }));
}

LiveSessions::Load LiveSessions::load() const {
  Load load;
  for (const auto& [id, live] : sessions_) {
    load.turns_waiting += live->turns().waiting();
    load.questions_open += std::as_const(*live).questions().open_count();
    load.answer_bytes += live->turns().answer_bytes();
    load.journal_bytes += live->journal().waiting_bytes();
  }
  return load;
}

}  // namespace clawdforge
