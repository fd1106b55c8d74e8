// How Workspaces makes a copy or a worktree, and what it says and does about its changes.
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/text.h"
#include "ledger/rows/worktree_rows.h"
#include "storage/disk/disk.h"
#include "storage/trees/tree_copy.h"
#include "storage/trees/worktree_files.h"
#include "workspaces/workspace_parts.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kSetupTimeMax{600};
constexpr std::size_t kSetupOutputBytesMax = 64 * 1024;
constexpr std::string_view kEmptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

// The lines of what git said.
std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string branch_of(std::string pattern, const WorkspaceUser& user) {
  const std::pair<std::string_view, const std::string&> marks[] = {{"{app}", user.app.str()},
                                                                   {"{session}", user.id}};
  for (const auto& [mark, value] : marks) {
    const std::size_t at = pattern.find(mark);
    if (at != pattern.npos) pattern.replace(at, mark.size(), value);
  }
  return pattern;
}

std::unexpected<Failure> not_a_worktree() {
  return fail(Errc::invalid, "not_a_worktree",
              "Only a session whose workspace has the mode worktree has a branch.");
}

}  // namespace

Async<void> Workspaces::copy_tree(std::string from, std::string into, std::string left_out,
                                  Lane lane) {
  const auto copy =
      std::make_shared<TreeCopy>(std::move(from), std::move(into), std::move(left_out));
  Result<bool> stepped = false;
  while (stepped && !*stepped) {
    stepped = co_await deps_.disk.call(lane, [copy] { return copy->step(); });
  }
  if (!stepped) co_return std::unexpected(std::move(stepped.error()));
  co_return Result<void>{};
}

// A snapshot with nothing in it, or with what is in `work`; gives its tree.
Async<std::string> Workspaces::snap(std::string id, std::string work, std::string alternate,
                                    bool is_sha256, Lane lane) {
  auto made = co_await parts_->snapshots.make(id, std::move(alternate), is_sha256, std::move(lane));
  if (made) made = co_await parts_->snapshots.take_in(id, std::move(work));
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return co_await parts_->snapshots.tree(std::move(id));
}

Async<MadeWorkspace> Workspaces::make(SessionWorkspace chosen, WorkspaceUser user,
                                      std::shared_ptr<const ForkSource> source) {
  MadeWorkspace made{.workspace = std::move(chosen), .setup = std::nullopt};
  SessionWorkspace& workspace = made.workspace;
  const Lane lane(user.app);
  if (!workspace.name.empty()) {
    auto path = co_await usable_path(workspace.name, lane);
    if (!path) co_return std::unexpected(std::move(path.error()));
    workspace.path = std::move(*path);
  }
  if (workspace.mode == WorkspaceMode::read) co_return made;
  if (user.is_run && workspace.is_shared()) co_return made;  // no caller asks what a run changed
  auto there = co_await deps_.disk.call(lane, [work = user.work] { return make_work_dir(work); });
  if (!there) co_return std::unexpected(std::move(there.error()));
  bool needs_tree = true;
  if (workspace.mode == WorkspaceMode::worktree) {
    auto added = co_await add_worktree(workspace, user, source);
    if (!added) co_return std::unexpected(std::move(added.error()));
    workspace = std::move(*added);
    needs_tree = workspace.base.empty();
  } else if (workspace.mode == WorkspaceMode::copy) {
    auto copied = co_await copy_tree(source ? source->work : workspace.path, user.work, {}, lane);
    if (!copied) co_return std::unexpected(std::move(copied.error()));
  }
  const auto table = options_.workspaces.find(workspace.name);
  if (!source && table != options_.workspaces.end() && !table->second.setup.empty()) {
    auto setup = co_await set_up(table->second.setup, user, workspace.repository);
    if (!setup) co_return std::unexpected(std::move(setup.error()));
    made.setup = std::move(*setup);
    needs_tree = true;
  }
  if (needs_tree) {
    const bool is_worktree = workspace.mode == WorkspaceMode::worktree;
    auto tree = is_worktree
                    ? co_await taken_in(user.id, workspace, user.work, lane)
                    : co_await snap(user.id, work_dir(workspace, user.work), {}, false, lane);
    if (!tree) co_return std::unexpected(std::move(tree.error()));
    workspace.base = std::move(*tree);
  }
  co_return made;
}

Async<SessionWorkspace> Workspaces::add_worktree(SessionWorkspace workspace, WorkspaceUser user,
                                                 std::shared_ptr<const ForkSource> source) {
  const Lane lane(user.app);
  const auto told = co_await parts_->git.run(
      {.directory = workspace.path,
       .arguments = {"rev-parse", "--path-format=absolute", "--git-common-dir",
                     "--show-object-format", "HEAD^{commit}"}});
  if (!told) co_return std::unexpected(told.error());
  const std::vector<std::string> lines = lines_in(*told);
  if (lines.size() != 3) {
    co_return fail(Errc::unavailable, "git_failed", "The workspace has no commit to begin with.");
  }
  workspace.repository = lines[0];
  std::string begin = lines[2];
  workspace.branch = branch_of(options_.workspaces.at(workspace.name).branch, user);
  if (source) {
    const auto head = co_await parts_->git.run(
        {.git_dir = workspace.repository,
         .arguments = {"rev-parse", "--verify",
                       "refs/heads/" + source->workspace.branch + "^{commit}"}});
    if (!head) co_return std::unexpected(head.error());
    begin = lines_in(*head).at(0);
  }
  // Before anything is in the repository: whatever ends us, the next start knows what to remove.
  if (user.is_run) in_use_.insert(user.id);
  auto added = co_await deps_.rows.add({.owner_id = user.id,
                                        .repository = workspace.repository,
                                        .path = user.work,
                                        .branch = workspace.branch},
                                       deps_.clock.now(), lane);
  if (!added) co_return std::unexpected(std::move(added.error()));
  Snapped alone(*this, workspace.repository);
  co_await alone.wait();
  const auto made =
      co_await parts_->git.run({.git_dir = workspace.repository,
                                .arguments = {"worktree", "add", "--no-checkout", "-q", "-b",
                                              workspace.branch, "--", user.work, begin},
                                .sees = {{.path = user.work, .is_writable = true}}});
  alone.end();
  if (!made) co_return std::unexpected(made.error());
  auto own = co_await deps_.disk.call(lane, [work = user.work, repository = workspace.repository] {
    return worktree_dir_of(work, repository);
  });
  if (!own) co_return std::unexpected(std::move(own.error()));
  workspace.git_dir = std::move(*own);
  auto done = co_await parts_->snapshots.make(user.id, workspace.repository + "/objects",
                                              lines[1] == "sha256", lane);
  if (done) done = co_await parts_->snapshots.read_tree(user.id, user.work, begin, !source);
  if (done && source) done = co_await copy_tree(source->work, user.work, ".git", lane);
  if (done) {
    done = co_await deps_.disk.call(
        lane, [from = parts_->snapshots.path_of(user.id) + "/index",
               into = workspace.git_dir + "/index"] { return copy_index(from, into); });
  }
  if (!done) co_return std::unexpected(std::move(done.error()));
  if (!source) workspace.base = std::move(begin);
  co_return workspace;
}

Async<SetupReport> Workspaces::set_up(std::vector<std::string> command, WorkspaceUser user,
                                      std::string repository) {
  SetupReport report{.command = command};
  SetupBounds bounds;
  if (options_.jails && options_.jails->setup) {
    bounds = options_.jails->setup(command, user, repository);
  }
  ProgramOrder order{.plan = {.argv = std::move(command),
                              .environment = options_.environment,
                              .working_dir = user.work,
                              .own_dir = user.own_dir,
                              .jail = std::move(bounds.jail),
                              .limits = bounds.limits},
                     .output_bytes_max = kSetupOutputBytesMax,
                     .time_max = kSetupTimeMax};
  order.plan.environment.insert_or_assign("TMPDIR", user.temp);
  if (order.plan.jail) order.plan.environment.insert_or_assign("HOME", user.temp);
  for (const auto& [name, value] : bounds.environment) {
    order.plan.environment.insert_or_assign(name, value);
  }
  order.serve_net = std::move(bounds.serve_net);
  order.ends_when_cut = false;
  auto end = co_await parts_->programs.run(std::move(order));
  if (!end) co_return std::unexpected(std::move(end.error()));
  report.output = std::move(end->output);
  report.is_output_cut = end->is_cut;
  report.error_tail = end->error_tail;
  if (!end->is_late && end->status == ExitStatus(Exited{0})) co_return report;
  auto failed = fail(
      Errc::agent_failed, "workspace_setup_failed",
      end->is_late ? "The workspace's setup did not end in time." : "The workspace's setup failed.",
      end->error_tail);
  failed.error().error_tail = end->error_tail;
  co_return failed;
}

// The index of the session's snapshot is what lies in its directory now; gives its tree.
Async<std::string> Workspaces::taken_in(std::string id, SessionWorkspace workspace,
                                        std::string work, Lane lane) {
  if (workspace.name.empty()) {
    auto made = co_await parts_->snapshots.make(id, {}, false, lane);
    if (!made) co_return std::unexpected(std::move(made.error()));
  }
  const auto taken = co_await parts_->snapshots.take_in(id, std::move(work));
  if (!taken) co_return std::unexpected(taken.error());
  co_return co_await parts_->snapshots.tree(std::move(id));
}

Async<WorkDiff> Workspaces::diff(std::string session_id, SessionWorkspace workspace,
                                 std::string work, Lane lane) {
  if (workspace.mode == WorkspaceMode::read) co_return WorkDiff{};
  Snapped snapped(*this, session_id);
  co_await snapped.wait();
  const auto tree = co_await taken_in(session_id, workspace, std::move(work), std::move(lane));
  if (!tree) co_return std::unexpected(tree.error());
  co_return co_await parts_->snapshots.diff(std::move(session_id), workspace.base.empty()
                                                                       ? std::string(kEmptyTree)
                                                                       : std::move(workspace.base));
}

Async<std::vector<ChangedFile>> Workspaces::changed_files(std::string session_id,
                                                          SessionWorkspace workspace,
                                                          std::string work, Lane lane) {
  if (workspace.mode == WorkspaceMode::read) co_return std::vector<ChangedFile>();
  Snapped snapped(*this, session_id);
  co_await snapped.wait();
  const auto tree = co_await taken_in(session_id, workspace, std::move(work), std::move(lane));
  if (!tree) co_return std::unexpected(tree.error());
  co_return co_await parts_->snapshots.changed_files(
      std::move(session_id),
      workspace.base.empty() ? std::string(kEmptyTree) : std::move(workspace.base));
}

Async<Committed> Workspaces::commit(std::string session_id, SessionWorkspace workspace,
                                    std::string work, std::string message, Lane lane) {
  if (workspace.mode != WorkspaceMode::worktree || workspace.branch.empty()) {
    co_return not_a_worktree();
  }
  Snapped snapped(*this, session_id);
  co_await snapped.wait();
  const auto tree = co_await taken_in(session_id, workspace, std::move(work), lane);
  if (!tree) co_return std::unexpected(tree.error());
  co_return co_await commit_tree(std::move(session_id), std::move(workspace), *tree,
                                 std::move(message), std::move(lane));
}

// Its objects go into the repository as one pack, and then the branch is moved. Only the last two
// calls read the repository's configuration, and neither does anything that it could direct.
Async<Committed> Workspaces::commit_tree(std::string session_id, SessionWorkspace workspace,
                                         std::string tree, std::string message, Lane lane) {
  const std::string ref = "refs/heads/" + workspace.branch;
  const auto head =
      co_await parts_->git.call({.git_dir = workspace.repository,
                                 .arguments = {"rev-parse", ref + "^{commit}", ref + "^{tree}"}});
  if (!head) co_return std::unexpected(head.error());
  const std::vector<std::string> now = lines_in(head->output);
  if (!head->is_good() || now.size() != 2) {
    co_return fail(Errc::conflict, "branch_gone",
                   "The session's branch is not in the repository any more.");
  }
  if (now[1] == tree) co_return Committed{.id = now[0], .is_new = false};
  const std::string snapshot = parts_->snapshots.path_of(session_id);
  auto made = co_await parts_->git.run({.git_dir = snapshot,
                                        .arguments = {"commit-tree", tree, "-p", now[0]},
                                        .input = std::move(message)});
  if (!made) co_return std::unexpected(std::move(made.error()));
  const std::string id = lines_in(*made).at(0);
  const std::string objects = workspace.repository + "/objects";
  const auto packed = co_await parts_->git.run(
      {.git_dir = snapshot,
       .arguments = {"pack-objects", "-q", "--revs", objects + "/pack/pack"},
       .environment = {{"GIT_OBJECT_DIRECTORY", objects},
                       {"GIT_ALTERNATE_OBJECT_DIRECTORIES", snapshot + "/objects"}},
       .input = fmt::format("{}\n^{}\n", id, now[0]),
       .sees = {{.path = workspace.repository, .is_writable = true}}});
  if (!packed) co_return std::unexpected(packed.error());
  const auto moved =
      co_await parts_->git.run({.git_dir = workspace.repository,
                                .arguments = {"update-ref", "-m", "clawdforge", ref, id, now[0]}});
  if (!moved) co_return std::unexpected(moved.error());
  const auto shown = co_await deps_.disk.call(
      std::move(lane), [from = snapshot + "/index", into = workspace.git_dir + "/index"] {
        return copy_index(from, into);
      });
  if (!shown) {
    deps_.log.warn("the index of a worktree does not show its commit",
                   {{"why", std::string_view(shown.error().detail)}});
  }
  co_return Committed{.id = id, .is_new = true};
}

}  // namespace clawdforge
