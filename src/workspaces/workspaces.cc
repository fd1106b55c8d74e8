#include "workspaces/workspaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ledger/rows/worktree_rows.h"
#include "storage/disk/disk.h"
#include "storage/trees/worktree_files.h"
#include "workspaces/work_streams.h"
#include "workspaces/workspace_look.h"
#include "workspaces/workspace_parts.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kSweptWorktreesMax = 1'000;  // of one sweep; the next goes on

}  // namespace

Workspaces::Workspaces(Dependencies deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      parts_(std::make_unique<Parts>(deps_.executor, deps_.spawner, deps_.disk, deps_.log,
                                     options_.data_dir,
                                     options_.jails ? options_.jails->git : GitJail())) {}

Workspaces::~Workspaces() = default;

Async<std::vector<WorkspaceListing>> Workspaces::list() const {
  if (options_.workspaces.empty()) co_return std::vector<WorkspaceListing>();
  co_return co_await deps_.disk.call(
      Lane(),
      [all = options_.workspaces,
       own = options_.data_dir]() -> Result<std::vector<WorkspaceListing>> {
        std::vector<WorkspaceListing> listings;
        for (const auto& [name, workspace] : all) {
          listings.push_back({name, workspace.mode, look_at(workspace, own).why_not.empty()});
        }
        return listings;
      });
}

Task<void> Workspaces::report_absent() {
  for (const auto& [name, workspace] : options_.workspaces) {
    const auto look = co_await deps_.disk.call(
        Lane(), [wanted = workspace, own = options_.data_dir]() -> Result<WorkspaceLook> {
          return look_at(wanted, own);
        });
    if (!look || look->why_not.empty()) continue;
    deps_.log.warn("a workspace cannot be used, and is answered 503 until it can",
                   {{"workspace", std::string_view(name)},
                    {"path", std::string_view(workspace.path)},
                    {"why", std::string_view("it " + look->why_not)}});
  }
}

Result<SessionWorkspace> Workspaces::choose(const Policy& policy, const std::string& name,
                                            bool holds_read_only) const {
  if (name.empty()) return SessionWorkspace{};
  if (auto allowed = check_workspace(policy, name); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto found = options_.workspaces.find(name);
  if (found == options_.workspaces.end()) {
    return fail(
        Errc::invalid, "unknown_workspace",
        "There is no workspace of this name; clawdforge workspace list shows those there are.");
  }
  if (found->second.mode == WorkspaceMode::read && !holds_read_only) return jail_needed();
  return SessionWorkspace{.name = name, .mode = found->second.mode};
}

Async<std::string> Workspaces::usable_path(std::string name, Lane lane) const {
  const auto found = options_.workspaces.find(name);
  if (found == options_.workspaces.end()) {
    co_return fail(Errc::unavailable, "workspace_absent",
                   "The workspace is not configured any more.");
  }
  auto look = co_await deps_.disk.call(
      std::move(lane),
      [wanted = found->second, own = options_.data_dir]() -> Result<WorkspaceLook> {
        return look_at(wanted, own);
      });
  if (!look) co_return std::unexpected(std::move(look.error()));
  if (look->why_not.empty()) co_return std::move(look->path);
  co_return fail(Errc::unavailable, "workspace_absent",
                 "The workspace cannot be used now; the gateway's owner can see why with "
                 "clawdforge doctor.",
                 fmt::format("workspace {} {}", name, look->why_not));
}

std::string Workspaces::work_dir(const SessionWorkspace& workspace, const std::string& own_work) {
  return workspace.is_shared() ? workspace.path : own_work;
}

Task<void> Workspaces::remove(std::string user_id, Lane lane) {
  parts_->snapshots.remove(user_id, std::move(lane));
  const auto worktree = co_await deps_.rows.find(user_id);
  Result<void> removed;
  if (!worktree) {
    removed = std::unexpected(worktree.error());
  } else if (const std::optional<Worktree>& found = *worktree) {
    removed = co_await remove_worktree(*found);
  }
  in_use_.erase(user_id);
  if (removed) co_return;
  deps_.log.warn("a worktree is left to the sweeper",
                 {{"why", std::string_view(removed.error().detail)}});
}

// The row goes last: until then the next sweep, or the next start, tries again.
Async<void> Workspaces::remove_worktree(Worktree worktree) {
  auto known = co_await deps_.disk.call(
      Lane(), [repository = worktree.repository, path = worktree.path]() -> Result<bool> {
        auto forgotten = forget_worktree(repository, path);
        if (!forgotten) return std::unexpected(std::move(forgotten.error()));
        return is_repository_there(repository);
      });
  if (!known) co_return std::unexpected(std::move(known.error()));
  if (*known && !worktree.keeps_branch) {
    const std::string ref = "refs/heads/" + worktree.branch;
    const auto shown = co_await parts_->git.call(
        {.git_dir = worktree.repository, .arguments = {"show-ref", "--verify", "-q", ref}});
    if (!shown) co_return std::unexpected(shown.error());
    if (shown->is_good()) {
      const auto deleted = co_await parts_->git.run(
          {.git_dir = worktree.repository, .arguments = {"update-ref", "-d", ref}});
      if (!deleted) co_return std::unexpected(deleted.error());
    }
  }
  co_return co_await deps_.rows.remove(std::move(worktree.owner_id));
}

Async<void> Workspaces::sweep() {
  const auto left = co_await deps_.rows.without_session(kSweptWorktreesMax);
  if (!left) co_return std::unexpected(left.error());
  for (const Worktree& worktree : *left) {
    if (in_use_.contains(worktree.owner_id)) continue;
    const auto removed = co_await remove_worktree(worktree);
    if (removed) continue;
    if (removed.error().cause == Cause::ledger_away) co_return removed;
    deps_.log.warn("a worktree cannot be removed; the next sweep tries again",
                   {{"repository", std::string_view(worktree.repository)},
                    {"branch", std::string_view(worktree.branch)},
                    {"why", std::string_view(removed.error().detail)}});
  }
  co_return Result<void>{};
}

Async<void> Workspaces::recover(std::vector<SessionId> session_ids) {
  std::vector<std::string> ids;
  for (SessionId& id : session_ids) ids.push_back(std::move(id).str());
  const auto kept = co_await parts_->snapshots.keep_only(std::move(ids));
  if (!kept) co_return std::unexpected(kept.error());
  co_return Result<void>{};
}

void Workspaces::remove_again() { parts_->snapshots.remove_again(); }

void Workspaces::forget_snapshot(std::string session_id) {
  parts_->snapshots.remove(std::move(session_id), Lane());
}

Async<void> Workspaces::keep_branch(std::string session_id, Lane lane) {
  return deps_.rows.keep_branch(std::move(session_id), std::move(lane));
}

Async<std::unique_ptr<WorkArchive>> Workspaces::archive(SessionWorkspace workspace,
                                                        std::string work, Lane lane) {
  return WorkArchive::open(std::move(work), workspace.branch.empty() ? "" : ".git", std::move(lane),
                           &deps_.disk);
}

Async<std::unique_ptr<WorkPut>> Workspaces::put(std::string work, std::string path, Lane lane) {
  return WorkPut::begin(std::move(work), std::move(path), std::move(lane), &deps_.disk);
}

void Workspaces::stop() { parts_->programs.stop(); }

}  // namespace clawdforge
