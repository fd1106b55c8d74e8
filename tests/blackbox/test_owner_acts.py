"""The owner as an app (X-Clawdforge-App), and the questions of all sessions (/permissions)."""
import pytest

from answers import assert_error
from gateway import wait_until
from sessions import Talker, app, assert_same_refusal, forge, journal, new_forge
from streams import stream_turn

__all__ = ["app", "forge", "new_forge"]  # fixtures

EXECUTE = {"kind": "execute", "title": "Run the tests"}


def owner_as(gateway, name):
    client = gateway.admin
    client.headers["X-Clawdforge-App"] = name
    return client


def all_questions(client):
    answer = client.get("/permissions")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"permissions"}
    return answer.json()["permissions"]


def lines_of(gateway, name, event="act_as"):
    found = gateway.admin.get("/admin/events", params={"app": name, "event": event, "limit": 1000}).json()["events"]
    assert {line["event"] for line in found} <= {event}
    return found


def test_without_the_header_the_owner_is_refused_as_before(app):
    session = app.session()
    assert_error(app.gateway.admin.get(session.path), 403, "wrong_token_kind")


def test_the_owner_sees_what_the_app_sees(app):
    session = app.session()
    session.ask("hello")
    owner = owner_as(app.gateway, app.name)
    for path in (session.path, f"{session.path}/events", f"{session.path}/permissions", f"{session.path}/files",
                 "/sessions", "/agents", "/whoami"):
        assert owner.get(path).content == app.get(path).content, path


def test_the_owner_may_not_see_more_than_that_app(forge, app):
    session, other = app.session(), Talker(forge, "other")
    owner = owner_as(forge, other.name)
    absent = f"/sessions/{session.id[:-1]}{'0' if session.id[-1] != '0' else '1'}"
    for path in ("", "/events", "/permissions", "/files"):
        assert_same_refusal([owner.get(session.path + path), owner.get(absent + path), other.get(session.path + path)],
                            404, "session_not_found")
    assert_same_refusal([owner.delete(session.path), other.client().delete(session.path)], 404, "session_not_found")
    assert session.ask("still there")


def test_an_app_cannot_act_as_another(forge, app):
    other = Talker(forge, "another")
    client = other.client()
    client.headers["X-Clawdforge-App"] = app.name
    assert_error(client.get("/sessions"), 403, "wrong_token_kind")
    client.headers["X-Clawdforge-App"] = other.name
    assert_error(client.get("/sessions"), 403, "wrong_token_kind")


@pytest.mark.parametrize("name", ["not-there", "", "UPPER", "../x", "a" * 65])
def test_an_app_that_there_is_not_can_not_be_written(forge, name):
    owner = owner_as(forge, name)
    assert_error(owner.post("/sessions", json={"agent": "fake"}), 404, "token_not_found")
    assert_error(owner.post("/run", json={"prompt": "hello", "agent": "demo"}), 404, "token_not_found")


def test_what_an_app_has_left_can_be_read_after_its_token(new_forge):
    gateway = new_forge()
    gone = Talker(gateway)
    session = gone.session()
    session.ask("hello")
    gateway.admin.delete(f"/admin/tokens/{gone.name}")
    owner = owner_as(gateway, gone.name)
    assert owner.get(session.path).json()["close_reason"] == "token_revoked"
    assert [event["event"] for event in owner.get(f"{session.path}/events").json()["events"]][-1] == "done"
    assert_error(owner.post(f"{session.path}/turn", json={"prompt": "more"}), 404, "token_not_found")


def test_what_the_owner_does_is_in_the_audit_of_the_app(new_forge):
    gateway = new_forge()
    one = Talker(gateway)
    session = one.session()
    owner = owner_as(gateway, one.name)
    for _ in range(3):
        assert owner.get(f"{session.path}/events").status_code == 200
    line, = lines_of(gateway, one.name)
    assert (line["session_id"], line["actor"]) == (session.id, "owner")
    assert line["meta"]["by"] == "admin_token"
    assert (line["meta"]["method"], line["meta"]["path"]) == ("GET", "/sessions/{id}/events")
    for _ in range(2):
        assert owner.post(f"{session.path}/turn", json={"prompt": "hello"}).status_code == 200
    assert [line["meta"]["method"] for line in lines_of(gateway, one.name)] == ["POST", "POST", "GET"]


def test_the_owner_answers_a_question_and_is_named(app):
    session = app.session(permission_mode="ask", meta={"title": "Fix the drain"})
    with stream_turn(session, {"permission": EXECUTE}) as stream:
        told = stream.until("permission")[-1].json()
        question, = [one for one in all_questions(app.gateway.admin) if one["session_id"] == session.id]
        assert {key: question[key] for key in told if key != "message"} == {
            key: value for key, value in told.items() if key != "message"}
        assert (question["app_name"], question["agent"], question["session_title"]) == (app.name, "fake", "Fix the drain")
        assert question["tool"] == told["message"]["params"]["toolCall"]
        assert question["truncated"] is False
        owner = owner_as(app.gateway, app.name)
        answer = owner.post(f"{session.path}/permissions/{question['id']}", json={"decision": "allow"})
        assert answer.json() == {"ok": True}, answer.text
        assert stream.expect("permission_resolved").json()["by"] == "owner"
        again = app.client().post(f"{session.path}/permissions/{question['id']}", json={"decision": "deny"})
        assert_error(again, 409, "already_answered")
        stream.rest()
    line = lines_of(app.gateway, app.name, "permission")[0]
    assert (line["meta"]["by"], line["actor"]) == ("owner", "owner")


def test_each_app_sees_its_own_questions_and_the_owner_all(new_forge):
    gateway = new_forge()
    apps = [Talker(gateway, name) for name in ("first", "second")]
    sessions = [one.session(permission_mode="ask") for one in apps]
    assert all_questions(gateway.admin) == []
    wires = [session.send({"permission": EXECUTE}) for session in sessions]
    wait_until(lambda: len(all_questions(gateway.admin)) == 2, "both ask")
    for one, session in zip(apps, sessions):
        question, = all_questions(one.client())
        assert (question["session_id"], question["app_name"]) == (session.id, one.name)
        assert all_questions(owner_as(gateway, one.name)) == [question]
    for session, wire in zip(sessions, wires):
        question, = all_questions(session.app.client())
        session.app.client().post(f"{session.path}/permissions/{question['id']}", json={"decision": "deny"})
        assert wire.read().status == 200
    assert all_questions(gateway.admin) == []


def test_a_question_that_cannot_be_shown_whole_is_not_allowed_by_a_browser(new_forge):
    gateway = new_forge()
    one = Talker(gateway)
    session = one.session(permission_mode="ask")
    token = gateway.client().post("/ui/sign-in", json={"token": one.token}).json()["token"]
    browser = gateway.client(token)
    wire = session.send({"permission": EXECUTE | {"title": "x" * 300_000}})
    question, = wait_until(lambda: all_questions(browser), "it is asked")
    assert (question["tool"], question["truncated"]) == (None, True)
    path = f"{session.path}/permissions/{question['id']}"
    for body in ({"decision": "allow"}, {"option_id": "allow-always"}):
        assert_error(browser.post(path, json=body), 422, "question_too_long")
    assert browser.post(path, json={"option_id": "reject-once"}).json() == {"ok": True}
    assert wire.read().status == 200
    assert [event["data"]["decision"] for event in journal(gateway, session)
            if event["event"] == "permission_resolved"] == ["deny"]


def test_lines_of_the_audit_are_found_by_session_and_event(app):
    first, second = app.session(), app.session()
    for session in (first, second):
        session.ask("hello")
        session.close()
    admin = app.gateway.admin
    of_first = admin.get("/admin/events", params={"session_id": first.id}).json()["events"]
    assert [line["event"] for line in of_first] == ["close", "turn", "create"]
    assert {line["session_id"] for line in of_first} == {first.id}
    assert {line["actor"] for line in of_first} == {"app"}
    page = admin.get("/admin/events", params={"session_id": first.id, "limit": 2}).json()
    rest = admin.get("/admin/events", params={"session_id": first.id, "cursor": page["next_cursor"]}).json()
    assert page["events"] + rest["events"] == of_first
    closed = admin.get("/admin/events", params={"event": "close", "app": app.name, "limit": 2}).json()["events"]
    assert [line["session_id"] for line in closed] == [second.id, first.id]
    assert admin.get("/admin/events", params={"event": "nothing"}).json()["events"] == []
