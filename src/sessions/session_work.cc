// What Sessions says and does about the directory that a session's agent works in.
#include <utility>

#include "sessions/live/session_dependencies.h"
#include "sessions/live/session_refusals.h"
#include "sessions/session_closer.h"
#include "sessions/sessions.h"
#include "workspaces/work_streams.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> without_workspaces() {
  return fail(Errc::unavailable, "workspace_unavailable", "This gateway has no workspaces.");
}

}  // namespace

std::string Sessions::work_of(const Session& session) const {
  return Workspaces::work_dir(session.workspace, deps_.dirs.of(session.id.str()).work);
}

Async<WorkDiff> Sessions::diff(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (deps_.workspaces == nullptr) co_return without_workspaces();
  co_return co_await deps_.workspaces->diff(session->id.str(), session->workspace,
                                            work_of(*session), Lane(session->app));
}

Async<std::vector<ChangedFile>> Sessions::changed_files(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (deps_.workspaces == nullptr) co_return without_workspaces();
  co_return co_await deps_.workspaces->changed_files(session->id.str(), session->workspace,
                                                     work_of(*session), Lane(session->app));
}

Async<Committed> Sessions::commit(AppName app, SessionId id, std::string message) {
  const auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return session_closed();
  if (deps_.workspaces == nullptr) co_return without_workspaces();
  co_return co_await deps_.workspaces->commit(session->id.str(), session->workspace,
                                              work_of(*session), std::move(message),
                                              Lane(session->app));
}

Async<std::unique_ptr<WorkArchive>> Sessions::archive(AppName app, SessionId id) {
  const auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (deps_.workspaces == nullptr) co_return without_workspaces();
  co_return co_await deps_.workspaces->archive(session->workspace, work_of(*session),
                                               Lane(session->app));
}

Async<std::unique_ptr<WorkPut>> Sessions::put_file(AppName app, SessionId id, std::string path) {
  const auto session = co_await own(std::move(app), std::move(id));
  if (!session) co_return std::unexpected(session.error());
  if (session->closed_at) co_return session_closed();
  if (deps_.workspaces == nullptr) co_return without_workspaces();
  if (session->workspace.is_shared() && session->workspace.mode == WorkspaceMode::read) {
    co_return fail(Errc::conflict, "workspace_read_only",
                   "The session's workspace may only be read.");
  }
  // One that was never made, because its agent has not been started, has no directory yet.
  const auto made = co_await deps_.dirs.make(session->id.str(), Lane(session->app));
  if (!made) co_return std::unexpected(made.error());
  co_return co_await deps_.workspaces->put(work_of(*session), std::move(path), Lane(session->app));
}

// The mark comes first: whatever ends us after it, the branch stays.
Async<bool> Sessions::close_and_keep(AppName app, SessionId id) {
  const auto session = co_await own(app, id);
  if (!session) co_return std::unexpected(session.error());
  if (deps_.workspaces == nullptr || session->workspace.branch.empty()) {
    co_return fail(Errc::invalid, "not_a_worktree",
                   "Only a session whose workspace has the mode worktree has a branch to keep.");
  }
  const Lane lane(app);
  const auto marked = co_await deps_.workspaces->keep_branch(id.str(), lane);
  if (!marked) co_return std::unexpected(marked.error());
  const auto was_open = co_await closer_.close(*session);
  if (!was_open) co_return was_open;
  const auto committed =
      co_await deps_.workspaces->commit(id.str(), session->workspace, work_of(*session),
                                        "clawdforge: session " + id.str() + "\n", lane);
  if (!committed) co_return std::unexpected(committed.error());
  co_return was_open;
}

}  // namespace clawdforge
