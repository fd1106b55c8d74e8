"""An app cannot tell that another app's session exists."""
import uuid

import pytest

from answers import assert_error
from sessions import (BOTH_KINDS, Session, Talker, app, assert_same_refusal, assert_turn, forge,
                      new_forge, session_rows)

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = BOTH_KINDS

REQUEST_ID = "the-same-for-all"


@pytest.fixture(scope="module")
def stranger(forge):
    return Talker(forge, "stranger")


def requests_for(session_id):
    """Every path of a session, with good and with odd bodies and parameters."""
    path = f"/sessions/{session_id}"
    turn = {"prompt": "hello", "timeout_secs": 5}
    return [("GET", path, None), ("GET", path + "?x=y", None), ("HEAD", path, None),
            ("DELETE", path, None), ("POST", path + "/turn", turn),
            ("POST", path + "/turn", {**turn, "event_format": "simple"}),
            ("POST", path + "/turn", {**turn, "files": ["ff_" + "A" * 43]}),
            ("GET", path + "/files", None), ("GET", path + "/files/there.txt", None),
            ("GET", path + "/files/a/b/c", None), ("GET", path + "/files/..%2Fx", None)]


def asked(talker, method, path, body):
    more = {} if body is None else {"json": body}
    answer = talker.client().request(method, path, headers={"X-Request-Id": REQUEST_ID}, **more)
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    return answer.status_code, headers, answer.content


def assert_alike(stranger, foreign_id):
    """Each request for a foreign session gets what an absent one gets, byte for byte."""
    absent_id = str(uuid.uuid4())
    for foreign, absent in zip(requests_for(foreign_id), requests_for(absent_id)):
        theirs, absents = asked(stranger, *foreign), asked(stranger, *absent)
        assert theirs == absents, foreign
        assert theirs[0] == 404, foreign
        assert foreign_id.encode() not in theirs[2]


def test_a_foreign_session_looks_like_none(app, stranger):
    session = app.session(meta={"secret": "x"})
    session.ask({"write": {"path": "there.txt", "content": "mine"}})
    before = session.state()
    assert_alike(stranger, session.id)
    assert session.state() == before, "and nothing has happened to it"
    assert session.ask("hello")["turn_index"] == 2


def test_a_busy_or_full_foreign_session_looks_like_none(app, stranger, tmp_path):
    session = app.session()
    turns = [session.hold(tmp_path).begun()] + [session.hold(tmp_path) for _ in range(8)]
    assert_alike(stranger, session.id)
    for turn in turns:
        assert_turn(turn.end())


def test_a_closed_foreign_session_looks_like_none(app, stranger):
    session = app.session()
    session.close()
    assert_alike(stranger, session.id)


def test_a_sleeping_foreign_session_looks_like_none(new_forge):
    gateway = new_forge()
    session, stranger = Talker(gateway).session(), Talker(gateway, "stranger")
    gateway.restart()
    assert_alike(stranger, session.id)
    assert session.state()["live"] is False


def test_an_id_that_none_can_have_looks_the_same(app, stranger):
    session = app.session()
    for talker in (app, stranger):
        answers = [talker.client().get(f"/sessions/{name}") for name in (
            str(uuid.uuid4()), "x", "a" * 64, "a" * 300, "%3Cscript%3E")]
        if talker is stranger:
            answers.append(talker.client().get(session.path))
        assert_same_refusal(answers, 404, "session_not_found")


def test_each_lists_only_its_own(forge):
    one, two = Talker(forge, "list-one"), Talker(forge, "list-two")
    ones = {one.session().id for _ in range(3)}
    twos = {two.session().id for _ in range(2)}
    assert (set(one.ids()), set(two.ids())) == (ones, twos)
    cursor = one.list(limit=1)["next_cursor"]
    answer = two.get("/sessions", cursor=cursor)
    listed = answer.json().get("sessions", [])
    assert not ones & {state["session_id"] for state in listed}, "a cursor opens no door"


def test_a_wrong_body_is_wrong_before_anybody_looks(app, stranger):
    session = app.session()
    for session_id in (session.id, str(uuid.uuid4())):
        assert_error(Session(stranger, session_id).turn(" "), 422, "validation_failed")


def test_two_apps_with_the_same_agent_share_nothing(app, stranger):
    one, two = app.session(), stranger.session()
    one.ask({"write": {"path": "notes.txt", "content": "mine"}})
    assert two.report("process")["files"] == []
    reports = [session.report("process") for session in (one, two)]
    assert reports[0]["cwd"] != reports[1]["cwd"]
    assert reports[0]["env"]["TMPDIR"] != reports[1]["env"]["TMPDIR"]
    assert one.pid() != two.pid()
    assert two.told({"recall": True}).count("notes.txt") == 0


def test_a_revoked_name_that_is_minted_again_finds_nothing(new_forge):
    gateway = new_forge()
    first = Talker(gateway, "reborn")
    session = first.session()
    session.ask("secret")
    assert gateway.admin.delete("/admin/tokens/reborn").status_code == 200
    second = Talker(gateway, "reborn")
    assert second.ids() == []
    answer = Session(second, session.id).turn("hello")
    assert answer.status_code in (404, 410), "it is closed for every app"
    assert first.get("/sessions").status_code == 401
    assert all(row["closed_at"] for row in session_rows(gateway))


def test_a_rotated_token_keeps_its_sessions(new_forge):
    gateway = new_forge()
    app = Talker(gateway, "turner")
    session = app.session()
    answer = gateway.admin.post("/admin/tokens/turner/rotate")
    app.token, app._client = answer.json()["token"], None
    assert session.told("hello") == "echo: hello"
    assert app.ids() == [session.id]
