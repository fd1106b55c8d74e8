"""How many sessions may be open and how many agents may live; sleep, waking, what is left."""
import concurrent.futures
import json
import random

import pytest

from agents import descriptors, fewer, processes
from answers import assert_error
from gateway import wait_until
from sessions import (BOTH_KINDS, Session, Talker, assert_created, assert_no_process_left,
                      assert_turn, assert_turn_failure, audit, change, new_forge, only_acp, query,
                      session_dirs, session_rows, sweep)

__all__ = ["new_forge"]  # fixtures

KINDS = BOTH_KINDS

# Fewer through acpx, where every session and every turn is made by programs of their own.
CREATED_AND_CLOSED = {"acp": 200, "acpx": 40}
PLANS = {"acp": 24, "acpx": 8}
SLEEPERS, PLACES = 20, 4


def live(sessions):
    return [session for session in sessions if session.processes()]


# Open sessions

def test_a_full_pool_is_503_and_leaves_nothing(new_forge):
    gateway = new_forge(max_live_sessions=2)
    one, two = Talker(gateway, "one"), Talker(gateway, "two")
    first, _ = one.session(), two.session()
    for app in (one, two):
        assert_error(app.create(), 503, "pool_full")
    assert len(session_rows(gateway)) == 2 and len(session_dirs(gateway)) == 2
    first.close()
    assert two.session().told("hello") == "echo: hello"
    assert_error(one.create(), 503, "pool_full")


def test_a_caller_that_makes_one_after_another_is_never_refused(new_forge):
    """Its cap counts open sessions: one that is closed has given its share back with the answer."""
    gateway = new_forge(max_live_sessions=1, max_agents=1, agents={"fake": ["--ignore-eof", "--ignore-term"]})
    app = Talker(gateway, max_sessions=1)
    for _ in range(3):
        session = app.session()
        assert session.told("hello") == "echo: hello"
        session.close()


def test_a_sleeping_session_counts_as_open(new_forge):
    gateway = new_forge(max_live_sessions=2, max_agents=1)
    app = Talker(gateway)
    sessions = [app.session(), app.session()]
    assert len(live(sessions)) == 1
    assert_error(app.create(), 503, "pool_full")
    gateway.restart()
    assert_error(app.create(), 503, "pool_full")


def test_one_app_leaves_a_quarter_of_the_sessions_to_the_others(new_forge):
    gateway = new_forge(max_live_sessions=8, max_agents=2)
    greedy, modest = Talker(gateway, "greedy"), Talker(gateway, "modest")
    sessions = [greedy.session() for _ in range(6)]
    refused = greedy.create()
    assert_error(refused, 503, "pool_full")
    assert int(refused.headers["Retry-After"]) >= 1
    assert modest.session().told("hello") == "echo: hello"
    sessions[0].close()
    assert greedy.session().told("hello") == "echo: hello"


@pytest.mark.parametrize("settings, fields", [
    ({"max_sessions_per_app": 8}, {}), ({}, {"max_sessions": 8})])
def test_a_configured_share_is_the_owners_word(new_forge, settings, fields):
    gateway = new_forge(max_live_sessions=8, max_agents=2, **settings)
    app = Talker(gateway, **fields)
    for _ in range(8):
        app.session()
    assert_error(app.create(), 429, "too_many_sessions")


def test_a_row_closed_by_sql_makes_room(new_forge):
    gateway = new_forge(max_live_sessions=1)
    app = Talker(gateway)
    session = app.session()
    assert_error(app.create(), 503, "pool_full")
    change(gateway, "UPDATE sessions SET closed_at = 5 WHERE session_id = ?", session.id)
    assert app.session().told("hello") == "echo: hello"


@only_acp
@pytest.mark.parametrize("settings, fields", [
    ({"max_sessions_per_app": 2}, {}), ({}, {"max_sessions": 2}),
    ({"max_sessions_per_app": 9}, {"max_sessions": 2}),
    ({"max_sessions_per_app": 1}, {"max_sessions": 2})])
def test_an_app_has_no_more_sessions_than_it_may_have(new_forge, settings, fields):
    gateway = new_forge(**settings)
    app, other = Talker(gateway, "limited", **fields), Talker(gateway, "other")
    first, _ = app.session(), app.session()
    assert_error(app.create(), 429, "too_many_sessions")
    assert other.session().told("hello") == "echo: hello"
    assert len(session_rows(gateway)) == 3
    first.close()
    assert app.session().told("hello") == "echo: hello"


def test_creates_at_once_do_not_get_past_the_limit(new_forge):
    gateway = new_forge(max_live_sessions=5)
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: app.create(), range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [503] * 7
    assert len(app.ids()) == 5


def test_a_failed_create_gives_its_place_back(new_forge):
    gateway = new_forge({"broken": ["--at-new", "exit"]}, max_live_sessions=1)
    app = Talker(gateway)
    for _ in range(3):
        assert_error(app.create("broken"), 502, "agent_exited")
    assert app.session().told("hello") == "echo: hello"


@pytest.mark.timeout(400)
def test_200_sessions_created_and_closed_leave_nothing(new_forge, agent_kind):
    gateway = new_forge(max_live_sessions=16)
    app = Talker(gateway)
    count = fewer(CREATED_AND_CLOSED[agent_kind])

    def one(number):
        session = app.session("demo" if number % 2 and agent_kind == "acp" else "fake")
        if number % 4 < 2:
            session.ask("hello")
        assert session.close() == {"ok": True}

    def many(count):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(count)))
        assert_no_process_left(gateway)
    many(16)
    before = descriptors(gateway)
    many(count)
    wait_until(lambda: descriptors(gateway) <= before, "as many descriptors as before")
    assert not [row for row in session_rows(gateway) if row["closed_at"] is None]
    assert not [row for row in session_rows(gateway) if row["process_pid"] is not None]
    assert query(gateway, "SELECT * FROM turns WHERE ended_at IS NULL") == []
    change(gateway, "UPDATE sessions SET closed_at = 5")
    assert sweep(gateway) == (0, 16 + count)
    wait_until(lambda: not session_dirs(gateway), "all directories are gone")
    assert session_rows(gateway) == []
    assert query(gateway, "SELECT * FROM journal") == []


# Agents

def share_four_places(new_forge, agent):
    gateway = new_forge(max_live_sessions=SLEEPERS, max_sessions_per_app=SLEEPERS, max_agents=PLACES)
    app = Talker(gateway)
    sessions = []
    for number in range(SLEEPERS):
        session = app.session(agent)
        assert session.ask(f"remember {number}")["turn_index"] == 1
        sessions.append(session)
        wait_until(lambda: len(live(sessions)) <= PLACES, "no more live than may")
    question = "what do you remember" if agent == "demo" else json.dumps([{"recall": True}])
    order = list(range(SLEEPERS))
    random.Random(5).shuffle(order)
    for number in order:
        body = assert_turn(sessions[number].turn(question))
        assert f"remember {number}" in body["text"]
        assert body.get("resumed") in (None, True)
        wait_until(lambda: len(live(sessions)) <= PLACES, "no more live than may")
    states = [session.state() for session in sessions]
    assert [state["turn_count"] for state in states] == [2] * SLEEPERS
    assert sum(state["live"] for state in states) <= PLACES
    assert not any(state["closed_at"] for state in states)
    for session in sessions:
        session.close()
    assert_no_process_left(gateway)


@pytest.mark.timeout(300)
def test_twenty_sessions_share_four_places_and_forget_nothing(new_forge):
    share_four_places(new_forge, "fake")


@only_acp  # the demo is never behind acpx, which wakes all its agents in one way
@pytest.mark.parametrize("agent", ["demo", "resume"])
def test_the_same_with_agents_that_are_woken_in_other_ways(new_forge, agent):
    share_four_places(new_forge, agent)


def test_who_sleeps_is_the_one_idle_for_longest(new_forge):
    app = Talker(new_forge(max_agents=2))
    first, second = app.session(), app.session()
    second.ask("a")
    first.ask("b")
    third = app.session()
    wait_until(lambda: not second.processes(), "the second sleeps")
    assert first.processes() and third.processes()
    assert_turn(second.turn("c"), resumed=True)
    wait_until(lambda: not first.processes(), "now the first sleeps")


@only_acp
def test_an_agent_that_cannot_load_is_put_to_sleep_last(new_forge):
    app = Talker(new_forge(max_agents=2))
    forgetful, other = app.session("no-load"), app.session()
    forgetful.ask("a")
    other.ask("b")
    app.session()
    wait_until(lambda: not other.processes(), "the one that loads again sleeps")
    assert forgetful.processes()


def test_sleeping_is_no_end(new_forge):
    gateway = new_forge(max_agents=1)
    app = Talker(gateway)
    first, second = app.session(), app.session()
    assert first.state()["live"] is False and second.state()["live"] is True
    assert first.state()["closed_at"] is None
    assert audit(gateway, first) == ["create"]
    assert first.close() == {"ok": True}, "without being woken"
    assert second.processes()


@only_acp
@pytest.mark.timeout(400)
def test_more_sessions_than_places_talk_at_once(new_forge):
    """Turns wait for a place, sleepers are woken and put to sleep, all at the same time."""
    gateway = new_forge(max_live_sessions=SLEEPERS, max_sessions_per_app=SLEEPERS, max_agents=PLACES)
    app = Talker(gateway)
    sessions = [app.session("demo") for _ in range(SLEEPERS)]

    def talk(number):
        for turn in range(fewer(8)):
            body = assert_turn(sessions[number].turn(f"{number}-{turn}", timeout_secs=110))
            assert body["text"] == f"You said: {number}-{turn}"
            assert body.get("resumed") in (None, True)
        return sessions[number].told("what do you remember", timeout_secs=110)

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        told = list(pool.map(talk, range(SLEEPERS)))
    for number, text in enumerate(told):
        assert [line.split(". ")[1] for line in text.split("\n")[1:]] == [
            f"{number}-{turn}" for turn in range(fewer(8))]
    wait_until(lambda: len(live(sessions)) <= PLACES, "no more live than may")


def test_a_turn_waits_for_a_place_while_all_are_busy(new_forge, tmp_path):
    gateway = new_forge(max_agents=1)
    app = Talker(gateway)
    sleeper, busy = app.session(), app.session()
    held = busy.hold(tmp_path).begun()
    waiting = sleeper.hold(tmp_path)
    wait_until(lambda: sleeper.state()["turn_count"] == 1, "it is accepted")
    assert_turn(held.end())
    waiting.begun()
    assert_turn(waiting.end(), resumed=True)
    wait_until(lambda: not busy.processes(), "the other sleeps now")


@only_acp
def test_a_turn_that_gets_no_place_in_time_never_starts(new_forge, tmp_path):
    gateway = new_forge(max_agents=1)
    app = Talker(gateway)
    sleeper, busy = app.session(), app.session()
    held = busy.hold(tmp_path).begun()
    late = sleeper.hold(tmp_path, timeout_secs=5)
    answer = late.answer()
    assert_turn_failure(answer, 503, "queue_timeout")
    assert int(answer.header("Retry-After")) >= 1
    assert_turn(held.end())
    assert not late.has_begun()
    assert_turn(sleeper.turn("hello"), resumed=True)


@only_acp
def test_a_create_that_gets_no_place_in_time_is_503_and_leaves_nothing(new_forge, tmp_path):
    gateway = new_forge(max_agents=1, agent_start_timeout_secs=1)
    app = Talker(gateway)
    busy = app.session()
    held = busy.hold(tmp_path).begun()
    answer = app.create()
    assert_error(answer, 503, "queue_timeout")
    assert len(session_rows(gateway)) == 1
    assert_turn(held.end())
    assert app.session().told("hello") == "echo: hello"


def test_an_agent_that_does_not_end_holds_its_place_until_it_is_gone(new_forge):
    gateway = new_forge({"stubborn": ["--ignore-term", "--ignore-eof"]}, max_agents=1)
    app = Talker(gateway)
    first = app.session("stubborn")
    second = app.session("stubborn")
    assert not first.processes(), "one at a time"
    assert_turn(first.turn("hello"), resumed=True)
    assert not second.processes()


def test_all_kinds_of_work_at_once_leave_nothing(new_forge, agent_kind):
    gateway = new_forge(max_live_sessions=12, max_sessions_per_app=12, max_agents=3, cancel_grace_ms=200)
    app = Talker(gateway)
    choice = random.Random(11)
    ways = [[{"text": "a"}], [{"exit": 1}], [{"signal": 9}], [{"flood": 500}],
            [{"error": {"code": 1, "message": "x"}}], [{"nonsense": 20}], [{"close": "stdout"}],
            [{"children": ["setsid", "daemon", "stubborn"]}]]
    plans = [[choice.choice(ways) for _ in range(3)] for _ in range(fewer(PLANS[agent_kind]))]

    def one(plan):
        answer = app.create()
        if answer.status_code == 503:
            return
        session = Session(app, assert_created(answer)["session_id"])
        for steps in plan:
            answer = session.turn(*steps, timeout_secs=60)
            assert answer.status_code in (200, 502), answer.text
        session.close()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, plans))
    assert_no_process_left(gateway)
    assert not [row for row in session_rows(gateway) if row["closed_at"] is None]
    assert query(gateway, "SELECT * FROM turns WHERE ended_at IS NULL") == []
    assert not processes(gateway)
