"""Turns of one session: one after another, in order, with a bounded queue in front."""
import json
import time

import pytest

from answers import assert_error
from gateway import SECONDS_MAX, wait_until
from sessions import (BOTH_KINDS, Talker, app, assert_turn, assert_turn_failure, audit, change,
                      forge, journal, new_forge, texts_of, turn_rows)

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = BOTH_KINDS

WAITING_MAX = 8


def in_line(session, place, count):
    """The first turn of a session, running, and so many behind it, each accepted before the next
    is sent."""
    turns = [session.hold(place).begun()]
    while len(turns) <= count:
        turns.append(session.hold(place))
        wait_until(lambda: session.state()["turn_count"] == len(turns), "it has its index")
    return turns


def has_ended(gateway, session, index):
    return [row for row in turn_rows(gateway, session)
            if row["turn_index"] == index and row["ended_at"] is not None]


def test_eight_wait_in_order_and_the_ninth_is_refused(app, forge, tmp_path):
    session = app.session()
    turns = in_line(session, tmp_path, WAITING_MAX)
    refused = session.turn("one too many")
    assert_error(refused, 409, "turn_queue_full")
    assert session.state()["turn_count"] == WAITING_MAX + 1, "a refused one gets no index"
    for index, turn in enumerate(turns, 1):
        turn.begun()
        assert not [later for later in turns[index:] if later.has_begun()], "one at a time"
        body = assert_turn(turn.end())
        assert (body["turn_index"], body["text"]) == (index, turn.name)
    rows = turn_rows(forge, session)
    assert [(row["turn_index"], row["state"]) for row in rows] == [
        (index, "done") for index in range(1, WAITING_MAX + 2)]
    closing = [event["turn_index"] for event in journal(forge, session) if event["event"] == "done"]
    assert closing == list(range(1, WAITING_MAX + 2))
    assert session.ask("now there is room")["turn_index"] == WAITING_MAX + 2


def test_a_place_that_is_free_again_is_given_again(app, tmp_path):
    session = app.session()
    turns = in_line(session, tmp_path, WAITING_MAX)
    assert_error(session.turn("no"), 409, "turn_queue_full")
    assert_turn(turns[0].end())
    turns[1].begun()
    late = session.hold(tmp_path)
    wait_until(lambda: session.state()["turn_count"] == WAITING_MAX + 2, "it waits")
    assert_error(session.turn("no"), 409, "turn_queue_full")
    for turn in (*turns[1:], late):
        assert_turn(turn.end())


def test_the_queue_of_one_session_is_not_anothers(app, tmp_path):
    session, other = app.session(), app.session()
    turns = in_line(session, tmp_path, WAITING_MAX)
    assert other.told("hello") == "echo: hello"
    session.close()
    for turn in turns:
        turn.answer()


def test_a_turn_whose_time_ends_while_it_waits_never_starts(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    late = session.hold(tmp_path, timeout_secs=5)
    patient = session.hold(tmp_path, timeout_secs=60)
    wait_until(lambda: session.state()["turn_count"] == 3, "both wait")
    answer = late.answer()
    body = assert_turn_failure(answer, 503, "queue_timeout")
    assert int(answer.header("Retry-After")) >= 1
    assert (body["turn_index"], body["events"]) == (2, [])
    assert_turn(held.end())
    assert assert_turn(patient.end())["turn_index"] == 3
    assert not late.has_begun()
    assert [row["state"] for row in turn_rows(forge, session)] == ["done", "failed", "done"]
    heard = json.loads(session.told({"recall": True}))
    assert len(heard) == 3 and not any(late.name in prompt for prompt in heard)


def test_time_counts_from_the_request_and_not_from_the_turns_start(app, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    late = session.send({"text": "a"}, {"sleep_until_cancel": True}, timeout_secs=8)
    begun = time.monotonic()
    wait_until(lambda: session.state()["turn_count"] == 2, "it waits")
    wait_until(lambda: time.monotonic() - begun > 4, "it waits for half of its time")
    assert_turn(held.end())
    waited = time.monotonic() - begun
    body = assert_turn_failure(late.read(), 504, "timeout")
    assert 7 < time.monotonic() - begun < waited + 8
    assert texts_of(body["events"])[:1] == ["a"]


def test_close_ends_the_running_turn_and_all_that_wait(app, forge, tmp_path):
    session = app.session()
    turns = in_line(session, tmp_path, 3)
    assert session.close() == {"ok": True}
    for index, turn in enumerate(turns, 1):
        body = assert_turn_failure(turn.answer(), 410, "session_closed")
        assert (body["session_id"], body["turn_index"]) == (session.id, index)
    assert not [turn for turn in turns[1:] if turn.has_begun()]
    assert not session.processes()
    assert session.close() == {"ok": True, "already_closed": True}
    assert_error(session.turn("hello"), 410, "session_closed")
    assert {row["state"] for row in turn_rows(forge, session)} == {"failed"}
    assert all(row["ended_at"] for row in turn_rows(forge, session))
    closing = [event for event in journal(forge, session) if event["event"] in ("done", "failed")]
    assert sorted(event["turn_index"] for event in closing) == [1, 2, 3, 4], "each has one end"
    assert audit(forge, session)[0] == "create" and "close" in audit(forge, session)


@pytest.mark.parametrize("steps", [[{"ignore_cancel": True}], [{"text": "a"}]])
def test_close_does_not_wait_for_an_agent_that_does_not_listen(app, tmp_path, steps):
    session = app.session()
    held = session.hold(tmp_path, *steps).begun()
    begun = time.monotonic()
    session.close()
    assert time.monotonic() - begun < SECONDS_MAX
    assert_turn_failure(held.answer(), 410, "session_closed")
    assert not session.processes()


def test_a_waiting_caller_who_hangs_up_is_dropped_as_cancelled(app, forge, tmp_path):
    session = app.session()
    turns = in_line(session, tmp_path, 3)
    turns[2].hang_up()
    wait_until(lambda: has_ended(forge, session, 3), "it is dropped")
    row, = has_ended(forge, session, 3)
    assert row["state"] == "cancelled"
    for turn in (turns[0], turns[1], turns[3]):
        assert_turn(turn.end())
    assert not turns[2].has_begun()
    assert session.ask("next")["turn_index"] == 5, "its index is not given again"


def test_who_hangs_up_makes_room_for_another(app, forge, tmp_path):
    session = app.session()
    turns = in_line(session, tmp_path, WAITING_MAX)
    assert_error(session.turn("no"), 409, "turn_queue_full")
    turns[4].hang_up()
    wait_until(lambda: has_ended(forge, session, 5), "it is dropped")
    late = session.hold(tmp_path)
    wait_until(lambda: session.state()["turn_count"] == WAITING_MAX + 2, "there is room")
    assert_error(session.turn("no"), 409, "turn_queue_full")
    session.close()
    for turn in (*turns[:4], *turns[5:], late):
        assert turn.answer().status == 410


def test_a_running_turn_goes_on_when_its_caller_hangs_up(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    later = session.hold(tmp_path)
    wait_until(lambda: session.state()["turn_count"] == 2, "the second waits")
    held.hang_up()
    wait_until(lambda: session.state()["busy"], "it is busy still")
    assert not later.has_begun()
    held.let_go()
    later.begun()
    assert_turn(later.end())
    first, second = turn_rows(forge, session)
    assert (first["state"], first["stop_reason"], second["state"]) == ("done", "end_turn", "done")
    said = [text for event in journal(forge, session) if event["turn_index"] == 1
            for text in texts_of([event["data"]])]
    assert said == [held.name], "what was said is in the journal"


def test_a_turn_without_a_caller_still_ends_at_its_time(new_forge, tmp_path):
    gateway = new_forge(cancel_grace_ms=300)
    session = Talker(gateway).session()
    held = session.hold(tmp_path, timeout_secs=5).begun()
    held.hang_up()
    wait_until(lambda: [row for row in turn_rows(gateway, session) if row["ended_at"]],
               "its time is up")
    row, = turn_rows(gateway, session)
    assert (row["state"], row["code"]) == ("failed", "timeout")
    assert session.ask("hello")["turn_index"] == 2


def test_a_crash_does_not_take_the_waiting_turns_along(app, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    crash = session.send({"exit": 1})
    wait_until(lambda: session.state()["turn_count"] == 2, "it waits")
    last = session.hold(tmp_path)
    wait_until(lambda: session.state()["turn_count"] == 3, "it waits, too")
    assert_turn(held.end())
    assert_turn_failure(crash.read(), 502, "agent_exited")
    assert assert_turn(last.end(), resumed=True)["turn_index"] == 3


def test_a_session_that_is_closed_by_sql_refuses_what_comes_next(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    assert change(forge, "UPDATE sessions SET closed_at = 1 WHERE session_id = ?", session.id) == 1
    assert_error(session.turn("hello"), 410, "session_closed")
    assert forge.admin.post("/admin/sweep").status_code == 200
    assert_turn_failure(held.answer(), 410, "session_closed")
    assert not session.processes()
