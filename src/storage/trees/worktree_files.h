// What the gateway does itself with the files of a git worktree and of a repository. All of it
// blocks: for the disk's thread.
#pragma once

#include <string>

#include "base/result.h"

namespace clawdforge {

// The directory of a worktree in its repository, as the worktree's own `.git` file names it. Only
// for one that was just made: an agent can write anything there. Errc::unavailable unless it lies
// in `repository`/worktrees.
Result<std::string> worktree_dir_of(const std::string& work, const std::string& repository);

// There may be one already.
Result<void> make_work_dir(const std::string& work);

// Whether there is still a repository.
bool is_repository_there(const std::string& repository);

// Takes a worktree out of the list of its repository. Neither has to be there any more; others of
// the repository stay.
Result<void> forget_worktree(const std::string& repository, const std::string& work);

// A repository of ours beside a directory that has none that can be trusted: its configuration says
// nothing, so no attribute of the directory's files has any effect. `alternate` is where further
// objects are; empty: nowhere. Making it again changes nothing.
Result<void> make_snapshot(const std::string& path, const std::string& alternate, bool is_sha256);

// Replaces `into` by a copy of `from`; both files of git's index.
Result<void> copy_index(const std::string& from, const std::string& into);

}  // namespace clawdforge
