"""What the jail does for workspaces: `read` is held, git and the setup see only what they need."""
import concurrent.futures
import errno
import os

import pytest

from agents import NUMBERS, REPO, allows_namespaces, assert_success, loud_skip
from answers import assert_error
from gateway import wait_until
from sessions import Talker, session_options
from workspaces import git, repository, workspace

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"


@pytest.fixture(autouse=True)
def namespaces():
    if not allows_namespaces(None):
        loud_skip("the kernel allows no namespaces")


@pytest.fixture
def owned(tmp_path):
    """A directory of the owner's."""
    place = tmp_path / "owned"
    place.mkdir()
    (place / "a.txt").write_text("a\n")
    return place


def attempted(app, what, **fields):
    answer = app.run({"do": [list(one) for one in what]}, **fields)
    return assert_success(answer)["result"]


def attacks(path):
    return [("read", f"{path}/a.txt"), ("write", f"{path}/a.txt"), ("truncate", f"{path}/a.txt"),
            ("write", f"{path}/new.txt"), ("unlink", f"{path}/a.txt"), ("chmod", f"{path}/a.txt"),
            ("rename", f"{path}/a.txt", f"{path}/b.txt")]


def test_a_workspace_that_may_only_be_read_is_not_written(new_gateway, owned, tmp_path):
    """Also where the owner lets agents write above it, or to itself, for other reasons."""
    for writable in ("", str(tmp_path), str(owned)):
        options = session_options(tmp_path, more=workspace("read", owned, "read"),
                                  claude_bin=INTRUDER, jail_write=writable)
        gateway = new_gateway(**options)
        app = Talker(gateway, workspaces=["read"])
        found = attempted(app, attacks(owned), workspace="read")
        assert found[0] == "a\n" and set(found[1:]) == {"EROFS"}, writable
        assert attempted(app, [("read", "a.txt"), ("list", str(owned))], workspace="read") == \
            ["a\n", ["a.txt"]], "it works there"
        assert [path.name for path in owned.iterdir()] == ["a.txt"]
        assert (owned / "a.txt").read_text() == "a\n"


def test_a_session_reads_it_too(new_gateway, owned, tmp_path):
    gateway = new_gateway(**session_options(tmp_path, more=workspace("read", owned, "read")))
    app = Talker(gateway, workspaces=["read"])
    session = app.session(workspace="read")
    assert app.get(session.path).json()["workspace_mode"] == "read"
    told = session.report("process")
    assert told["cwd"] == str(owned) and told["files"] == ["a.txt"]
    assert app.get(session.path + "/diff", stat=1).json()["files"] == []
    answer = app.client().put(f"{session.path}/files/x.txt", content=b"x")
    assert_error(answer, 409, "workspace_read_only")
    token = app.client().post("/files", files={"file": ("n.txt", b"hello")}).json()["file_token"]
    session.ask("with a file", files=[token])
    assert os.listdir(owned) == ["a.txt"], "files of turns lie elsewhere"
    gateway.kill()
    gateway.start()
    assert session.report("process")["cwd"] == str(owned), "it wakes there"
    session.close()


def test_without_a_jail_it_is_refused(new_gateway, owned, tmp_path):
    more = workspace("read", owned, "read")
    off = Talker(new_gateway(**session_options(tmp_path, more=more, jail="off")), workspaces=["*"])
    assert_error(off.create(workspace="read"), 422, "jail_needed")
    assert_error(off.run("x", workspace="read"), 422, "jail_needed")
    assert off.ids(include_closed=True) == []


def test_a_session_whose_app_loses_its_jail_does_not_wake(new_gateway, owned, tmp_path):
    """The gateway's own key says nothing, so the token's counts."""
    options = session_options(tmp_path, more=workspace("read", owned, "read"))
    gateway = new_gateway(**options)
    app = Talker(gateway, f"app-{next(NUMBERS)}", workspaces=["*"])
    session = app.session(workspace="read")
    gateway.admin.patch(f"/admin/tokens/{app.name}", json={"jail": "off"})
    gateway.kill()
    gateway.start()
    refused = session.turn("x")
    assert (refused.status_code, refused.json()["code"]) == (422, "jail_needed")
    gateway.admin.patch(f"/admin/tokens/{app.name}", json={"jail": None})
    assert session.told("again") == "echo: again"
    session.close()


def test_the_setup_runs_in_the_jail_of_its_session(new_gateway, owned, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a private key")
    setup = ["sh", "-c", f"cat {secret}; echo made > made.txt; echo $HOME > $HOME/mark; ls -A $HOME"]
    more = workspace("copy", owned, "copy", setup=setup)
    said = {}
    for jail in ("auto", "off"):
        options = session_options(tmp_path, more=more, jail=jail, jail_write="")
        app = Talker(new_gateway(**options), workspaces=["*"])
        session = app.session(agent="demo", workspace="copy")
        event = app.get(session.path + "/events").json()["events"][0]
        assert event["data"]["method"] == "clawdforge/setup"
        said[jail] = event["data"]["params"]["output"]
        assert (session.work() / "made.txt").read_text() == "made\n"
    assert "a private key" in said["off"] and "a private key" not in said["auto"]
    assert "mark" in said["auto"], "it has a home that it can write"


def is_read(fifo):
    """Whether a process waits for what comes; it then gets the end."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False


def test_git_sees_the_repository_and_nothing_else(new_gateway, tmp_path):
    """What its configuration includes from elsewhere is not there. Without the jail it is read."""
    repo = repository(tmp_path / "repo")
    fifo = tmp_path / "outside"
    os.mkfifo(fifo)
    with open(repo / ".git" / "config", "a", encoding="ascii") as config:
        config.write(f"[include]\n\tpath = {fifo}\n")
    more = workspace("tree", repo, "worktree")
    jailed = Talker(new_gateway(**session_options(tmp_path, more=more)), workspaces=["*"])
    session = jailed.session(workspace="tree")
    session.ask({"write": {"path": "new.txt", "content": "n\n"}})
    done = jailed.client().post(session.path + "/commit", json={"message": "m"})
    assert done.status_code == 200, done.text
    assert not is_read(fifo)
    session.close()
    options = session_options(tmp_path, more=more, jail="off")
    free = Talker(new_gateway(**options), "free", workspaces=["*"])
    reads = []

    def is_over(asked):
        reads.append(is_read(fifo))
        return asked.done()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(free.create, workspace="tree")
        wait_until(lambda: is_over(asked), "the worktree is made")
    assert asked.result().status_code == 200 and any(reads)


def test_a_repository_in_several_places_is_found(new_gateway, tmp_path):
    """Objects of another repository, and a checkout that is a worktree itself."""
    first = repository(tmp_path / "first")
    git(tmp_path, "clone", "-q", "--shared", str(first), str(tmp_path / "shared"))
    git(first, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    more = workspace("shared", tmp_path / "shared", "worktree")
    more += workspace("side", tmp_path / "side", "worktree")
    gateway = new_gateway(**session_options(tmp_path, more=more))
    app = Talker(gateway, workspaces=["*"])
    for name in ("shared", "side"):
        session = app.session(workspace=name)
        session.ask({"write": {"path": "new.txt", "content": "n\n"}})
        files = app.get(session.path + "/diff", stat=1).json()["files"]
        assert [file["path"] for file in files] == ["new.txt"]
        done = app.client().post(session.path + "/commit", json={"message": name})
        assert done.status_code == 200, done.text
        session.close()
    git(tmp_path / "shared", "fsck", "--strict")
    git(first, "fsck", "--strict")
