"""Cancelling the turn that runs, and nothing else."""
import threading
import time

import pytest

from agents import fewer
from answers import assert_error
from gateway import SECONDS_MAX, wait_until
from sessions import (Talker, app, assert_same_refusal, assert_turn, audit, forge, journal,
                      new_forge, turn_rows)
from streams import message_of, messages, stream_turn

__all__ = ["app", "forge", "new_forge"]  # fixtures


def cancel(session, client=None):
    """Whether there was a turn to cancel."""
    answer = (client or session.app.client()).post(session.path + "/cancel")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"ok", "cancelled"} and answer.json()["ok"] is True
    return answer.json()["cancelled"]


def assert_cancelled(gateway, session, index):
    """The turn has ended, once, as cancelled."""
    row = turn_rows(gateway, session)[index - 1]
    assert (row["state"], row["stop_reason"], row["code"]) == ("cancelled", "cancelled", None)
    closing = [event for event in journal(gateway, session)
               if event["turn_index"] == index and event["event"] in ("done", "failed")]
    assert [event["event"] for event in closing] == ["done"]
    assert closing[0]["data"]["stop_reason"] == "cancelled"


def test_a_running_turn_is_cancelled_and_its_agent_goes_on(app, forge):
    session = app.session()
    with stream_turn(session, {"text": "so far"}, {"sleep_until_cancel": True}) as stream:
        assert message_of(stream.expect()) == "so far"
        pid = session.pid()
        assert cancel(session) is True
        done = stream.rest()[-1]
    assert done.name == "done"
    body = done.json()
    assert (body["ok"], body["stop_reason"], body["text"]) == (True, "cancelled", "so far")
    assert_cancelled(forge, session, 1)
    assert "resumed" not in session.ask("x")
    assert session.pid() == pid
    assert audit(forge, session) == ["create", "cancel", "turn", "turn"]


def test_a_cancel_is_in_the_audit_when_it_is_answered(app, forge):
    session = app.session()
    for count in range(1, fewer(20) + 1):
        with stream_turn(session, {"text": "so far"}, {"linger_ms": 50},
                         {"sleep_until_cancel": True}) as stream:
            stream.expect()
            assert cancel(session) is True
            assert audit(forge, session).count("cancel") == count
            stream.rest()


def test_a_plain_turn_is_answered_as_cancelled(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path, {"text": "so far"}).begun()
    assert cancel(session) is True
    body = assert_turn(held.answer())
    assert (body["stop_reason"], body["text"]) == ("cancelled", "so far")
    assert_cancelled(forge, session, 1)


def test_waiting_turns_go_on(app, forge, tmp_path):
    session = app.session()
    first = session.hold(tmp_path).begun()
    others = []
    for number in (2, 3):
        others.append(session.hold(tmp_path))
        wait_until(lambda count=number: session.state()["turn_count"] == count, "it waits")
    assert cancel(session) is True
    assert assert_turn(first.answer())["stop_reason"] == "cancelled"
    for turn in others:
        turn.begun()
        body = assert_turn(turn.end())
        assert (body["stop_reason"], body["text"]) == ("end_turn", turn.name)
    assert [row["state"] for row in turn_rows(forge, session)] == ["cancelled", "done", "done"]


@pytest.mark.parametrize("agent, remembers", [("fake", True), ("no-load", False)])
def test_an_agent_that_ignores_it_is_ended_and_started_again(new_forge, agent, remembers):
    forge = new_forge(cancel_grace_ms=300)
    session = Talker(forge).session(agent)
    session.ask("remember me")
    pid = session.pid()
    with stream_turn(session, {"ignore_cancel": True}, {"text": "here"}, {"stall": True}) as stream:
        assert message_of(stream.expect()) == "here"
        begun = time.monotonic()
        assert cancel(session) is True
        events = stream.rest()
    assert 0.3 <= time.monotonic() - begun < SECONDS_MAX
    assert [event.name for event in events] == ["done"]
    assert events[0].json()["stop_reason"] == "cancelled"
    assert_cancelled(forge, session, 2)
    body = session.ask({"recall": True})
    assert body["resumed"] is remembers
    assert ("remember me" in body["text"]) is remembers
    assert session.pid() not in (None, pid)


def test_an_agent_may_take_its_time_within_the_grace(new_forge):
    forge = new_forge(cancel_grace_ms=10_000)
    session = Talker(forge).session()
    with stream_turn(session, {"linger_ms": 500}, {"text": "here"},
                     {"sleep_until_cancel": True}) as stream:
        stream.expect()
        pid = session.pid()
        assert cancel(session) is True
        assert stream.rest()[-1].json()["stop_reason"] == "cancelled"
    session.ask("x")
    assert session.pid() == pid


def test_it_is_sent_to_the_agent_once(new_forge, tmp_path):
    log = tmp_path / "calls"
    forge = new_forge(agents={"logging": ["--log", str(log)]}, cancel_grace_ms=10_000)
    session = Talker(forge).session("logging")
    with stream_turn(session, {"ignore_cancel": True}, {"text": "here"},
                     {"wait_for": str(tmp_path / "gate")}) as stream:
        stream.expect()
        start = threading.Barrier(4)
        found = []

        def call():
            with forge.client(session.app.token) as client:
                start.wait()
                found.append(cancel(session, client))
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4
        (tmp_path / "gate").touch()
        assert stream.rest()[-1].json()["stop_reason"] == "cancelled"
    session.ask("x")
    assert log.read_text().split().count("session/cancel") == 1
    assert audit(forge, session).count("cancel") == 1


def test_without_a_turn_there_is_nothing_to_cancel(app, forge):
    session = app.session()
    assert cancel(session) is False
    session.ask("x")
    assert cancel(session) is False
    assert "cancel" not in audit(forge, session)
    assert session.told("still here") == "echo: still here"


def test_a_session_asleep_has_nothing_to_cancel(app):
    session = app.session()
    session.turn({"exit": 0})
    wait_until(lambda: session.pid() is None, "its agent has ended")
    assert cancel(session) is False
    assert session.pid() is None, "its agent was not woken for it"


def test_a_closed_session_cannot_be_cancelled(app):
    session = app.session()
    session.close()
    assert_error(app.client().post(session.path + "/cancel"), 410, "session_closed")


def test_other_apps_turns_cannot_be_cancelled(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    stranger = Talker(forge, "stranger-who-cancels").client()
    paths = [session.path, "/sessions/00000000-0000-7000-8000-000000000000", "/sessions/no.id"]
    assert_same_refusal([stranger.post(path + "/cancel") for path in paths], 404,
                        "session_not_found")
    assert assert_turn(held.end())["stop_reason"] == "end_turn"


def test_a_turn_is_cancelled_while_its_agent_starts(new_forge):
    forge = new_forge(agents={"stalls": ["--at-load", "stall"]}, agent_start_timeout_secs=60)
    session = Talker(forge).session("stalls")
    session.turn({"exit": 0})
    wait_until(lambda: session.pid() is None, "its agent has ended")
    with stream_turn(session, "x") as stream:
        wait_until(lambda: session.pid() is not None, "its agent is started again")
        begun = time.monotonic()
        assert cancel(session) is True
        events = stream.rest()
    assert time.monotonic() - begun < SECONDS_MAX
    assert [event.name for event in events] == ["done"]
    assert events[0].json()["stop_reason"] == "cancelled"
    assert_cancelled(forge, session, 2)
    wait_until(lambda: session.pid() is None, "what was started has ended")


def test_a_session_being_cancelled_is_closed_without_waiting_for_the_grace(new_forge):
    forge = new_forge(cancel_grace_ms=60_000)
    session = Talker(forge).session()
    with stream_turn(session, {"ignore_cancel": True}, {"text": "here"}, {"stall": True}) as stream:
        stream.expect()
        assert cancel(session) is True
        begun = time.monotonic()
        session.close()
        assert time.monotonic() - begun < 30
        assert [event.json()["stop_reason"] for event in stream.rest()] == ["cancelled"]


def test_a_cancel_never_reaches_the_next_turn(app, forge):
    session = app.session()
    for number in range(fewer(20)):
        wire = session.send({"text": "quick"})
        cancel(session)
        assert assert_turn(wire.read())["stop_reason"] in ("end_turn", "cancelled")
        body = session.ask({"text": f"next {number}"})
        assert (body["stop_reason"], body["text"]) == ("end_turn", f"next {number}")
    closing = [event["turn_index"] for event in journal(forge, session)
               if event["event"] in ("done", "failed")]
    assert closing == list(range(1, session.state()["turn_count"] + 1))


def test_what_was_said_before_the_cancel_is_kept(app):
    session = app.session()
    count = 500
    with stream_turn(session, {"count": count}, {"sleep_until_cancel": True}) as stream:
        told = stream.take(count)
        assert cancel(session) is True
        stream.rest()
    assert messages(told) == [str(number) for number in range(count)]
