// How a LiveSession gets what its agent works on.
#include <utility>

#include "json/json_members.h"
#include "sessions/live/live_session.h"
#include "storage/homes/earlier_home.h"

namespace clawdforge {
namespace {

// As an update of the agent's own shape, so that readers who know no such method pass it by.
std::string setup_message(const SetupReport& report) {
  std::string text = R"({"jsonrpc":"2.0","method":"clawdforge/setup","params":{"command":[)";
  for (const std::string& part : report.command) {
    if (text.back() != '[') text += ',';
    append_json_string(text, part);
  }
  text += ']';
  append_member(text, "output", report.output);
  append_member(text, "output_truncated", report.is_output_cut);
  append_member(text, "stderr", report.error_tail);
  return text + "}}";
}

}  // namespace

Task<std::optional<Failure>> LiveSession::make_workspace(std::shared_ptr<const ForkSource> source) {
  const auto alive = shared_from_this();
  is_working_ = true;  // a turn that comes meanwhile waits
  auto failure = co_await make_its_workspace(std::move(source));
  if (failure) end_work();
  co_return failure;
}

Task<std::optional<Failure>> LiveSession::make_its_workspace(
    std::shared_ptr<const ForkSource> source) {
  const Lane lane(session_.app);
  const auto dir = co_await deps_.dirs.make(session_.id.str(), lane);
  if (!dir) co_return dir.error();
  auto made = co_await deps_.workspaces->make(session_.workspace,
                                              {.id = session_.id.str(),
                                               .app = session_.app,
                                               .agent = session_.agent,
                                               .own_dir = dir->own,
                                               .work = dir->work,
                                               .temp = dir->temp},
                                              source);
  if (!made) co_return made.error();
  session_.workspace = std::move(made->workspace);
  if (source && !source->agent_session_id.empty() && deps_.earlier_home != nullptr) {
    const auto copied = co_await deps_.earlier_home->copy_for(
        {.from_home = source->home,
         .from_dir = Workspaces::work_dir(source->workspace, source->work),
         .home = dir->home,
         .working_dir = Workspaces::work_dir(session_.workspace, dir->work),
         .agent_session_id = source->agent_session_id},
        lane);
    if (!copied) co_return copied.error();
  }
  const auto noted = co_await deps_.rows.note_workspace(session_.id, session_.workspace, lane);
  if (!noted) co_return noted.error();
  const auto setup = std::move(made->setup);
  if (setup) journal_.append(0, EventKind::update, setup_message(*setup));
  co_return std::nullopt;
}

// A place in the line of the owner's directory, where the turn works in that itself.
DirectTurns::Hold LiveSession::join_line() {
  if (deps_.workspaces == nullptr || !session_.workspace.is_shared() ||
      session_.workspace.mode != WorkspaceMode::direct) {
    return {};
  }
  return deps_.workspaces->direct().join(session_.workspace.path);
}

}  // namespace clawdforge
