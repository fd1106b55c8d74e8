"""Permission questions: asked once, answered once, with and without readers, also when several
callers answer at the same time."""
import json
import threading
import time

import pytest

from agents import fewer
from answers import assert_error
from gateway import wait_until
from sessions import (Talker, app, assert_same_refusal, assert_turn, assert_turn_failure, forge,
                      journal, new_forge, query, session_gateway)
from streams import messages, page, stream_turn, tail

__all__ = ["app", "forge", "new_forge"]  # fixtures

MODES = ["ask", "approve_reads", "approve_all", "deny_all"]
READ = {"kind": "read", "title": "Look at it"}
EDIT = {"kind": "edit", "title": "Change it"}
QUESTION_KEYS = {"id", "turn_index", "title", "kind", "options", "asked_at", "expires_at"}
RULED = {"approve_reads": "reject-once", "approve_all": "allow-once", "deny_all": "reject-once"}


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A gateway whose questions expire after a second."""
    with session_gateway(tmp_path_factory.mktemp("hasty"), permission_timeout_secs=1) as gateway:
        yield gateway


def open_questions(session):
    answer = session.app.get(session.path + "/permissions")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"permissions"}
    for question in answer.json()["permissions"]:
        assert set(question) == QUESTION_KEYS
    return answer.json()["permissions"]


def asked(session, count=1):
    """The questions, once that many are open."""
    return wait_until(lambda: (found := open_questions(session)) and len(found) == count and found,
                      "it is asked")


def answer(session, question_id, client=None, **body):
    return (client or session.app.client()).post(f"{session.path}/permissions/{question_id}",
                                                 json=body)


def accept(answered):
    assert (answered.status_code, answered.json()) == (200, {"ok": True}), answered.text


def decisions(session):
    """What the audit says: who decided what."""
    found = []
    for row in query(session.app.gateway, "SELECT * FROM session_events WHERE session_id = ? AND "
                                          "event = 'permission' ORDER BY event_id", session.id):
        meta = json.loads(row["meta"])
        assert set(meta) == {"id", "kind", "decision", "by", "mode"}
        assert row["app_name"] == session.app.name
        found.append((meta["id"], meta["decision"], meta["by"]))
    return found


def assert_answered_once(session, *expected):
    """Each question has one resolution, in the events and in the audit, and is not among the updates."""
    events = journal(session.app.gateway, session)
    questions = [event["data"] for event in events if event["event"] == "permission"]
    resolved = [event["data"] for event in events if event["event"] == "permission_resolved"]
    assert sorted(one["id"] for one in questions) == sorted(one["id"] for one in resolved)
    for one in resolved:
        assert set(one) == {"id", "decision", "option_id", "by"}
    assert [(one["id"], one["decision"], one["by"]) for one in resolved] == decisions(session)
    assert sorted((one["decision"], one["by"]) for one in resolved) == sorted(expected)
    assert not [event for event in events if event["event"] == "update"
                and event["data"].get("method") == "session/request_permission"]
    return resolved


# The question

def test_a_decision_is_in_the_journal_and_the_audit_when_it_is_answered(app):
    session = app.session(permission_mode="ask")
    for _ in range(fewer(20)):
        with stream_turn(session, {"permission": EDIT}) as stream:
            question = stream.expect("permission").json()["id"]
            accept(answer(session, question, decision="allow"))
            assert decisions(session)[-1:] == [(question, "allow", "app")]
            assert any(event["event"] == "permission_resolved" and event["data"]["id"] == question
                       for event in journal(app.gateway, session))
            stream.rest()


def test_a_question_is_told_listed_and_answered(app, forge, tmp_path):
    session = app.session(permission_mode="ask")
    assert open_questions(session) == []
    with stream_turn(session, {"text": "may I?"}, {"permission": EDIT}) as stream:
        told = stream.until("permission")[-1]
        question, = open_questions(session)
        data = told.json()
        message = data.pop("message")
        assert data == question
        assert message["method"] == "session/request_permission"
        assert message["params"]["toolCall"]["title"] == "Change it"
        assert (question["turn_index"], question["title"], question["kind"]) == (
            1, "Change it", "edit")
        assert question["options"] == [
            {"option_id": "allow-once", "name": "Yes", "kind": "allow_once"},
            {"option_id": "allow-always", "name": "Always", "kind": "allow_always"},
            {"option_id": "reject-once", "name": "No", "kind": "reject_once"}]
        assert abs(question["asked_at"] - time.time()) < 60
        assert question["expires_at"] - question["asked_at"] == 120
        accept(answer(session, question["id"], option_id="allow-always"))
        resolved = stream.expect("permission_resolved")
        assert resolved.id == told.id + 1
        assert resolved.json() == {"id": question["id"], "decision": "allow",
                                   "option_id": "allow-always", "by": "app"}
        assert messages(stream.rest()) == ["permission: allow-always"]
    assert open_questions(session) == []
    assert_answered_once(session, ("allow", "app"))


@pytest.mark.parametrize("decision, outcome", [("allow", "allow-once"), ("deny", "reject-once")])
def test_a_plain_turn_waits_for_the_decision(app, decision, outcome):
    session = app.session(permission_mode="ask")
    wire = session.send({"permission": EDIT})
    question, = asked(session)
    assert session.state()["busy"]
    accept(answer(session, question["id"], decision=decision))
    body = assert_turn(wire.read())
    assert body["text"] == f"permission: {outcome}"
    assert body["events"][0]["method"] == "session/request_permission"
    assert_answered_once(session, (decision, "app"))


def test_a_no_is_possible_where_no_option_says_it(app):
    session = app.session(permission_mode="ask")
    only = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    wire = session.send({"permission": {"kind": "edit", "options": only}})
    question, = asked(session)
    accept(answer(session, question["id"], decision="deny"))
    assert assert_turn(wire.read())["text"] == "permission: cancelled"
    wire = session.send({"permission": {"kind": "edit", "options": [
        {"optionId": "no", "name": "No", "kind": "reject_once"}]}})
    question, = asked(session)
    assert_error(answer(session, question["id"], decision="allow"), 422, "unknown_option")
    accept(answer(session, question["id"], option_id="no"))
    assert assert_turn(wire.read())["text"] == "permission: no"
    assert_answered_once(session, ("cancelled", "app"), ("deny", "app"))


@pytest.mark.parametrize("body", [{}, {"decision": "maybe"}, {"decision": True}, {"option_id": 7},
                                  {"option_id": None}, {"option_id": "yes", "decision": "deny"}])
def test_a_wrong_answer_changes_nothing(app, body):
    session = app.session(permission_mode="ask")
    wire = session.send({"permission": EDIT})
    question, = asked(session)
    assert_error(answer(session, question["id"], **body), 422, "validation_failed")
    assert_error(answer(session, question["id"], option_id="nonsense"), 422, "unknown_option")
    bad = app.client().post(f"{session.path}/permissions/{question['id']}", content=b"{",
                            headers={"Content-Type": "application/json"})
    assert_error(bad, 400, "bad_json")
    assert open_questions(session) == [question]
    accept(answer(session, question["id"], decision="allow"))
    assert_turn(wire.read())


def test_a_question_that_is_none_is_not_found(app):
    session = app.session(permission_mode="ask")
    for question_id in ("00000000-0000-7000-8000-000000000000", "x", "a%2Fb"):
        assert_error(answer(session, question_id, decision="allow"), 404, "permission_not_found")
    session.close()
    assert open_questions(session) == []
    assert_error(answer(session, "x", decision="allow"), 410, "session_closed")


def test_other_apps_questions_do_not_exist(app, forge):
    session = app.session(permission_mode="ask")
    wire = session.send({"permission": EDIT})
    question, = asked(session)
    stranger = Talker(forge, "stranger-with-answers").client()
    paths = [session.path, "/sessions/00000000-0000-7000-8000-000000000000", "/sessions/no.id"]
    assert_same_refusal([stranger.get(path + "/permissions") for path in paths], 404,
                        "session_not_found")
    assert_same_refusal([stranger.post(f"{path}/permissions/{question['id']}",
                                       json={"decision": "allow"}) for path in paths], 404,
                        "session_not_found")
    accept(answer(session, question["id"], decision="deny"))
    assert assert_turn(wire.read())["text"] == "permission: reject-once"


# The matrix. In every mode but `ask` the rule has decided before anybody could do anything, and
# whatever happens then changes nothing about it.

def ruled(mode):
    return "allow" if RULED[mode] == "allow-once" else "deny", "rule"


@pytest.mark.parametrize("mode", MODES)
def test_no_client(hasty, mode):
    session = Talker(hasty, f"no-client-{mode}").session(permission_mode=mode)
    stream_turn(session, {"permission": EDIT}).close()
    wait_until(lambda: session.state()["turn_count"] == 1 and not session.state()["busy"],
               "the turn ends")
    resolved, = assert_answered_once(session, ("deny", "expiry") if mode == "ask" else ruled(mode))
    assert resolved["option_id"] == RULED.get(mode, "reject-once")
    assert session.report("answers") == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_client_leaves_and_comes_back(app, mode):
    session = app.session(permission_mode=mode)
    stream = stream_turn(session, {"permission": EDIT})
    told = stream.expect("permission")
    stream.close()
    if mode == "ask":
        question, = open_questions(session)
        assert question["id"] == told.json()["id"]
        accept(answer(session, question["id"], decision="allow"))
    with tail(session, last_id=told.id) as stream:
        stream.expect("permission_resolved")
        outcome = RULED.get(mode, "allow-once")
        assert messages(stream.until("done")) == [f"permission: {outcome}"]
    assert_answered_once(session, ("allow", "app") if mode == "ask" else ruled(mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_second_client_answers(app, forge, mode):
    session = app.session(permission_mode=mode)
    first = stream_turn(session, {"permission": EDIT})
    question_id = first.expect("permission").json()["id"]
    with tail(session) as second, forge.client(app.token) as client:
        assert second.expect() == first.opening
        second.expect("permission")
        answered = answer(session, question_id, client, decision="deny")
        if mode == "ask":
            accept(answered)
        else:
            assert_error(answered, 409, "already_answered")
        again = answer(session, question_id, decision="allow")
        assert_error(again, 409, "already_answered")
        events = second.until("done")
    assert first.rest() == events
    assert messages(events) == [f"permission: {RULED.get(mode, 'reject-once')}"]
    assert_answered_once(session, ("deny", "app") if mode == "ask" else ruled(mode))
    assert session.report("answers") == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_late_answer(hasty, mode):
    session = Talker(hasty, f"late-{mode}").session(permission_mode=mode)
    events = stream_turn(session, {"permission": EDIT}).rest()
    question_id = events[0].json()["id"]
    assert_error(answer(session, question_id, decision="allow"), 409, "already_answered")
    assert messages(events) == [f"permission: {RULED.get(mode, 'reject-once')}"]
    assert_answered_once(session, ("deny", "expiry") if mode == "ask" else ruled(mode))
    assert session.report("answers") == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_cancel_while_it_is_open(app, mode, tmp_path):
    session = app.session(permission_mode=mode)
    stream = stream_turn(session, {"permission": EDIT}, {"wait_for": str(tmp_path / "never")})
    question_id = stream.expect("permission").json()["id"]
    cancelled = app.client().post(session.path + "/cancel")
    assert cancelled.json() == {"ok": True, "cancelled": True}
    events = stream.rest()
    assert events[-1].name == "done" and events[-1].json()["stop_reason"] == "cancelled"
    assert open_questions(session) == []
    assert_error(answer(session, question_id, decision="allow"), 409, "already_answered")
    assert_answered_once(session, ("cancelled", "cancel") if mode == "ask" else ruled(mode))
    assert session.told("x") == "echo: x"


@pytest.mark.parametrize("mode", MODES)
def test_two_questions_at_once(app, mode):
    session = app.session(permission_mode=mode)
    stream = stream_turn(session, {"permissions": [READ, EDIT]})
    if mode == "ask":
        first, second = asked(session, 2)
        assert (first["kind"], second["kind"]) == ("read", "edit"), "the oldest first"
        accept(answer(session, second["id"], decision="allow"))
        assert open_questions(session) == [first]
        accept(answer(session, first["id"], decision="deny"))
        expected = ["reject-once", "allow-once"]
    else:
        expected = ["allow-once" if mode == "approve_reads" else RULED[mode], RULED[mode]]
    assert messages(stream.rest()) == [f"permission: {outcome}" for outcome in expected]
    by = "app" if mode == "ask" else "rule"
    assert_answered_once(session, *[("allow" if outcome == "allow-once" else "deny", by)
                                    for outcome in expected])
    assert session.report("answers") == 2


@pytest.mark.parametrize("mode", MODES)
def test_the_session_is_closed_while_it_is_open(app, mode, tmp_path):
    session = app.session(permission_mode=mode)
    stream = stream_turn(session, {"permission": EDIT}, {"wait_for": str(tmp_path / "never")})
    question_id = stream.expect("permission").json()["id"]
    session.close()
    events = stream.rest()
    assert events[-1].name == "failed" and events[-1].json()["code"] == "session_closed"
    assert open_questions(session) == []
    assert_error(answer(session, question_id, decision="allow"), 410, "session_closed")
    assert_answered_once(session, ("cancelled", "cancel") if mode == "ask" else ruled(mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["stop", "kill"])
def test_the_gateway_restarts_while_it_is_open(new_forge, mode, way, tmp_path):
    forge = new_forge(drain_grace_secs=0, cancel_grace_ms=200)
    session = Talker(forge).session(permission_mode=mode)
    stream = stream_turn(session, {"permission": EDIT}, {"wait_for": str(tmp_path / "never")})
    question_id = stream.expect("permission").json()["id"]
    if mode != "ask":
        stream.expect("permission_resolved")
    if way == "stop":
        forge.restart()
    else:
        forge.kill()
        forge.start()
    assert open_questions(session) == []
    assert_error(answer(session, question_id, decision="allow"), 404, "permission_not_found")
    events = page(session)["events"]
    assert events[-1]["event"] == "failed" and events[-1]["data"]["code"] == "interrupted"
    if mode == "ask" and way == "kill":
        assert decisions(session) == [], "the question was never decided"
    else:
        assert_answered_once(session, ("cancelled", "cancel") if mode == "ask" else ruled(mode))
    assert session.told("x") == "echo: x"


# Time and races

def test_time_ends_each_question_by_itself(hasty):
    session = Talker(hasty, "each").session(permission_mode="ask")
    begun = time.monotonic()
    body = session.ask({"permission": EDIT}, {"permission": READ})
    assert 2 <= time.monotonic() - begun < 20
    assert body["text"] == "permission: reject-oncepermission: reject-once"
    assert_answered_once(session, ("deny", "expiry"), ("deny", "expiry"))


def test_a_turns_own_time_goes_on_while_it_waits_for_an_answer(app):
    session = app.session(permission_mode="ask")
    assert_turn_failure(session.turn({"permission": EDIT}, timeout_secs=5), 504, "timeout")
    assert_answered_once(session, ("cancelled", "cancel"))


def test_exactly_one_of_many_answers_counts(app):
    session = app.session(permission_mode="ask")
    racers, rounds = 4, fewer(12)
    for _ in range(rounds):
        wire = session.send({"permission": EDIT})
        question, = asked(session)
        start = threading.Barrier(racers)
        answers = {}

        def race(number, question_id=question["id"]):
            with app.gateway.client(app.token) as client:
                client.get("/whoami")
                start.wait()
                answers[number] = answer(session, question_id, client,
                                         decision="allow" if number % 2 else "deny")
        threads = [threading.Thread(target=race, args=[number]) for number in range(racers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winner, = [number for number, one in answers.items() if one.status_code == 200]
        for number, one in answers.items():
            if number != winner:
                assert_error(one, 409, "already_answered")
        outcome = "allow-once" if winner % 2 else "reject-once"
        assert assert_turn(wire.read())["text"] == f"permission: {outcome}"
    assert session.report("answers") == rounds
    assert len(decisions(session)) == rounds


def test_an_answer_and_a_cancel_at_once_leave_one_decision(app, tmp_path):
    session = app.session(permission_mode="ask")
    rounds = fewer(12)
    for _ in range(rounds):
        wire = session.send({"permission": EDIT}, {"wait_for": str(tmp_path / "never")})
        question, = asked(session)
        start = threading.Barrier(2)
        done = []

        def cancel():
            with app.gateway.client(app.token) as client:
                start.wait()
                done.append(client.post(session.path + "/cancel").json()["cancelled"])
        thread = threading.Thread(target=cancel)
        thread.start()
        start.wait()
        answered = answer(session, question["id"], decision="allow")
        thread.join()
        assert done == [True]
        assert answered.status_code in (200, 409)
        assert assert_turn(wire.read())["stop_reason"] == "cancelled"
        assert decisions(session)[-1][2] == ("app" if answered.status_code == 200 else "cancel")
    assert len(decisions(session)) == rounds
    assert session.report("answers") == rounds


def test_the_built_in_agent_asks_too(app):
    session = app.session("demo", permission_mode="ask")
    wire = session.send("permission edit")
    question, = asked(session)
    assert question["kind"] == "edit"
    accept(answer(session, question["id"], decision="allow"))
    assert assert_turn(wire.read())["text"] == "I was allowed to edit."
