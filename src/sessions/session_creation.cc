// How Sessions makes a session: its row first, then its agent; without an agent no session.
#include <utility>

#include "base/async/hang_up_subscription.h"
#include "base/async/timer.h"
#include "base/text.h"
#include "json/json_members.h"
#include "sessions/journal/feeds.h"
#include "sessions/live/session_dependencies.h"
#include "sessions/live/session_refusals.h"
#include "sessions/live_sessions.h"
#include "sessions/session_closer.h"
#include "sessions/sessions.h"

namespace clawdforge {
namespace {

// A line of the audit, of a session that was made, or was not because of `failure`.
AuditEvent creation(const Session& session, TimePoint now, const Failure* failure = nullptr) {
  AuditEvent event{
      .event = failure == nullptr ? "create" : "create_failed", .at = now, .meta = "{"};
  append_member(event.meta, "agent", session.agent);
  append_member(event.meta, "model", unless_empty(session.model));
  if (failure != nullptr) {
    append_member(event.meta, "code", failure->code);
    append_member(event.meta, "error", first_characters(failure->message, kSentenceCharactersMax));
  }
  event.meta += '}';
  return event;
}

std::unexpected<Failure> no_workspaces() {
  return fail(Errc::forbidden, "workspace_not_allowed", "This gateway has no workspaces.");
}

// An agent that was started ahead, in a directory that becomes the session's. It cannot be told
// afterwards where to work and which system prompt it has.
std::unique_ptr<SpareClaim> claim_spare(const SessionDependencies& deps, const Session& session,
                                        bool is_fork) {
  const AgentSpec* const spec = deps.catalog.find(session.agent);
  const bool is_plain = session.workspace.name.empty() && session.system.empty() &&
                        session.mcp_servers.empty() && !is_fork;
  if (spec == nullptr || !is_plain) return nullptr;
  StartOrder order;
  order.spec = *spec;
  order.app = session.app;
  order.permission_mode = session.permission_mode;
  return deps.starter.claim_session(std::move(order));
}

// What its row takes of the app's space.
std::int64_t row_bytes(const Session& session) {
  return kSessionOverheadBytes +
         static_cast<std::int64_t>(session.system.size() + session.meta.size() +
                                   session.mcp_servers.size());
}

}  // namespace

Result<Session> Sessions::new_session(const App& app, SessionRequest request) {
  const Policy policy = deps_.policies.of(app, request.agent);
  if (auto allowed = check_agent(policy, request.agent); !allowed) {
    return std::unexpected(allowed.error());
  }
  const AgentSpec* const spec = deps_.catalog.find(request.agent);
  if (spec == nullptr) return unknown_agent(deps_.catalog, policy);
  // acpx refuses a model that its agent does not tell of, so it gets only what the app asks for.
  if (request.model.empty() && spec->protocol != AgentProtocol::acpx) {
    request.model = spec->default_model;
  }
  if (auto allowed = check_model(policy, request.model); !allowed) {
    return std::unexpected(allowed.error());
  }
  if (auto allowed = deps_.policies.check_mcp_servers(policy, request.mcp_servers); !allowed) {
    return std::unexpected(allowed.error());
  }
  if (!request.webhook.empty()) {
    auto allowed = check_webhook(policy, request.webhook);
    if (!allowed) return std::unexpected(allowed.error());
  }
  const auto mode = permitted_mode(policy, request.permission_mode,
                                   spec->permission_mode.value_or(options_.permission_mode));
  if (!mode) return std::unexpected(mode.error());
  SessionWorkspace workspace;
  if (!request.workspace.empty()) {
    const bool is_held = deps_.starter.holds_read_only(app.name, request.agent);
    auto chosen = deps_.workspaces == nullptr
                      ? Result<SessionWorkspace>(no_workspaces())
                      : deps_.workspaces->choose(policy, request.workspace, is_held);
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    workspace = std::move(*chosen);
  }
  Session session;
  session.workspace = std::move(workspace);
  session.id = SessionId(deps_.ids.uuid());
  session.app = app.name;
  session.agent = std::move(request.agent);
  session.meta = std::move(request.meta);
  session.created_at = deps_.clock.now();
  session.model = std::move(request.model);
  session.system = std::move(request.system);
  session.system_mode = request.system_mode;
  session.effort = std::move(request.effort);
  session.mcp_servers = std::move(request.mcp_servers);
  session.permission_mode = *mode;
  session.webhook = std::move(request.webhook);
  if (!spec->modes.contains(*mode)) return mode_not_supported(*spec, *mode);
  return session;
}

Async<Session> Sessions::create(std::shared_ptr<const App> app, SessionRequest request,
                                HangUp* hang_up) {
  if (live_.is_stopping()) co_return shutting_down();
  const std::shared_ptr<KeyHold> key = request.key;
  const auto answer_of = std::move(request.answer_of);
  std::shared_ptr<const ForkSource> source;
  if (!request.from.empty()) {
    auto found = co_await fork_source(app->name, &request);
    if (!found) co_return std::unexpected(std::move(found.error()));
    source = std::move(*found);
  }
  const SessionId from(request.from);
  auto session = new_session(*app, std::move(request));
  if (!session) co_return session;
  if (source && !source->agent_session_id.empty()) {
    session->agent_session_id = source->agent_session_id;
    session->forked_from = from;
  }
  if (auto space = check_space(*app); !space) co_return std::unexpected(std::move(space.error()));
  const auto ticket =
      deps_.quota.admit(*app, {WorkKind::session_start, session->agent, session->model});
  if (!ticket) co_return std::unexpected(ticket.error());
  const auto spare = claim_spare(deps_, *session, source != nullptr);
  if (spare) session->id = SessionId(spare->id());
  const auto added = co_await deps_.rows.add(*session, deps_.quota.session_limits(*app));
  if (!added) {
    const bool is_kept = may_be_kept(added.error());
    if (is_kept) closer_.drop_later(session->id);
    if (spare && !is_kept) spare->give_back();
    co_return std::unexpected(added.error());
  }
  journal_space_.add_kept(app->name, row_bytes(*session));
  if (live_.is_stopping()) {
    const auto withdrawn = co_await deps_.rows.drop(session->id, Lane(app->name));
    if (!withdrawn) co_return std::unexpected(withdrawn.error());
    co_return shutting_down();
  }
  const auto live = live_.find_or_add(*session);
  std::optional<KeyWrite> kept;
  if (key) kept = key->keep(answer_of(*session), deps_.clock.now());
  const auto started = co_await start_first(live, std::move(source), std::move(kept), hang_up);
  if (key) (started ? key->is_settled : key->is_undone) = true;
  if (started) co_return live->session();
  co_await closer_.undo(live->session(), was_begun(started.error()),
                        creation(*session, deps_.clock.now(), &started.error()));
  co_return std::unexpected(started.error());
}

// What the new session does not say itself, it has from the one that it is forked from.
Async<std::shared_ptr<const ForkSource>> Sessions::fork_source(AppName app,
                                                               SessionRequest* request) {
  const auto owned = co_await own(app, SessionId(request->from));
  if (!owned) co_return std::unexpected(owned.error());
  const auto other = co_await deps_.rows.load(owned->id, Lane(app));
  if (!other) co_return std::unexpected(other.error());
  const auto inherit = [](std::string& field, const std::string& from) {
    if (field.empty()) field = from;
  };
  // Models and efforts are an agent's own.
  if (request->agent.empty() || request->agent == other->agent) {
    inherit(request->model, other->model);
    inherit(request->effort, other->effort);
  }
  inherit(request->agent, other->agent);
  if (request->system.empty()) {
    request->system = other->system;
    request->system_mode = other->system_mode;
  }
  inherit(request->mcp_servers, other->mcp_servers);
  if (!request->permission_mode) request->permission_mode = other->permission_mode;
  request->workspace = other->workspace.name;
  // Claude keeps a conversation in a file, which can be copied; other agents begin a new one.
  const AgentSpec* const spec = deps_.catalog.find(request->agent);
  const bool takes_conversation = spec != nullptr && spec->protocol == AgentProtocol::claude &&
                                  request->agent == other->agent && other->turn_count > 0;
  SessionDir dir = deps_.dirs.of(other->id.str());
  co_return std::make_shared<const ForkSource>(
      ForkSource{.work = std::move(dir.work),
                 .workspace = other->workspace,
                 .home = std::move(dir.home),
                 .agent_session_id = takes_conversation ? other->agent_session_id : std::string()});
}

Async<void> Sessions::start_first(std::shared_ptr<LiveSession> live,
                                  std::shared_ptr<const ForkSource> source,
                                  std::optional<KeyWrite> key, HangUp* hang_up) {
  const bool has_key = key.has_value();
  if (deps_.workspaces != nullptr && (source || !live->session().workspace.name.empty())) {
    const auto failed = co_await live->make_workspace(std::move(source));
    if (failed && live_.is_stopping()) co_return shutting_down();
    if (failed) co_return std::unexpected(*failed);
  }
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
  const auto failure = co_await live->start(
      {.event = creation(live->session(), deps_.clock.now()), .key = std::move(key)});
  if (failure && live_.is_stopping()) co_return shutting_down();
  if (failure && live->is_ending()) co_return session_closed();
  if (failure) co_return std::unexpected(*failure);
  // With a key the caller can come back for it.
  if (hang_up != nullptr && hang_up->has_happened() && !has_key) {
    co_return fail(Errc::gone, "cancelled", "The caller hung up before the session was made.");
  }
  co_return Result<void>{};
}

}  // namespace clawdforge
