#include "sessions/sessions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/async_tokens.h"
#include "base/hang_up_subscription.h"
#include "base/refusals.h"
#include "json/json_members.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kSlotQueueMax = 1'024;  // starts of agents that wait for a slot
constexpr std::chrono::seconds kRestartWait{5};

std::unexpected<Failure> shutting_down() {
  return fail_for_now(Errc::unavailable, "interrupted", "The gateway is shutting down.",
                      kRestartWait);
}

std::unexpected<Failure> not_found() {
  return fail(Errc::not_found, "session_not_found", "There is no such session.");
}

std::unexpected<Failure> closed() {
  return fail(Errc::gone, "session_closed", "The session is closed.");
}

AuditEvent creation(const Session& session, TimePoint now) {
  AuditEvent event{.event = "create", .at = now, .meta = "{"};
  append_member(event.meta, "agent", session.agent);
  append_member(event.meta, "model", unless_empty(session.model));
  event.meta += '}';
  return event;
}

}  // namespace

Sessions::Sessions(Dependencies surroundings, Options options)
    : deps_(std::move(surroundings)),
      options_(options),
      pool_({options.agents_max, kSlotQueueMax},
            deps_.metrics.gauge("clawdforge_agents_running", "Agents that sessions hold."),
            deps_.metrics.gauge("clawdforge_agents_waiting",
                                "Sessions that wait for a place "
                                "for their agent.")),
      tasks_(deps_.executor),
      shared_{
          .services = deps_,
          .options = options_,
          .tasks = tasks_,
          .pool = pool_,
          .lines_skipped = deps_.metrics.counter("clawdforge_agent_lines_skipped_total",
                                                 "Lines of sessions' agents that were no message."),
          .make_space = [this] { make_space(); },
          .on_quiet = [this](const LiveSession& quiet) { forget(quiet); }} {}

Sessions::~Sessions() = default;

Sessions::Entry Sessions::entry_of(std::string_view id) const {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second;
}

Sessions::Entry Sessions::entry_for(Session session) {
  if (auto known = entry_of(session.id)) return known;
  const std::string id = session.id;
  auto feed = feed_for(session);
  auto entry = std::make_shared<LiveSession>(shared_, std::move(feed), std::move(session));
  live_.emplace(id, entry);
  return entry;
}

// Another one may have taken its place already.
void Sessions::forget(const LiveSession& quiet) {
  const auto found = live_.find(quiet.id());
  if (found != live_.end() && found->second.get() == &quiet) live_.erase(found);
}

Async<Session> Sessions::create(std::shared_ptr<const App> app, SessionRequest request,
                                HangUp* hang_up) {
  if (is_stopping_) co_return shutting_down();
  const AgentSpec* const spec = deps_.agents.find(request.agent);
  if (spec == nullptr) {
    auto error = fail(Errc::invalid, "unknown_agent",
                      fmt::format("There is no such agent; there are: {}.",
                                  fmt::join(deps_.agents.names(), ", ")));
    error.error().fields = {
        {"agent", fmt::format("must be one of {}", fmt::join(deps_.agents.names(), ", "))}};
    co_return error;
  }
  Session session;
  session.id = deps_.ids.uuid();
  session.app = app->name;
  session.agent = request.agent;
  session.meta = std::move(request.meta);
  session.created_at = deps_.clock.now();
  session.model = std::move(request.model);
  session.system = std::move(request.system);
  session.effort = std::move(request.effort);
  session.mcp_servers = std::move(request.mcp_servers);
  session.permission_mode =
      request.permission_mode.value_or(spec->permission_mode.value_or(options_.permission_mode));
  SessionLimits limits = options_.limits;
  if (app->sessions_max) limits.open_max_per_app = app->sessions_max;
  auto added = co_await deps_.ledger.add_session(session, limits, deps_.instance_id);
  if (!added) {
    if (may_be_kept(added.error())) drop_again(session.id);
    co_return std::unexpected(added.error());
  }
  if (is_stopping_) {
    const auto withdrawn = co_await deps_.ledger.drop_session(session.id);
    if (!withdrawn) co_return std::unexpected(withdrawn.error());
    co_return shutting_down();
  }

  const Entry live = entry_for(session);
  auto started = co_await start_first(live, hang_up);
  if (started) co_return session;
  co_await end_for_good(session.id, live->session().agent_session_id);
  if (was_begun(started.error())) deps_.dirs.remove(session.id);
  const auto dropped = co_await deps_.ledger.drop_session(session.id);
  if (!dropped) {
    deps_.log.warn("the row of a session that did not start could not be removed yet",
                   {{"session", std::string_view(session.id)},
                    {"why", std::string_view(dropped.error().detail)}});
    drop_again(session.id);
  }
  co_return std::unexpected(started.error());
}

Async<void> Sessions::start_first(Entry live, HangUp* hang_up) {
  Timer deadline(deps_.executor);
  deadline.expires_after(options_.start_max);
  deadline.async_wait([weak = std::weak_ptr(live)](boost::system::error_code error) {
    const auto late = weak.lock();
    if (late && !error && !late->seat().has_slot()) late->interrupt();
  });
  const HangUpSubscription subscription(hang_up, [weak = std::weak_ptr(live)] {
    if (const auto unwanted = weak.lock()) unwanted->interrupt();
  });
  // The row as it was written is what the audit's line is about.
  const auto failure = co_await live->start(creation(live->session(), deps_.clock.now()));
  if (failure && is_stopping_) co_return shutting_down();
  if (failure && live->is_ending()) co_return closed();
  if (failure) co_return std::unexpected(*failure);
  if (hang_up != nullptr && hang_up->has_happened()) {
    co_return fail(Errc::gone, "cancelled", "The caller hung up before the session was made.");
  }
  co_return Result<void>{};
}

Async<Session> Sessions::own(std::string app, std::string id) {
  auto found = co_await deps_.ledger.find_session(std::move(id));
  if (!found && found.error().kind != Errc::not_found) co_return std::unexpected(found.error());
  if (!found || found->app != app) co_return not_found();
  co_return std::move(*found);
}

// The turn has its place in the session's queue.
Async<std::shared_ptr<LiveTurn>> Sessions::accept(std::shared_ptr<const App> app, std::string id,
                                                  TurnRequest request) {
  auto session = co_await own(app->name, id);
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return closed();
  std::vector<Attachment> attachments;
  if (!request.files.empty()) {
    auto found = co_await deps_.uploads.find(app->name, request.files);
    if (!found) co_return std::unexpected(found.error());
    attachments = std::move(*found);
  }
  if (!entry_of(id)) {
    // Now all of it: it will be started. And it may have been at work, and come to rest,
    // since its row was read: then its events and turns have higher numbers by now.
    session = co_await deps_.ledger.load_session(id);
    if (!session) co_return std::unexpected(session.error());
    if (session->closed_at) co_return closed();
  }
  if (is_stopping_) co_return shutting_down();
  const std::int64_t turns_given = session->turn_count;
  const Entry live = entry_for(std::move(*session));
  co_return live->enqueue(std::move(request), std::move(attachments), turns_given);
}

Async<TurnOutcome> Sessions::turn(std::shared_ptr<const App> app, std::string id,
                                  TurnRequest request, HangUp* hang_up) {
  auto accepted = co_await accept(std::move(app), id, std::move(request));
  if (!accepted) co_return std::unexpected(accepted.error());
  const std::shared_ptr<LiveTurn> turn = std::move(*accepted);
  const HangUpSubscription subscription(hang_up, [live = entry_of(id), turn] {
    if (live) live->on_caller_gone(turn);
  });
  co_await turn->wait();
  co_return turn->take();
}

Async<TurnStream> Sessions::stream_turn(std::shared_ptr<const App> app, std::string id,
                                        TurnRequest request) {
  const auto accepted = co_await accept(std::move(app), id, std::move(request));
  if (!accepted) co_return std::unexpected(accepted.error());
  (*accepted)->stop_collecting();
  // Nothing has been told of this turn yet: it has only just been accepted.
  const Entry live = entry_of(id);
  auto feed = feed_for(live->session());
  TurnStream stream{.turn_index = (*accepted)->index,
                    .reader = std::make_unique<EventReader>(
                        deps_.executor, deps_.ledger, std::move(feed), std::move(id),
                        live->journal().last_event_id(), options_.reader_bytes_max, false)};
  // Whoever is told that it was accepted may come back for its end, also after a restart.
  const auto kept = co_await live->committed();
  if (!kept) co_return std::unexpected(kept.error());
  co_return stream;
}

std::shared_ptr<Feed> Sessions::feed_for(const Session& session) {
  std::weak_ptr<Feed>& place = feeds_[session.id];
  auto feed = place.lock();
  if (!feed) {
    feed = std::make_shared<Feed>(session.last_event_id, options_.reader_bytes_max);
    if (are_event_streams_over_) feed->end(FeedEnd::shutdown);
    place = feed;
  }
  return feed;
}

void Sessions::end_feed(const std::string& id, FeedEnd reason) {
  const auto found = feeds_.find(id);
  if (found == feeds_.end()) return;
  if (const auto feed = found->second.lock()) feed->end(reason);
  feeds_.erase(found);
}

void Sessions::recheck_readers() {
  for (const auto& [id, place] : feeds_) {
    if (const auto feed = place.lock()) feed->poke();
  }
}

void Sessions::end_event_streams() {
  are_event_streams_over_ = true;
  for (const auto& [id, place] : feeds_) {
    if (const auto feed = place.lock()) feed->end(FeedEnd::shutdown);
  }
}

Async<std::unique_ptr<EventReader>> Sessions::read_events(std::string app, std::string id,
                                                          std::int64_t after) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  auto feed = feed_for(*session);
  // What was committed while the row was on its way is in the feed already.
  if (after > std::max(session->last_event_id, feed->last_event_id())) {
    auto error = fail(Errc::invalid, "validation_failed", "after is beyond the newest event.");
    error.error().fields = {{"after", "is beyond the newest event"}};
    co_return error;
  }
  if (session->closed_at && !entry_of(id)) feed->end(FeedEnd::closed);
  co_return std::make_unique<EventReader>(deps_.executor, deps_.ledger, std::move(feed),
                                          std::move(id), after, options_.reader_bytes_max, true);
}

Async<bool> Sessions::cancel(std::string app, std::string id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return closed();
  const Entry live = entry_of(id);
  if (!live || !live->cancel()) co_return false;
  const auto kept = co_await live->committed();
  if (!kept) co_return std::unexpected(kept.error());
  co_return true;
}

Async<std::vector<OpenQuestion>> Sessions::questions(std::string app, std::string id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  const Entry live = entry_of(id);
  if (!live || session->closed_at) co_return std::vector<OpenQuestion>{};
  co_return live->questions().open();
}

Async<void> Sessions::answer(std::string app, std::string id, std::string question_id,
                             PermissionChoice choice) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return closed();
  const Entry live = entry_of(id);
  if (!live) co_return fail(Errc::not_found, "permission_not_found", "There is no such question.");
  auto answered = live->questions().answer(question_id, choice);
  if (!answered) co_return answered;
  co_return co_await live->committed();
}

SessionView Sessions::view_of(Session session) const {
  const Entry live = entry_of(session.id);
  const bool is_open = !session.closed_at;
  // One that was given a moment ago may still be on its way into the row.
  if (is_open && live) {
    session.turn_count = std::max(session.turn_count, live->session().turn_count);
  }
  return {.session = std::move(session),
          .is_live = is_open && live && live->is_live(),
          .is_busy = is_open && live && live->is_busy()};
}

Async<SessionView> Sessions::find(std::string app, std::string id) {
  auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return view_of(std::move(*session));
}

Async<bool> Sessions::close(std::string app, std::string id) {
  auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  bool was_open = false;
  if (!session->closed_at) {
    AuditEvent event{.event = "close", .at = deps_.clock.now()};
    const auto changed = co_await close_row(id, "closed", std::move(event), std::nullopt);
    if (!changed) co_return changed;
    was_open = *changed;
  }
  co_await end_for_good(std::move(id), session->agent_session_id);
  co_return was_open;
}

// An agent that was started meanwhile may have begun another conversation.
Task<void> Sessions::end_for_good(std::string id, std::string agent_session_id) {
  const Entry live = entry_of(id);
  co_await end(id, TurnStop::closed);
  if (live) agent_session_id = live->session().agent_session_id;
  const auto removed = co_await deps_.acpx_records.remove(std::move(agent_session_id));
  if (removed) co_return;
  deps_.log.warn(
      "what acpx has kept of a session could not be removed",
      {{"session", std::string_view(id)}, {"why", std::string_view(removed.error().detail)}});
}

// While the ledger decides, no new turn begins.
Async<bool> Sessions::close_row(std::string id, std::string reason, AuditEvent event,
                                std::optional<TimePoint> idle_since) {
  const Entry live = entry_of(id);
  if (live) live->refuse_turns();
  auto changed = co_await deps_.ledger.close_session(std::move(id), std::move(reason),
                                                     std::move(event), idle_since);
  if (live && (!changed || !*changed)) live->accept_turns();
  co_return changed;
}

Task<void> Sessions::end(std::string id, TurnStop reason) {
  if (const Entry live = entry_of(id)) {
    live->begin_end(reason);
    co_await live->ended();
    forget(*live);
  }
  end_feed(id, FeedEnd::closed);
}

Async<bool> Sessions::sweep(std::string id, TimePoint idle_since) {
  if (const Entry live = entry_of(id); live && live->is_busy()) co_return false;
  AuditEvent event{.event = "sweep_close", .at = deps_.clock.now()};
  auto changed = co_await close_row(id, "idle", std::move(event), idle_since);
  if (changed && *changed) {
    auto cleared = co_await clear(std::move(id));
    if (!cleared) co_return std::unexpected(std::move(cleared.error()));
  }
  co_return changed;
}

Async<void> Sessions::clear(std::string id) {
  const auto row = co_await deps_.ledger.find_session(id);
  co_await end_for_good(std::move(id), row ? row->agent_session_id : "");
  if (!row && row.error().kind != Errc::not_found) co_return std::unexpected(row.error());
  co_return Result<void>{};
}

Async<void> Sessions::follow_ledger() {
  std::vector<std::string> ids;
  for (const auto& [id, live] : live_) {
    // One that is being made has its row for as long as that takes.
    if (live->is_live() || live->is_busy()) ids.push_back(id);
  }
  std::erase_if(feeds_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [id, feed] : feeds_) {
    if (!live_.contains(id)) ids.push_back(id);
  }
  std::erase_if(live_, [](const auto& entry) { return entry.second->is_quiet(); });
  if (ids.empty()) co_return Result<void>{};
  const auto open = co_await deps_.ledger.open_among(ids);
  if (!open) co_return std::unexpected(open.error());
  std::erase_if(ids,
                [&](const std::string& id) { return std::ranges::find(*open, id) != open->end(); });
  for (const std::string& id : ids) {
    if (const Entry live = entry_of(id)) live->begin_end(TurnStop::closed);
  }
  for (const std::string& id : ids) {
    co_await end_for_good(id, "");
    // Whoever closed the row has left the mark of its process there.
    auto forgotten = co_await deps_.ledger.forget_process(id);
    if (!forgotten) co_return forgotten;
  }
  co_return Result<void>{};
}

Async<WorkListing> Sessions::files(std::string app, std::string id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  co_return co_await deps_.dirs.list(std::move(id));
}

Async<std::unique_ptr<WorkFileReader>> Sessions::open_file(std::string app, std::string id,
                                                           std::string path) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  co_return co_await deps_.dirs.open(std::move(id), std::move(path));
}

// The idle agent that can be missed best: one that loads its conversation again, and among
// those the one that has been idle for longest.
void Sessions::make_space() {
  const auto leaving = std::ranges::count_if(
      live_, [](const auto& entry) { return entry.second->seat().is_leaving(); });
  if (static_cast<std::size_t>(leaving) >= pool_.waiting()) return;
  Entry best;
  std::pair<bool, steady_clock::time_point> best_rank;
  for (const auto& [id, live] : live_) {
    const auto idle = live->idle_since();
    if (!idle) continue;
    const std::pair rank(!live->can_reload_conversation(), *idle);
    if (best && best_rank <= rank) continue;
    best = live;
    best_rank = rank;
  }
  if (best) best->sleep();
}

Task<void> Sessions::stop() {
  is_stopping_ = true;
  std::vector<Entry> all;
  for (const auto& [id, live] : live_) all.push_back(live);
  for (const Entry& live : all) live->begin_end(TurnStop::shutdown);
  for (const Entry& live : all) {
    co_await live->ended();
  }
  live_.clear();
  co_await tasks_.join();
}

std::size_t Sessions::live_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(live_, [](const auto& entry) { return entry.second->is_live(); }));
}

std::size_t Sessions::busy_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(live_, [](const auto& entry) { return entry.second->is_busy(); }));
}

}  // namespace clawdforge
