#include "sessions/sessions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/async/hang_up_subscription.h"
#include "base/refusals.h"
#include "quota/budgets/parking.h"
#include "sessions/journal/feeds.h"
#include "sessions/live/session_dependencies.h"
#include "sessions/live/session_refusals.h"
#include "sessions/live_sessions.h"
#include "sessions/session_closer.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kJournalRetryAfter{60};

// A ticket that is ready. One that waits rather than be refused does so until `deadline`.
Async<Ticket> admit_turn(Quota* quota, Parking* parking, std::shared_ptr<const App> app, Work work,
                         bool waits, std::chrono::steady_clock::time_point deadline,
                         HangUp* hang_up) {
  while (true) {
    auto ticket = quota->admit(*app, work);
    std::optional<Failure> refusal;
    if (!ticket) {
      refusal = std::move(ticket.error());
    } else if (auto ready = co_await ticket->ready(); !ready) {
      refusal = std::move(ready.error());
    }
    if (!refusal) co_return std::move(*ticket);
    const bool may_try = waits && co_await parking->wait(app->name, *refusal, deadline, hang_up);
    if (!may_try) co_return std::unexpected(std::move(*refusal));
  }
}

// The owner's directory, where the session works in that; empty: it has one of its own.
std::string shared_path(const SessionWorkspace& workspace) {
  return workspace.is_shared() ? workspace.path : std::string();
}

}  // namespace

struct Sessions::Parts {
  Parts(Dependencies dependencies, Options settings)
      : deps(std::move(dependencies)),
        options(settings),
        feeds(options.reader_bytes_max),
        journal_space(options.journal_bytes_max_per_app),
        live(deps, options, feeds, journal_space),
        closer(deps, live, feeds),
        parking(deps.executor) {}

  const Dependencies deps;
  const Options options;
  Feeds feeds;
  ByteTally journal_space;
  LiveSessions live;
  SessionCloser closer;
  Parking parking;
};

Sessions::Sessions(Dependencies dependencies, Options options)
    : parts_(std::make_unique<Parts>(std::move(dependencies), options)),
      deps_(parts_->deps),
      options_(parts_->options),
      feeds_(parts_->feeds),
      journal_space_(parts_->journal_space),
      live_(parts_->live),
      closer_(parts_->closer) {}

Sessions::~Sessions() = default;

Async<void> Sessions::count_stored() {
  journal_space_.begin_count();
  auto stored = co_await deps_.rows.bytes_by_app(kSessionOverheadBytes, kTurnOverheadBytes);
  if (!stored) co_return std::unexpected(std::move(stored.error()));
  journal_space_.end_count(std::move(*stored));
  co_return Result<void>{};
}

Result<void> Sessions::check_space(const App& app) const {
  if (!journal_space_.is_full(app.name)) return {};
  return fail_for_now(Errc::over_quota, "journal_quota_full",
                      "The sessions of this app, closed ones included, have as many events as they "
                      "may keep; wait until some are deleted.",
                      kJournalRetryAfter);
}

void Sessions::recheck_readers() { feeds_.recheck_readers(); }

void Sessions::end_event_streams() { feeds_.shut_down(); }

Task<void> Sessions::stop() {
  parts_->parking.stop();
  return live_.stop();
}

std::uint64_t Sessions::memory_of(const SessionId& id) const { return live_.memory_of(id); }

void Sessions::sleep_idle() { live_.sleep_idle(); }

std::uint64_t Sessions::sleep_for_memory(std::uint64_t bytes) {
  return live_.sleep_for_memory(bytes);
}

std::size_t Sessions::live_count() const { return live_.live_count(); }

std::size_t Sessions::busy_count() const { return live_.busy_count(); }

Async<Session> Sessions::own(AppName app, SessionId id) {
  auto found = co_await deps_.rows.find(std::move(id), Lane(app));
  if (!found && found.error().kind != Errc::not_found) co_return std::unexpected(found.error());
  if (!found || found->app != app) co_return session_not_found();
  co_return std::move(*found);
}

// What the session was made with may be more than its app may ask for now.
Result<void> Sessions::check_policy(const Policy& policy, const Session& session) const {
  if (auto allowed = check_agent(policy, session.agent); !allowed) return allowed;
  if (auto allowed = check_model(policy, session.model); !allowed) return allowed;
  if (const std::string& name = session.workspace.name; !name.empty()) {
    if (auto allowed = check_workspace(policy, name); !allowed) return allowed;
  }
  return deps_.policies.check_mcp_servers(policy, session.mcp_servers);
}

// A turn that does not want to wait for others who work in the owner's directory.
Result<void> Sessions::check_line(const TurnRequest& request, const Session& session) const {
  const SessionWorkspace& workspace = session.workspace;
  if (request.waits_for_workspace || deps_.workspaces == nullptr || !workspace.is_shared() ||
      workspace.mode != WorkspaceMode::direct ||
      !deps_.workspaces->direct().is_busy(workspace.path)) {
    return {};
  }
  return workspace_busy();
}

// Open, and within what its app may ask for.
Result<void> Sessions::check_for_turn(const App& app, const Session& session) const {
  if (session.closed_at) return session_closed();
  return check_policy(deps_.policies.of(app, session.agent), session);
}

Async<Session> Sessions::own_for_turn(std::shared_ptr<const App> app, SessionId id) {
  auto session = co_await own(app->name, std::move(id));
  if (!session) co_return session;
  auto may = check_for_turn(*app, *session);
  if (!may) co_return std::unexpected(std::move(may.error()));
  co_return session;
}

Async<void> Sessions::check(std::shared_ptr<const App> app, SessionId id, TurnRequest request) {
  const auto session = co_await own_for_turn(app, std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (request.files.empty()) co_return Result<void>{};
  const auto found = co_await deps_.uploads.find(app->name, request.files);
  if (!found) co_return std::unexpected(found.error());
  co_return Result<void>{};
}

// Right before a turn is given to its session.
Result<void> Sessions::check_enqueue(const App& app, const Session& session) const {
  if (live_.is_stopping()) return shutting_down();
  auto allowed = check_policy(deps_.policies.of(app, session.agent), session);
  if (!allowed) return allowed;
  return check_space(app);
}

// The row of the session, or none if memory has what it says: then a live session has it.
Async<std::optional<Session>> Sessions::row_for_turn(std::shared_ptr<const App> app, SessionId id) {
  const auto live = live_.find(id);
  if (live && live->is_row_known() && live->session().app == app->name) {
    auto may = check_for_turn(*app, live->session());
    if (!may) co_return std::unexpected(std::move(may.error()));
    co_return std::nullopt;
  }
  const auto mark = deps_.rows.foreign_mark();
  auto session = co_await own_for_turn(std::move(app), id);
  if (!session) co_return std::unexpected(std::move(session.error()));
  if (const auto found = live_.find(id)) found->note_row_read(mark);
  co_return std::move(*session);
}

// The turn is in the session's queue.
Async<std::shared_ptr<LiveTurn>> Sessions::accept(std::shared_ptr<const App> app, SessionId id,
                                                  TurnRequest request, HangUp* hang_up,
                                                  std::shared_ptr<AskGate> gate) {
  auto read = co_await row_for_turn(app, id);
  if (!read) co_return std::unexpected(std::move(read.error()));
  std::optional<Session> session = std::move(*read);
  auto live = live_.find(id);
  const Session& asked = session ? *session : live->session();
  auto ticket = co_await admit_turn(&deps_.quota, &parts_->parking, app,
                                    {WorkKind::turn, asked.agent, asked.model}, request.waits,
                                    request.received + request.timeout, hang_up);
  if (!ticket) co_return std::unexpected(std::move(ticket.error()));
  request.is_reserved = ticket->has_reservation() || request.key;
  std::vector<Attachment> attachments;
  if (!request.files.empty()) {
    auto found = co_await deps_.uploads.find(app->name, request.files);
    if (!found) co_return std::unexpected(found.error());
    attachments = std::move(*found);
  }
  std::int64_t turns_given = session ? session->turn_count : 0;
  live = live_.find(id);
  if (!live || (!session && !live->is_row_known())) {
    // Now all of it: it will be started. And it may have been at work, and come to rest,
    // since its row was read: then its events and turns have higher numbers by now.
    const auto mark = deps_.rows.foreign_mark();
    auto loaded = co_await deps_.rows.load(id, Lane(app->name));
    if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    if (loaded->closed_at) co_return session_closed();
    turns_given = loaded->turn_count;
    live = live_.find(id);
    if (!live) {
      auto may = check_enqueue(*app, *loaded);
      if (!may) co_return std::unexpected(std::move(may.error()));
      live = live_.find_or_add(std::move(*loaded));
    }
    live->note_row_read(mark);
  }
  if (auto may = check_enqueue(*app, live->session()); !may) {
    co_return std::unexpected(std::move(may.error()));
  }
  if (auto free = check_line(request, live->session()); !free) {
    co_return std::unexpected(std::move(free.error()));
  }
  request.permission_mode_max = permission_mode_max(deps_.policies.of(*app, live->session().agent));
  auto turn =
      live->enqueue(std::move(request), std::move(attachments), turns_given, std::move(gate));
  if (turn) (*turn)->ticket = std::move(*ticket);
  co_return turn;
}

Async<TurnOutcome> Sessions::turn(std::shared_ptr<const App> app, SessionId id, TurnRequest request,
                                  HangUp* hang_up, std::shared_ptr<AskGate> gate) {
  auto accepted = co_await accept(std::move(app), id, std::move(request), hang_up, std::move(gate));
  if (!accepted) co_return std::unexpected(accepted.error());
  const std::shared_ptr<LiveTurn> turn = std::move(*accepted);
  const std::shared_ptr<LiveSession> live = live_.find(id);
  const HangUpSubscription subscription(hang_up, [live, turn] { live->on_caller_gone(turn); });
  auto outcome = co_await live->answer(turn);
  if (auto& ticket = turn->ticket; outcome && ticket) {
    LimitNotice notice = ticket->notice(deps_.clock.now());
    outcome->rate_limit_policy = std::move(notice.policy);
    outcome->rate_limit = std::move(notice.left);
  }
  co_return outcome;
}

Async<TurnStream> Sessions::stream_turn(std::shared_ptr<const App> app, SessionId id,
                                        TurnRequest request) {
  const auto accepted = co_await accept(std::move(app), id, std::move(request), nullptr);
  if (!accepted) co_return std::unexpected(accepted.error());
  (*accepted)->stop_collecting();
  const auto live = live_.find(id);
  TurnStream stream{.turn_index = (*accepted)->index,
                    .reader = std::make_unique<EventReader>(
                        deps_.journal_rows, feeds_.of(live->session()), std::move(id),
                        (*accepted)->first_event_id - 1, options_.reader_bytes_max, false,
                        Lane(live->session().app))};
  // A caller who is told that it was accepted may come back for its end, also after a restart.
  const auto committed = co_await live->committed();
  if (!committed) co_return std::unexpected(committed.error());
  if (const auto& ticket = (*accepted)->ticket) {
    LimitNotice notice = ticket->notice(deps_.clock.now());
    stream.rate_limit_policy = std::move(notice.policy);
    stream.rate_limit = std::move(notice.left);
  }
  co_return stream;
}

Async<std::unique_ptr<EventReader>> Sessions::read_events(AppName app, SessionId id,
                                                          std::int64_t after, bool with_open_turn) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  auto feed = feeds_.of(*session);
  // What was committed while the row was on its way is in the feed already.
  if (after > std::max(session->last_event_id, feed->last_event_id())) {
    auto error = fail(Errc::invalid, "validation_failed", "after is beyond the newest event.");
    error.error().fields = {{"after", "is beyond the newest event"}};
    co_return error;
  }
  if (with_open_turn && after > 0) {
    const auto first = co_await deps_.journal_rows.open_turn_at(id, after, Lane(session->app));
    if (!first) co_return std::unexpected(first.error());
    if (const auto& number = *first) {
      after = std::min(after, std::max<std::int64_t>(*number - 1, 0));
    }
  }
  if (session->closed_at && !live_.find(id)) feed->end(FeedEnd::closed);
  co_return std::make_unique<EventReader>(deps_.journal_rows, std::move(feed), std::move(id), after,
                                          options_.reader_bytes_max, true, Lane(session->app));
}

Async<TurnPage> Sessions::turns(AppName app, SessionId id, std::int64_t after, std::int64_t limit) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  co_return co_await deps_.journal_rows.turns(std::move(id), after, limit, Lane(session->app));
}

Async<bool> Sessions::cancel(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return session_closed();
  const auto live = live_.find(id);
  if (!live || !live->cancel()) co_return false;
  const auto committed = co_await live->committed();
  if (!committed) co_return std::unexpected(committed.error());
  co_return true;
}

Async<std::vector<OpenQuestion>> Sessions::questions(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  const auto live = live_.find(id);
  if (!live || session->closed_at) co_return std::vector<OpenQuestion>{};
  co_return live->questions().open();
}

std::vector<AskedQuestion> Sessions::open_questions(const std::optional<AppName>& app) const {
  std::vector<AskedQuestion> asked;
  live_.each([&](const LiveSession& live) {
    const Session& session = live.session();
    if (live.questions().open_count() == 0 || (app && session.app != *app)) return;
    for (OpenQuestion& question : live.questions().open()) {
      asked.push_back({session.id, session.app, session.agent, session.meta, std::move(question)});
    }
  });
  std::ranges::sort(asked, [](const AskedQuestion& a, const AskedQuestion& b) {
    return std::tie(a.question.expires_at, a.question.id) <
           std::tie(b.question.expires_at, b.question.id);
  });
  return asked;
}

Async<void> Sessions::answer(AppName app, SessionId id, std::string question_id,
                             PermissionChoice choice) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return session_closed();
  const auto live = live_.find(id);
  if (!live) co_return fail(Errc::not_found, "permission_not_found", "There is no such question.");
  auto answered = live->questions().answer(question_id, choice);
  if (!answered) co_return answered;
  co_return co_await live->committed();
}

SessionView Sessions::view_of(Session session) const {
  const auto live = live_.find(session.id);
  const bool is_open = !session.closed_at;
  // One that was given a moment ago may still be on its way into the row.
  if (is_open && live) {
    session.turn_count = std::max(session.turn_count, live->session().turn_count);
  }
  SessionView view{.session = std::move(session)};
  if (view.session.closed_at) view.delete_at = *view.session.closed_at + options_.hard_ttl;
  if (!is_open || !live) return view;
  if (view.session.title.empty()) view.session.title = live->session().title;
  view.is_live = live->is_live();
  view.is_busy = live->is_busy();
  view.turns_waiting = static_cast<std::int64_t>(live->turns().waiting());
  view.questions_open = static_cast<std::int64_t>(live->questions().open().size());
  if (const auto& turn = live->turns().running()) view.turn_started_at = turn->accepted_at;
  view.context = live->context();
  if (view.is_live) view.agent_version = live->seat().opened().version;
  return view;
}

Async<SessionView> Sessions::find(AppName app, SessionId id) {
  auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return view_of(std::move(*session));
}

Async<bool> Sessions::close(AppName app, SessionId id) {
  auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await closer_.close(std::move(*session));
}

Async<WorkListing> Sessions::files(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  co_return co_await deps_.dirs.list(std::move(id).str(), Lane(session->app),
                                     shared_path(session->workspace));
}

Async<std::unique_ptr<WorkFileReader>> Sessions::open_file(AppName app, SessionId id,
                                                           std::string path) {
  const auto session = co_await own(std::move(app), id);
  if (!session) co_return std::unexpected(session.error());
  co_return co_await deps_.dirs.open(std::move(id).str(), std::move(path), Lane(session->app),
                                     shared_path(session->workspace));
}

SessionLoad Sessions::load() const {
  const LiveSessions::Load live = live_.load();
  return {.turns_waiting = live.turns_waiting,
          .questions_open = live.questions_open,
          .answer_bytes = live.answer_bytes,
          .journal_bytes = live.journal_bytes,
          .readers = feeds_.readers(),
          .feed_bytes = feeds_.bytes(),
          .kept_bytes = static_cast<std::size_t>(journal_space_.total()),
          .undropped = closer_.undropped()};
}

}  // namespace clawdforge
