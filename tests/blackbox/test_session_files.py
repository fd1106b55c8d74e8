"""GET /sessions/{id}/files: what an agent has left in its working directory."""
import json
import os
import re
import time

import pytest

from answers import assert_error
from gateway import wait_until
from sessions import BOTH_KINDS, Talker, app, assert_no_process_left, forge, new_forge, only_acp
from wire import Wire, bearer, request

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = BOTH_KINDS

LISTED_MAX = 10_000


@pytest.fixture(scope="module")
def session(app):
    """One that has nothing in its directory but what a test puts there."""
    return app.session()


@pytest.fixture
def work(session):
    """Its empty working directory."""
    place = session.work()
    for path in sorted(place.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    return place


def listing(session):
    answer = session.app.get(session.path + "/files")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) - {"count"} == {"files", "truncated"}
    assert all(set(file) == {"path", "size", "modified_at"} for file in body["files"])
    return body


def listed(session):
    return [file["path"] for file in listing(session)["files"]]


def fetch(session, path):
    """The answer to a path that is sent as it stands here: a client would mend it."""
    with Wire(session.app.gateway) as wire:
        return wire.ask(request(f"GET {session.path}/files/{path}", bearer(session.app.token)))


def assert_none(answer):
    assert_error(answer, 404, "file_not_found")


def test_an_empty_directory_has_no_files(session, work):
    assert listing(session)["files"] == [] and listing(session)["truncated"] is False


def test_what_the_agent_writes_is_listed_and_fetched(session, work):
    session.ask({"write": {"path": "out/résumé 1.txt", "content": "Grüße\n"}},
                {"write": {"path": "a.json", "content": "{}"}})
    first, second = listing(session)["files"]
    assert (first["path"], first["size"]) == ("a.json", 2)
    assert (second["path"], second["size"]) == ("out/résumé 1.txt", 7 + 1)
    assert abs(first["modified_at"] - time.time()) < 60
    answer = session.app.client().get(f"{session.path}/files/out/résumé 1.txt")
    assert (answer.status_code, answer.content) == (200, "Grüße\n".encode())
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "attachment" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("size", [0, 1, 65_536, 262_144, 262_145, 5_000_000])
def test_a_file_comes_whole(session, work, size):
    content = os.urandom(size)
    (work / "data.bin").write_bytes(content)
    answer = session.app.client().get(session.path + "/files/data.bin")
    assert answer.status_code == 200 and answer.content == content


def test_head_tells_and_sends_nothing(session, work):
    (work / "data.bin").write_bytes(b"12345")
    answer = session.app.client().head(session.path + "/files/data.bin")
    assert (answer.status_code, answer.content) == (200, b"")


def test_attached_files_are_among_them(app):
    session = app.session()
    session.ask("hello", files=[app.upload("notes.txt", b"some notes")])
    name, = listed(session)
    assert name.endswith(".txt")
    assert app.client().get(f"{session.path}/files/{name}").content == b"some notes"
    session.close()


@pytest.mark.parametrize("path", [
    "absent", "sub", "sub/", "", ".", "..", "../tmp", "..%2Ftmp", "%2e%2e/%2e%2e",
    "../work/here", "sub/../../work/here", "%2Fetc%2Fpasswd", "//etc/passwd", "here/", "here/x",
    "here%00",
    "here%00.txt", "sub//deep", "\\..\\here", "x" * 5_000, "a/" * 500 + "b", "%ff%fe", "%",
    "..%252F..%252Fetc%252Fpasswd", "~/.ssh"], ids=lambda path: path[:30] or "nothing")
def test_no_other_path_opens_anything(session, work, path):
    (work / "here").write_text("here")
    (work / "sub").mkdir()
    (work / "sub" / "deep").write_text("deep")
    answer = fetch(session, path)
    assert answer.status in (400, 404, 414, 431), answer
    assert b"root:" not in answer.body
    assert fetch(session, "here").body == b"here"
    assert fetch(session, "sub/deep").body == b"deep"


@pytest.mark.parametrize("path", ["sub/../here", "sub%2F..%2Fhere", "./here", "sub/./../here"])
def test_a_way_round_leads_nowhere_else(session, work, path):
    (work / "here").write_text("here")
    (work / "sub").mkdir()
    answer = fetch(session, path)
    assert answer.status in (400, 404) or answer.body == b"here"


def test_no_link_leads_out(session, work, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (work / "absolute").symlink_to(secret)
    (work / "relative").symlink_to(os.path.relpath(secret, work))
    (work / "dir").symlink_to(tmp_path)
    (work / "up").symlink_to("..")
    (work / "loop").symlink_to("loop")
    (work / "dangling").symlink_to("nowhere")
    (work / "passwd").symlink_to("/etc/passwd")
    for path in ("absolute", "relative", "dir/secret", "up/tmp", "loop", "dangling", "passwd",
                 "up/work/absolute"):
        assert_none(fetch(session, path))
    assert listed(session) == [], "links are not listed"


def test_only_regular_files_open(session, work):
    os.mkfifo(work / "pipe")
    (work / "dir").mkdir()
    for path in ("pipe", "dir"):
        assert_none(fetch(session, path))
    (work / "file").write_text("x")
    assert listed(session) == ["file"]


def test_a_file_that_may_not_be_read_does_no_harm(session, work):
    (work / "closed").write_text("x")
    (work / "closed").chmod(0)
    (work / "open").write_text("y")
    assert "open" in listed(session)
    assert fetch(session, "closed").status in (200, 404)


def test_names_that_are_no_text_do_no_harm(session, work):
    for name in (b"caf\xe9", b"new\nline", b"quote\"\\", b"tab\t", b"\xf0\x9f\xa6\x80"):
        with open(os.path.join(os.fsencode(work), name), "wb") as file:
            file.write(b"x")
    names = listed(session)
    assert len(names) >= 4 and {"new\nline", "quote\"\\", "tab\t", "🦀"} <= set(names)
    assert fetch(session, "new%0Aline").status in (200, 400)
    assert fetch(session, "%F0%9F%A6%80").body == b"x"


@only_acp
def test_a_long_list_is_cut_and_says_so(session, work):
    for number in range(LISTED_MAX + 5):
        (work / f"{number:06}").touch()
    body = listing(session)
    assert len(body["files"]) == LISTED_MAX and body["truncated"] is True


def test_a_deep_tree_is_cut_and_says_so(session, work):
    deep = work.joinpath(*["d"] * 80)
    deep.mkdir(parents=True)
    (deep / "bottom").write_text("x")
    (work / "top").write_text("y")
    body = listing(session)
    assert [file["path"] for file in body["files"]] == ["top"]
    assert body["truncated"] is True


def test_files_are_there_until_the_session_is_deleted(new_forge):
    gateway = new_forge()
    app = Talker(gateway)
    session = app.session()
    session.ask({"write": {"path": "kept.txt", "content": "x"}})
    gateway.restart()
    assert listed(session) == ["kept.txt"]
    session.close()
    assert listed(session) == ["kept.txt"]
    assert fetch(session, "kept.txt").body == b"x"
    assert_no_process_left(gateway)


def test_a_session_whose_directory_has_gone_has_no_files_and_gets_one_again(app):
    session = app.session()
    session.turn({"exit": 1})
    wait_until(lambda: not session.processes(), "its agent is gone")
    for path in sorted((session.work().parent).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    session.work().parent.rmdir()
    assert listed(session) == []
    assert_none(fetch(session, "x"))
    body = session.ask("hello")
    assert body["resumed"] is False, "its conversation was in there"
    session.close()


@only_acp
def test_a_reader_who_hangs_up_does_no_harm(session, work):
    (work / "large").write_bytes(b"x" * 20_000_000)
    for _ in range(5):
        with Wire(session.app.gateway) as wire:
            wire.send(request(f"GET {session.path}/files/large", bearer(session.app.token)))
            wire.socket.recv(1000)
    assert fetch(session, "large").body == b"x" * 20_000_000


def test_a_file_that_shrinks_while_it_is_read_is_cut(session, work):
    (work / "large").write_bytes(b"x" * 50_000_000)
    with Wire(session.app.gateway) as wire:
        wire.send(request(f"GET {session.path}/files/large", bearer(session.app.token)))
        wire.buffer = wire.socket.recv(1000)
        os.truncate(work / "large", 10)
        with pytest.raises(AssertionError, match="closed inside"):
            wire.read()
    assert session.told("hello") == "echo: hello"


def test_an_agent_cannot_make_its_next_attachment_dear(forge, app, tmp_path):
    """What it has put in the way is neither removed nor followed, however large it is: removing it
    would hold up the disk of all apps. In the end the attachment gets a name that cannot be known before."""
    session = app.session()
    session.ask("hello")
    wall = session.work() / "notes.txt"
    for number in range(50):
        (wall / str(number)).mkdir(parents=True)
        for file in range(50):
            (wall / str(number) / str(file)).touch()
    before = sorted(wall.rglob("*"))
    for number in range(2, 6):
        (session.work() / f"notes-{number}.txt").mkdir()
    token = app.upload("notes.txt", b"some notes")
    paths = [json.loads(session.told({"report": "prompt"}, files=[token]))[0].split("\n")[0]
             for _ in range(2)]
    assert sorted(wall.rglob("*")) == before
    found = [path for path in session.work().iterdir() if path.is_file()]
    assert [path.read_bytes() for path in found] == [b"some notes"] * 2
    names = sorted(path.name for path in found)
    assert all(re.fullmatch(r"notes-[0-9a-f]{16}\.txt", name) for name in names), names
    assert all(any(str(path) in line for path in found) for line in paths)
