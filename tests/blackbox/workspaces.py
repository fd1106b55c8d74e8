"""Directories of the owner's for tests: tables, repositories, and what is left in them."""
import json
import subprocess


def workspace(name, path, mode, **keys):
    """One [workspaces.NAME]."""
    lines = [f"[workspaces.{name}]", f"path = {json.dumps(str(path))}", f'mode = "{mode}"']
    return "\n".join(lines + [f"{key} = {json.dumps(value)}" for key, value in keys.items()]) + "\n"


def git(repository, *arguments):
    """What the owner's own git says."""
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True,
                          timeout=60, check=True,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent",
                               "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "Owner",
                               "GIT_AUTHOR_EMAIL": "owner@example.org",
                               "GIT_COMMITTER_NAME": "Owner",
                               "GIT_COMMITTER_EMAIL": "owner@example.org"})
    return done.stdout


def repository(path):
    """A small one: README.md, src/main.txt, a link, and a .gitignore."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    (path / "README.md").write_text("# readme\n")
    (path / "src").mkdir()
    (path / "src" / "main.txt").write_text("one\ntwo\n")
    (path / "link").symlink_to("README.md")
    (path / ".gitignore").write_text("ignored\n")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "first")
    return path


def branches(path):
    return git(path, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def worktrees(path):
    """Beside the repository itself."""
    return git(path, "worktree", "list", "--porcelain").count("worktree ") - 1


def assert_clean(path, *kept):
    """Nothing is left but these branches."""
    assert sorted(branches(path)) == sorted(["main", *kept])
    assert worktrees(path) == 0
    assert not (path / ".git" / "worktrees").exists()
    assert git(path, "status", "--porcelain") == ""
    git(path, "fsck", "--strict")
