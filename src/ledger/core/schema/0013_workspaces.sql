-- What of the owner's directories a session's agent works on: JSON text of an object; null: none.
ALTER TABLE sessions ADD COLUMN workspace TEXT;

-- Git worktrees of sessions and runs in repositories of the owner's. A row is there before its worktree, and
-- goes after it. With keeps_branch the branch stays.
CREATE TABLE worktrees (
  owner_id TEXT NOT NULL PRIMARY KEY,
  repository TEXT NOT NULL,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  keeps_branch BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
