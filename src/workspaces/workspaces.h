// Workspaces gives agents the owner's directories to work on, by their modes: [workspaces.NAME] of
// the configuration (docs/adr/0065-workspaces.md). It makes copies and git worktrees, says what has
// changed in a session's directory, commits, and removes what it has made. Owned by the daemon; io
// thread only. Its owner calls stop() before sessions and runs are stopped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/lane.h"
#include "base/async/signal.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "model/policy.h"
#include "model/session.h"
#include "model/workspace.h"
#include "workspaces/direct_turns.h"
#include "workspaces/workspace_records.h"

namespace clawdforge {

class Disk;
struct ProgramJails;
class Spawner;
class WorkArchive;
class WorkPut;
class WorktreeRows;

class Workspaces {
 public:
  // All outlives it.
  struct Dependencies {
    IoExecutor executor;
    Disk& disk;
    Spawner& spawner;
    WorktreeRows& rows;
    const Clock& clock;
    Log& log;
  };
  struct Options {
    NamedWorkspaces workspaces;
    std::string data_dir;
    std::map<std::string, std::string> environment;  // of a setup
    std::shared_ptr<const ProgramJails> jails =
        nullptr;  // of git and setups; null: none are jailed
  };
  Workspaces(Dependencies deps, Options options);
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // All of them, by name, as they are now. Errc::unavailable of the disk.
  Async<std::vector<WorkspaceListing>> list() const;
  // At start: warns of each that cannot be used.
  Task<void> report_absent();

  // What a session or run that asks for this one is given; nothing is made yet. An empty name is no
  // workspace. Errc::forbidden "workspace_not_allowed"; Errc::invalid "unknown_workspace",
  // "jail_needed" unless the agent `holds_read_only`.
  Result<SessionWorkspace> choose(const Policy& policy, const std::string& name,
                                  bool holds_read_only) const;

  // Makes it for the first time: the copy, or the worktree, and its setup. Errc::unavailable
  // "workspace_absent", "git_failed", or of the disk; Errc::too_large "workspace_too_large";
  // Errc::agent_failed "workspace_setup_failed". After an error remove() takes away what there is.
  // `source`: another session of the same workspace, whose state it begins with; null: none.
  Async<MadeWorkspace> make(SessionWorkspace chosen, WorkspaceUser user,
                            std::shared_ptr<const ForkSource> source = nullptr);
  // Of a run that has ended, and of a session that was not made. The rest is swept: what the
  // ledger's rows know of sessions that are not there any more.
  Task<void> remove(std::string user_id, Lane lane);
  Async<void> sweep();
  // At start, before anything is made.
  Async<void> recover(std::vector<SessionId> session_ids);
  void remove_again();
  void forget_snapshot(std::string session_id);

  // Where the session's agent works.
  static std::string work_dir(const SessionWorkspace& workspace, const std::string& own_work);

  // Against the session's beginning. `work` is where its agent works.
  Async<WorkDiff> diff(std::string session_id, SessionWorkspace workspace, std::string work,
                       Lane lane);
  Async<std::vector<ChangedFile>> changed_files(std::string session_id, SessionWorkspace workspace,
                                                std::string work, Lane lane);
  // All that is in a session's worktree, on its branch. Errc::invalid "not_a_worktree";
  // Errc::conflict "branch_gone".
  Async<Committed> commit(std::string session_id, SessionWorkspace workspace, std::string work,
                          std::string message, Lane lane);
  // The branch stays when the session goes.
  Async<void> keep_branch(std::string session_id, Lane lane);

  // All that is in `work`, but for the worktree's own `.git`.
  Async<std::unique_ptr<WorkArchive>> archive(SessionWorkspace workspace, std::string work,
                                              Lane lane);
  Async<std::unique_ptr<WorkPut>> put(std::string work, std::string path, Lane lane);

  // Who is at work in directories of mode `direct`.
  DirectTurns& direct() { return direct_; }

  // Ends what runs, and refuses more.
  void stop();

 private:
  class Snapped;  // the right to work on a session's snapshot
  struct Parts;

  Async<std::string> usable_path(std::string name, Lane lane) const;
  Async<void> copy_tree(std::string from, std::string into, std::string left_out, Lane lane);
  Async<SessionWorkspace> add_worktree(SessionWorkspace workspace, WorkspaceUser user,
                                       std::shared_ptr<const ForkSource> source);
  Async<SetupReport> set_up(std::vector<std::string> command, WorkspaceUser user,
                            std::string repository);
  Async<std::string> snap(std::string id, std::string work, std::string alternate, bool is_sha256,
                          Lane lane);
  Async<std::string> taken_in(std::string id, SessionWorkspace workspace, std::string work,
                              Lane lane);
  Async<Committed> commit_tree(std::string session_id, SessionWorkspace workspace, std::string tree,
                               std::string message, Lane lane);
  Async<void> remove_worktree(Worktree worktree);

  const Dependencies deps_;
  const Options options_;
  const std::unique_ptr<Parts> parts_;
  DirectTurns direct_;
  std::set<std::string> in_use_;   // runs that have a worktree
  std::set<std::string> snapped_;  // sessions whose snapshot is being worked on
  Signal snapped_changed_;
};

}  // namespace clawdforge
