"""Sessions and runs at work on directories of the owner's, in their four modes."""
import concurrent.futures
import io
import json
import os
import sqlite3
import tarfile
import threading

import pytest

from agents import NUMBERS, fake_env
from answers import assert_error, status_of
from gateway import Gateway, wait_until
from sessions import Session, Talker, agent_table, assert_created, session_options
from workspaces import assert_clean, branches, git, repository, workspace, worktrees


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def forge(place):
    repository(place / "repo")
    plain = place / "plain"
    plain.mkdir()
    (plain / "a.txt").write_text("a\n")
    (plain / "out").symlink_to("/etc")
    os.mkfifo(plain / "pipe")
    more = workspace("tree", place / "repo", "worktree")
    more += workspace("copy", plain, "copy", setup=["sh", "-c", "echo made > made.txt; echo said"])
    more += workspace("broken", plain, "copy", setup=["sh", "-c", "echo why >&2; exit 3"])
    more += workspace("direct", place / "repo", "direct")
    more += workspace("read", plain, "read")
    more += workspace("gone", place / "gone", "copy")
    gateway = Gateway(place / "gateway", **session_options(place, more=more)).start()
    yield gateway
    gateway.finish()


@pytest.fixture
def app(forge):
    return Talker(forge, f"app-{next(NUMBERS)}", workspaces=["*"])


def write(path, content):
    return {"write": {"path": path, "content": content}}


def stat_of(session):
    return session.app.get(session.path + "/diff", stat=1).json()


def delete(session, **body):
    return session.app.client().request("DELETE", session.path, json=body)


def hard_delete(forge):
    """As if all closed sessions had had their time."""
    with sqlite3.connect(forge.data_dir / "clawdforge.db", timeout=10) as ledger:
        ledger.execute("UPDATE sessions SET closed_at = 1 WHERE closed_at IS NOT NULL")
    ledger.close()
    assert forge.admin.post("/admin/sweep").status_code == 200


# Who may have what

def test_only_what_the_policy_names(forge):
    app = Talker(forge, f"app-{next(NUMBERS)}", workspaces=["copy"])
    assert_error(app.create(workspace="tree"), 403, "workspace_not_allowed")
    assert_error(app.create(workspace="unheard"), 403, "workspace_not_allowed")
    assert_error(app.run("x", workspace="tree"), 403, "workspace_not_allowed")
    session = app.session(workspace="copy")
    forge.admin.patch(f"/admin/tokens/{app.name}", json={"workspaces": ["tree"]})
    assert_error(session.turn("x"), 403, "workspace_not_allowed")
    assert delete(session).status_code == 200


def test_what_cannot_be_had_is_told(app):
    assert_error(app.create(workspace="unheard"), 422, "unknown_workspace")
    assert_error(app.create(workspace="gone"), 503, "workspace_absent")
    assert app.ids() == []


# Copies

def test_a_copy_is_the_sessions_own(app, place):
    session = app.session(workspace="copy")
    told = session.report("process")
    assert told["cwd"] == str(session.work())
    assert sorted(told["files"]) == ["a.txt", "made.txt", "out"]
    assert os.readlink(session.work() / "out") == "/etc", "a link is copied, not followed"
    session.ask(write("a.txt", "b\n"), write("new.txt", "n\n"))
    assert (place / "plain" / "a.txt").read_text() == "a\n"
    shown = app.get(session.path).json()
    assert (shown["workspace"], shown["workspace_mode"]) == ("copy", "copy")
    assert stat_of(session) == {
        "files": [{"path": "a.txt", "added": 1, "removed": 1, "binary": False},
                  {"path": "new.txt", "added": 1, "removed": 0, "binary": False}],
        "added": 2, "removed": 1}
    diff = app.get(session.path + "/diff")
    assert diff.headers["content-type"].startswith("text/x-diff")
    assert "-a\n+b\n" in diff.text and "+++ b/new.txt" in diff.text
    session.close()


def test_the_setup_is_in_the_journal(app):
    session = app.session(workspace="copy")
    events = app.get(session.path + "/events").json()["events"]
    setup = events[0]
    assert (setup["turn_index"], setup["event"]) == (0, "update")
    assert setup["data"]["method"] == "clawdforge/setup"
    assert setup["data"]["params"]["output"] == "said\n"
    assert stat_of(session)["files"] == [], "what it has made is part of the beginning"
    session.close()


def test_a_setup_that_fails_leaves_no_session(app):
    body = assert_error(app.create(workspace="broken"), 502, "workspace_setup_failed")
    assert "why" in body["stderr"]
    assert app.ids(include_closed=True) == []


# Worktrees

def test_a_worktree_has_its_branch_and_goes_with_the_session(app, forge, place):
    session = app.session(workspace="tree")
    branch = f"clawdforge/{app.name}/{session.id}"
    assert app.get(session.path).json()["branch"] == branch
    assert branch in branches(place / "repo") and worktrees(place / "repo") >= 1
    assert git(session.work(), "status", "--porcelain") == ""
    session.ask(write("README.md", "# changed\n"), write("src/new.txt", "n\n"),
                write("ignored", "x"))
    assert {file["path"] for file in stat_of(session)["files"]} == {"README.md", "src/new.txt"}
    assert (place / "repo" / "README.md").read_text() == "# readme\n"
    done = app.client().post(session.path + "/commit", json={"message": "by an agent"})
    assert done.status_code == 200, done.text
    commit = done.json()["commit"]
    assert done.json() == {"ok": True, "commit": commit, "new": True}
    assert git(place / "repo", "rev-parse", branch).strip() == commit
    assert git(place / "repo", "show", f"{branch}:README.md") == "# changed\n"
    assert "by an agent" in git(place / "repo", "log", "-1", "--format=%B", branch)
    assert git(session.work(), "status", "--porcelain") == "", "its index knows of the commit"
    again = app.client().post(session.path + "/commit", json={"message": "nothing"})
    assert again.json() == {"ok": True, "commit": commit, "new": False}
    session.close()
    assert branch in branches(place / "repo"), "it goes with the hard delete"
    hard_delete(forge)
    wait_until(lambda: branch not in branches(place / "repo"), "the branch goes")
    git(place / "repo", "fsck", "--strict")


def test_a_kept_branch_has_everything(app, forge, place):
    session = app.session(workspace="tree")
    branch = app.get(session.path).json()["branch"]
    session.ask(write("kept.txt", "k\n"))
    assert delete(session, keep=True).json() == {"ok": True}
    hard_delete(forge)
    wait_until(lambda: not session.work().exists(), "the directory goes")
    assert git(place / "repo", "show", f"{branch}:kept.txt") == "k\n"
    git(place / "repo", "branch", "-D", branch)
    other = app.session(workspace="copy")
    assert_error(delete(other, keep=True), 422, "not_a_worktree")
    assert_error(app.client().post(other.path + "/commit", json={"message": "m"}), 422,
                 "not_a_worktree")
    other.close()


def test_it_survives_a_restart_and_a_kill(place, new_gateway):
    repo = repository(place / f"repo-{next(NUMBERS)}")
    forge = new_gateway(**session_options(place, more=workspace("tree", repo, "worktree")))
    app = Talker(forge, workspaces=["tree"])
    session = app.session(workspace="tree")
    session.ask(write("one.txt", "1\n"))
    branch = app.get(session.path).json()["branch"]
    forge.kill()
    forge.start()
    assert session.ask(write("two.txt", "2\n"))["resumed"] is True
    assert {file["path"] for file in stat_of(session)["files"]} == {"one.txt", "two.txt"}
    session.close()
    forge.kill()
    forge.start()
    hard_delete(forge)
    wait_until(lambda: branch not in branches(repo), "the branch goes")
    assert_clean(repo)


def test_a_kill_while_it_is_made_leaves_nothing(place, new_gateway):
    repo = repository(place / f"repo-{next(NUMBERS)}")
    gate = place / f"gate-{next(NUMBERS)}"
    setup = ["sh", "-c", f"touch {gate}; sleep 600"]
    more = workspace("tree", repo, "worktree", setup=setup)
    forge = new_gateway(**session_options(place, more=more))
    app = Talker(forge, workspaces=["tree"])
    asking = threading.Thread(target=lambda: pytest.raises(Exception, app.create, workspace="tree"))
    asking.start()
    wait_until(gate.exists, "the setup runs")
    assert worktrees(repo) == 1
    forge.kill()
    asking.join()
    forge.start()
    wait_until(lambda: branches(repo) == ["main"] and worktrees(repo) == 0, "nothing is left")
    assert_clean(repo)
    wait_until(lambda: not list((forge.data_dir / "snapshots").iterdir()), "no snapshot is left")


def test_nothing_is_left_of_a_revoked_app(place, forge):
    app = Talker(forge, f"app-{next(NUMBERS)}", workspaces=["tree"])
    session = app.session(workspace="tree")
    branch = app.get(session.path).json()["branch"]
    forge.admin.delete(f"/admin/tokens/{app.name}")
    hard_delete(forge)
    wait_until(lambda: branch not in branches(place / "repo"), "the branch goes")


# A hostile repository

HOSTILE = """[core]
\tfsmonitor = touch {mark}-fsmonitor
\thooksPath = {hooks}
\tsshCommand = touch {mark}-ssh
\tpager = touch {mark}-pager
\teditor = touch {mark}-editor
\talternateRefsCommand = touch {mark}-refs
[filter "evil"]
\tclean = touch {mark}-clean; cat
\tsmudge = touch {mark}-smudge; cat
\tprocess = touch {mark}-process
\trequired = true
[diff]
\texternal = touch {mark}-external
[diff "evil"]
\ttextconv = touch {mark}-textconv; cat
\tcommand = touch {mark}-command
[gpg]
\tprogram = touch {mark}-gpg
[commit]
\tgpgSign = true
[gc]
\tauto = 1
"""


def make_hostile(directory, marks):
    """Its configuration, hooks and attributes ask git to start programs."""
    hooks = directory / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change",
                 "commit-msg", "post-commit", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marks}-hook-{name}\n")
        (hooks / name).chmod(0o755)
    with open(directory / "config", "a") as config:
        config.write(HOSTILE.format(mark=marks, hooks=hooks))


def test_a_hostile_repository_starts_nothing(place, new_gateway):
    repo = repository(place / f"repo-{next(NUMBERS)}")
    marks = place / f"mark-{next(NUMBERS)}"
    (repo / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "attributes")
    make_hostile(repo / ".git", marks)
    more = workspace("tree", repo, "worktree") + workspace("direct", repo, "direct")
    more += workspace("copy", repo, "copy")
    forge = new_gateway(**session_options(place, more=more))
    app = Talker(forge, workspaces=["*"])
    for name in ("tree", "copy", "direct"):
        session = app.session(workspace=name)
        session.ask(write("README.md", "# changed\n"), write("new.txt", "n\n"))
        work = repo if name == "direct" else session.work()
        # A repository that an agent has put into its directory, with a commit, and with changes.
        inner = repository(work / "inner")
        make_hostile(inner / ".git", marks)
        (inner / "README.md").write_text("changed\n")
        if name == "tree":
            # In place of the worktree's own pointer, too.
            (work / ".git").unlink()
            os.rename(repository(place / f"repo-{next(NUMBERS)}") / ".git", work / ".git")
            make_hostile(work / ".git", marks)
        for _ in range(2):
            paths = {file["path"] for file in stat_of(session)["files"]}
            assert {"README.md", "new.txt"} <= paths, name
        assert app.get(session.path + "/diff").status_code == 200
        if name == "tree":
            done = app.client().post(session.path + "/commit", json={"message": "m"})
            assert done.status_code == 200, done.text
            assert delete(session, keep=True).status_code == 200
        else:
            session.close()
    hard_delete(forge)
    assert not list(place.glob(marks.name + "*")), "git has started something"
    forge.finish()


# The owner's directory itself

def test_one_turn_at_a_time_works_in_it(app, place):
    first = app.session(workspace="direct")
    second = app.session(workspace="direct")
    assert first.report("process")["cwd"] == str(place / "repo")
    held = first.hold(place).begun()
    assert_error(second.turn("x", wait=False), 409, "workspace_busy")
    assert_error(app.run("x", workspace="direct", wait=False), 409, "workspace_busy")
    waiting = second.hold(place)
    third = app.session(workspace="direct")
    late = third.turn("never", timeout_secs=5)
    assert (late.status_code, late.json()["code"]) == (503, "queue_timeout")
    third.close()
    assert not waiting.has_begun()
    assert status_of(held.end()) == 200
    waiting.begun()
    assert status_of(waiting.end()) == 200
    assert first.told("again") == "echo: again"
    first.close()
    second.close()


def test_its_changes_are_those_of_the_session(app, place):
    repo = place / "repo"
    (repo / "before.txt").write_text("b\n")
    session = app.session(workspace="direct")
    session.ask(write("during.txt", "d\n"))
    assert [file["path"] for file in stat_of(session)["files"]] == ["during.txt"]
    assert (repo / "during.txt").read_text() == "d\n"
    assert "during.txt" in [file["path"] for file in
                            app.get(session.path + "/files").json()["files"]]
    assert app.get(session.path + "/files/during.txt").text == "d\n"
    session.close()
    (repo / "before.txt").unlink()
    (repo / "during.txt").unlink()


# Runs

def test_runs_have_them_too(app, place, forge):
    token = app.client().post("/files", files={"file": ("n.txt", b"hello")}).json()["file_token"]
    for name in ("tree", "copy", "direct"):
        body = app.run({"report": True}, workspace=name, files=[token]).json()
        assert body["ok"], body
        report = body["result"]
        expected = {"tree": "README.md", "copy": "made.txt", "direct": "README.md"}[name]
        assert expected in report["files"]
        assert "attachment-1.txt" in report["prompt"]
        assert ("attachment-1.txt" in report["files"]) == (name != "direct")
    wait_until(lambda: not [one for one in branches(place / "repo") if app.name in one],
               "the branch of the run goes")
    assert not (place / "repo" / "attachment-1.txt").exists()


# Files in and out

def put(session, path, content):
    return session.app.client().put(f"{session.path}/files/{path}", content=content)


def test_a_file_is_put_where_the_agent_finds_it(app):
    session = app.session()
    assert put(session, "notes.txt", b"one").json() == {"ok": True, "replaced": False}
    assert put(session, "notes.txt", b"two").json() == {"ok": True, "replaced": True}
    assert put(session, "a/b/c.txt", b"deep").status_code == 200
    assert set(session.report("process")["files"]) == {"a", "notes.txt"}
    assert app.get(session.path + "/files/notes.txt").content == b"two"
    assert {file["path"] for file in stat_of(session)["files"]} == {"a/b/c.txt", "notes.txt"}
    session.close()
    assert_error(put(session, "notes.txt", b"late"), 410, "session_closed")


def test_what_cannot_be_put(app, place):
    session = app.session()
    session.told("hello")
    outside = place / f"outside-{next(NUMBERS)}"
    outside.mkdir()
    (session.work() / "link").symlink_to(outside)
    (session.work() / "file").symlink_to(outside / "victim")
    (session.work() / "dir").mkdir()
    assert_error(put(session, "link/x.txt", b"x"), 409, "path_taken")
    assert_error(put(session, "file", b"x"), 409, "path_taken")
    assert_error(put(session, "dir", b"x"), 409, "path_taken")
    for path in (".git/hooks/post-commit", "sub/.GIT/config", "x" * 2000):
        assert_error(put(session, path, b"x"), 422, "validation_failed")
    for path in ("a/%2e%2e/%2e%2e/x", "a//b"):
        assert put(session, path, b"x").status_code in (404, 422), path
    assert list(outside.iterdir()) == []
    assert not [name for name in os.listdir(session.work()) if name.startswith(".clawdforge")]
    other = Talker(app.gateway, f"app-{next(NUMBERS)}")
    assert_error(other.client().put(f"{session.path}/files/x", content=b"x"), 404,
                 "session_not_found")
    session.close()


def test_the_whole_directory_is_a_tar(app):
    session = app.session(workspace="tree")
    long = "deeper/" * 20 + "long.txt"
    assert len(long) > 100, "longer than a plain head of tar can hold"
    assert put(session, long, b"x" * 100_000).status_code == 200
    answer = app.get(session.path + "/archive")
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        names = tar.getnames()
        assert "README.md" in names and "src/main.txt" in names and ".git" not in names
        assert tar.getmember("link").linkname == "README.md"
        found = tar.getmember(long)
        assert found.size == 100_000 and tar.extractfile(found).read() == b"x" * 100_000
    session.close()


# Forks

def test_a_fork_begins_with_the_others_state(app, place):
    for name in ("tree", "copy"):
        first = app.session(workspace=name)
        first.ask(write("mine.txt", "m\n"))
        if name == "tree":
            app.client().post(first.path + "/commit", json={"message": "m"})
            first.ask(write("later.txt", "l\n"))
        made = app.client().post("/sessions", json={"from": first.id})
        second = Session(app, assert_created(made)["session_id"])
        assert made.json()["workspace"] == name
        assert (second.work() / "mine.txt").read_text() == "m\n"
        if name == "tree":
            assert (second.work() / "later.txt").read_text() == "l\n"
            assert app.get(second.path).json()["branch"] != app.get(first.path).json()["branch"]
        assert stat_of(second)["files"] == []
        second.ask(write("mine.txt", "other\n"))
        assert (first.work() / "mine.txt").read_text() == "m\n"
        assert [file["path"] for file in stat_of(second)["files"]] == ["mine.txt"]
        first.close()
        second.close()
    plain = app.session()
    put(plain, "n.txt", b"n")
    fork = Session(app, assert_created(app.client().post("/sessions", json={"from": plain.id}))
                   ["session_id"])
    assert (fork.work() / "n.txt").read_bytes() == b"n"
    other = Talker(app.gateway, f"app-{next(NUMBERS)}")
    assert_error(other.client().post("/sessions", json={"from": plain.id}), 404,
                 "session_not_found")


def test_a_fork_has_the_conversation_where_the_agent_keeps_it_in_a_file(new_gateway, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(agent_table("stream", [], "claude") + agent_table("fake", []))
    gateway = new_gateway(env=fake_env(), flags=["--config", str(path)])
    app = Talker(gateway)
    first = app.session("stream")
    first.ask("my fruit is a plum")
    fork = app.session("stream", **{"from": first.id})
    fork.ask("mine is a pear")
    gateway.stop()
    gateway.start()
    later = app.session("stream", **{"from": fork.id})
    assert json.loads(later.told({"recall": True}))[:2] == ["my fruit is a plum", "mine is a pear"]
    assert "mine is a pear" not in json.loads(first.told({"recall": True})), "each goes its own way"
    assert json.loads(app.session("stream").told({"recall": True})) == [json.dumps([{"recall": True}])]
    # Another agent begins a new one; so does a fork of a session that was never asked.
    other = app.session("fake", **{"from": first.id})
    assert "plum" not in other.told({"recall": True})
    unasked = app.session("stream", **{"from": app.session("stream").id})
    assert unasked.told("hello") == "echo: hello"


def test_a_hundred_worktrees_come_and_go(place, new_gateway):
    repo = repository(place / f"repo-{next(NUMBERS)}")
    options = session_options(place, more=workspace("tree", repo, "worktree"),
                              max_live_sessions=120, max_agents=8)
    forge = new_gateway(**options)
    app = Talker(forge, workspaces=["tree"])

    def one(number):
        session = Talker.session(app, workspace="tree")
        branch = app.get(session.path).json()["branch"]
        if number % 10 == 0:
            put(session, "kept.txt", b"k")
            assert delete(session, keep=True).status_code == 200
            return branch
        session.close()
        return None

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        kept = [branch for branch in pool.map(one, range(100)) if branch]
    assert len(kept) == 10
    hard_delete(forge)
    wait_until(lambda: len(branches(repo)) == 11 and worktrees(repo) == 0, "the branches go")
    assert_clean(repo, *kept)
    assert all(git(repo, "show", f"{branch}:kept.txt") == "k" for branch in kept)
