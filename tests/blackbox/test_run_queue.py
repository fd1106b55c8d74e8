"""Who runs when: places, the fair queue, limits, the door, and many runs of all kinds."""
import collections
import concurrent.futures
import random
import socket

import pytest

from agents import (ALL_CHILDREN, NUMBERS, App, assert_failure, assert_nothing_left, assert_success,
                    descriptors, fake_env, fewer, rows, running, settled_rows, waiting)
from answers import assert_error, header_of
from gateway import SECONDS_MAX, wait_until

GREEDY_RUNS = 50


def in_line(held_runs, place, *apps):
    """One run of each app in turn, each in the queue before the next is sent."""
    for app in apps:
        before = waiting(app.gateway)
        held_runs.append(app.hold(place))
        wait_until(lambda before=before, app=app: waiting(app.gateway) == before + 1, "it waits")
    return held_runs


def order_of_beginning(held_runs):
    """Lets them go one after the other, as they begin; for gateways that run one at a time."""
    rest, order = list(held_runs), []
    while rest:
        begun = wait_until(lambda: [held for held in rest if held.has_begun()], "the next begins")
        assert len(begun) == 1, "one at a time"
        rest.remove(begun[0])
        order.append(begun[0])
        assert_success(begun[0].end())
        begun[0].hang_up()
    return order


# Places

def test_no_more_run_at_once_than_configured_and_the_others_wait(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=2))
    app = App(gateway)
    runs = [app.hold(tmp_path) for _ in range(5)]
    wait_until(lambda: (running(gateway), waiting(gateway)) == (2, 3), "two run, three wait")
    for ended in range(5):
        begun = wait_until(lambda: [held for held in runs if held.has_begun()], "the next begins")
        assert len(begun) <= 2
        wait_until(lambda: running(gateway) == min(2, 5 - ended), "all places are taken")
        assert_success(begun[0].end())
        runs.remove(begun[0])
    assert_nothing_left(gateway)
    wait_until(lambda: (running(gateway), waiting(gateway)) == (0, 0), "all places are back")


def test_the_runs_of_an_app_begin_in_their_order(new_gateway, tmp_path):
    app = App(new_gateway(env=fake_env(max_runs=1)))
    runs = in_line([app.hold(tmp_path).begun()], tmp_path, app, app, app)
    assert order_of_beginning(runs) == runs


def test_apps_take_turns(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    a, b, c = (App(gateway, name) for name in "abc")
    runs = in_line([a.hold(tmp_path).begun()], tmp_path, a, a, a, b, b, c)
    a0, a1, a2, a3, b0, b1, c0 = runs
    order = order_of_beginning(runs)
    assert order[0] == a0
    assert {order[1], order[2]} == {b0, c0}, "who has had none comes before who has had one"
    assert order.index(a1) < order.index(a2) < order.index(a3)
    assert order.index(b1) < order.index(a2), "no app has three before another has two"


def test_a_greedy_app_does_not_delay_anothers_first_by_more_than_one_run(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    greedy, other = App(gateway, "greedy"), App(gateway, "other")
    first = greedy.hold(tmp_path).begun()
    many = [greedy.hold(tmp_path) for _ in range(GREEDY_RUNS)]
    wait_until(lambda: waiting(gateway) == GREEDY_RUNS, "all of them wait")
    modest = other.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == GREEDY_RUNS + 1, "it waits")
    assert_success(first.end())
    modest.begun()
    assert not [held for held in many if held.has_begun()], "it was next"
    assert_success(modest.end())
    for held in many[1:]:
        held.hang_up()
    wait_until(lambda: waiting(gateway) == 0, "those who have gone do not wait")
    for held in many[:1]:
        held.let_go()
    assert_nothing_left(gateway)
    wait_until(lambda: running(gateway) == 0, "all places are back")


def test_with_two_places_the_second_app_gets_the_next_that_is_free(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=2))
    greedy, other = App(gateway, "greedy"), App(gateway, "other")
    pair = [greedy.hold(tmp_path).begun(), greedy.hold(tmp_path).begun()]
    runs = in_line([], tmp_path, greedy, greedy, other, other)
    assert_success(pair[0].end())
    runs[2].begun()
    assert not any(runs[number].has_begun() for number in (0, 1, 3))
    for held in (pair[1], *runs):
        held.let_go()
    assert [held.answer().status for held in (pair[1], *runs)] == [200] * 5


def test_a_place_is_free_when_the_last_process_is_gone(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1, kill_grace_ms=15_000))
    app, gate = App(gateway), tmp_path / "gate"
    assert_success(app.run({"then_wait_for": str(gate), "ignore_term": True}))
    later = app.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == 1, "it waits, though the first is answered")
    assert not later.has_begun()
    gate.touch()
    assert_success(later.begun().end())


# Limits

# A program that stays after its answer is ended after a second; only then its place is free.
STAYS = {"then_sleep": 600}


@pytest.mark.parametrize("settings, fields", [
    ({"max_runs": 4}, {"max_runs": 1}), ({"max_runs": 4, "max_runs_per_app": 1}, {}),
    ({"max_runs": 1, "max_queued_runs": 0}, {}), ({"max_runs": 1, "max_queued_runs": 0}, {"max_runs": 1})])
def test_a_caller_that_asks_one_after_another_is_never_refused(new_gateway, settings, fields):
    """Its cap counts what is not answered, and a place that is being cleaned up is waited for."""
    app = App(new_gateway(env=fake_env(**settings)), "patient", **fields)
    for _ in range(3):
        assert_success(app.run(STAYS))
    assert_nothing_left(app.gateway)


@pytest.mark.parametrize("settings, fields", [
    ({}, {"max_runs": 2}), ({"max_runs_per_app": 2}, {}),
    ({"max_runs_per_app": 9}, {"max_runs": 2}), ({"max_runs_per_app": 1}, {"max_runs": 2}),
    ({"max_runs": 1}, {"max_runs": 2})])
def test_an_app_has_no_more_runs_than_it_may_have(new_gateway, tmp_path, settings, fields):
    """What waits counts, too; the token's own limit beats the configured one."""
    gateway = new_gateway(env=fake_env(**{"max_runs": 4, **settings}))
    app, other = App(gateway, "limited", **fields), App(gateway, "other")
    pair = [app.hold(tmp_path), app.hold(tmp_path)]
    wait_until(lambda: running(gateway) + waiting(gateway) == 2, "both are in")
    began = tmp_path / "began"
    answer = app.run({"touch": str(began)})
    assert_error(answer, 429, "too_many_runs")
    assert int(answer.headers["Retry-After"]) >= 1
    unhindered = other.hold(tmp_path)
    for held in (*pair, unhindered):
        held.let_go()
    assert [held.answer().status for held in (*pair, unhindered)] == [200] * 3
    assert_nothing_left(gateway)
    wait_until(lambda: running(gateway) == 0, "all places are back")
    assert_success(app.run({}))
    assert not began.exists() and len(rows(gateway)) == 4


@pytest.mark.parametrize("queued", [0, 2])
def test_a_full_queue_is_503_and_says_when_to_come_back(new_gateway, tmp_path, queued):
    gateway = new_gateway(env=fake_env(max_runs=1, max_queued_runs=queued))
    app, began = App(gateway), tmp_path / "began"
    runs = in_line([app.hold(tmp_path).begun()], tmp_path, *[app] * queued)
    answer = app.run({"touch": str(began)})
    assert_error(answer, 503, "queue_full")
    assert int(answer.headers["Retry-After"]) >= 1
    assert order_of_beginning(runs) == runs
    wait_until(lambda: running(gateway) == 0, "the place is back")
    assert_success(app.run({}))
    assert not began.exists() and len(rows(gateway)) == queued + 2


def test_a_greedy_app_does_not_keep_others_out_of_the_queue(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1, max_queued_runs=3))
    greedy, other = App(gateway, "greedy"), App(gateway, "other")
    runs = in_line([greedy.hold(tmp_path).begun()], tmp_path, greedy, greedy, greedy)
    modest = other.hold(tmp_path)
    answer = runs[3].answer()
    assert_error(answer, 503, "queue_full")
    assert waiting(gateway) == 3
    refused = other.run({})
    assert_error(refused, 503, "queue_full")
    assert int(refused.headers["Retry-After"]) >= 1
    assert order_of_beginning([*runs[:3], modest]) == [runs[0], modest, runs[1], runs[2]]
    assert not runs[3].has_begun() and len(rows(gateway)) == 4
    assert int(header_of(answer, "Retry-After") or 0) >= 1


def test_a_run_whose_time_ends_while_it_waits_never_starts(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    held = app.hold(tmp_path).begun()
    late = app.hold(tmp_path, timeout_secs=5)
    patient = app.hold(tmp_path, timeout_secs=60)
    answer = late.answer()
    assert_error(answer, 503, "queue_timeout")
    assert int(answer.header("Retry-After")) >= 1
    assert_success(held.end())
    assert_success(patient.begun().end())
    assert not late.has_begun() and len(settled_rows(gateway, 2)) == 2


# The door

@pytest.mark.parametrize("script, status, code, least, most", [
    ({"known": "agent_not_logged_in"}, 503, "agent_not_logged_in", 1, 60),
    ({"known": "bad_key"}, 503, "agent_not_logged_in", 1, 60),
    ({"known": "usage_limit"}, 429, "account_limit", 1, 3600),
    ({"known": "usage_limit", "reset_in": 7200}, 429, "account_limit", 7100, 7200),
    ({"known": "session_limit"}, 429, "account_limit", 1, 86_400)])
def test_the_door_closes_and_no_program_is_started_in_vain(
        new_gateway, tmp_path, script, status, code, least, most):
    gateway = new_gateway(env=fake_env())
    app, other, began = App(gateway), App(gateway, "other"), tmp_path / "began"
    first = app.run(script)
    told = assert_failure(first, status, code)
    for caller in (app, other):
        answer = caller.run({"touch": str(began)})
        body = assert_failure(answer, status, code, told["error"])
        assert (body["stderr"], body["stop_reason"]) == ("", "error")
        wait = int(answer.headers["Retry-After"])
        assert least <= wait <= most and wait <= int(first.headers["Retry-After"])
        assert "X-Clawdforge-Run-Id" not in answer.headers
    assert len(rows(gateway)) == 1 and not began.exists()
    assert_success(app.run("hello", agent="demo"), "You said: hello")
    assert app.run({}).status_code == status, "the demo has a door of its own"
    gateway.restart()
    assert_success(app.run({}))


@pytest.mark.parametrize("known, least, most", [
    ("model_limit", 7100, 7200), ("long_context", 1, 30), ("rate_limited", 1, 30)])
def test_a_limit_of_one_model_leaves_the_others_alone(new_gateway, tmp_path, known, least, most):
    gateway = new_gateway(env=fake_env())
    app, other, began = App(gateway), App(gateway, "other"), tmp_path / "began"
    first = app.run({"known": known}, model="opus")
    told = assert_failure(first, 429, "account_limit")
    assert least <= int(first.headers["Retry-After"]) <= most
    again = other.run({"touch": str(began)}, model="opus")
    assert_failure(again, 429, "account_limit", told["error"])
    assert not began.exists()
    assert_success(other.run({}, model="sonnet"))
    assert_success(app.run({}))


def test_the_wait_counts_from_the_answer_and_not_from_the_runs_beginning(new_gateway):
    app = App(new_gateway(env=fake_env()))
    answer = app.run({"sleep": 3, "known": "usage_limit", "reset_in": 300})
    assert_failure(answer, 429, "account_limit")
    assert 290 <= int(answer.headers["Retry-After"]) <= 300


def test_other_failures_leave_the_door_open(new_gateway):
    app = App(new_gateway(env=fake_env()))
    for script in ({"known": "overloaded"}, {"known": "server_error"}, {"known": "unreachable"},
                   {"known": "unknown_model"}, {"known": "prompt_too_long"}, {"silent": True},
                   {"silent": True, "signal": 9},
                   {"error": "There's an issue with the selected model (usage limit reached)."},
                   {"error": "The file says: Not logged in · Please run /login"},
                   {"result": "Not logged in · Please run /login"}):
        app.run(script)
        assert_success(app.run({}))


def test_those_who_wait_when_the_door_closes_are_told_at_once(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    first = app.hold(tmp_path, {"known": "agent_not_logged_in"}).begun()
    others = in_line([], tmp_path, app, app, app)
    told = assert_failure(first.end(), 503, "agent_not_logged_in")
    for held in others:
        assert_failure(held.answer(), 503, "agent_not_logged_in", told["error"])
        assert not held.has_begun()
    assert len(settled_rows(gateway, 1)) == 1


def test_a_run_that_succeeds_opens_the_door(new_gateway, tmp_path):
    app = App(new_gateway(env=fake_env(max_runs=2)))
    good, bad = app.hold(tmp_path).begun(), app.hold(tmp_path, {"known": "usage_limit"}).begun()
    assert_failure(bad.end(), 429, "account_limit")
    assert_failure(app.run({}), 429, "account_limit")
    assert_success(good.end())
    assert_success(app.run({}))


def test_the_door_opens_by_itself_and_one_at_a_time_may_try(new_gateway, tmp_path):
    """The one slow test: it lasts as long as the door is closed, half a minute."""
    app = App(new_gateway(env=fake_env()))
    assert_failure(app.run({"known": "agent_not_logged_in"}), 503, "agent_not_logged_in")
    mark, gate = tmp_path / "begun", tmp_path / "gate"
    script = {"touch": str(mark), "wait_for": str(gate)}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        trial = None

        def has_begun():
            nonlocal trial
            if trial is None or (trial.done() and trial.result().status_code == 503):
                trial = pool.submit(app.run, script)
            return mark.exists()
        wait_until(has_begun, "one run may try the agent", 30 + SECONDS_MAX)
        answer = app.run({})
        gate.touch()
        assert_failure(answer, 503, "agent_not_logged_in")
        assert_success(trial.result())
    assert_success(app.run({}))


# Many runs of all kinds

def succeed(app, _):
    assert_success(app.run({"result": {"n": 1}}), {"n": 1})


def fail(app, choice):
    script, code = choice.choice([
        ({"silent": True, "exit": 3}, "agent_exit"), ({"error": "no"}, "agent_error"),
        ({"silent": True, "signal": 9}, "agent_signal"), ({"half": True}, "agent_nonsense")])
    assert_failure(app.run(script), 502, code)


def leave_children(app, choice):
    assert_success(app.run({"children": choice.sample(ALL_CHILDREN, 2), "result": "well"}), "well")


def be_answered_early(app, _):
    assert_success(app.run({"result": "early", "then_sleep": 600}), "early")


def take_too_long(app, choice):
    answer = app.run({"sleep": 600, "ignore_term": choice.random() < 0.5}, timeout_secs=5)
    if answer.status_code == 503:
        assert_error(answer, 503, "queue_timeout")
    else:
        assert_failure(answer, 504, "timeout")


def hang_up(app, choice):
    mark = app.gateway.root / f"begun-{next(NUMBERS)}"
    wire = app.send({"touch": str(mark), "sleep": 600, "children": choice.sample(ALL_CHILDREN, 1)})
    if choice.random() < 0.5:  # the others while they wait or start
        wait_until(mark.exists, "the run begins", 3 * SECONDS_MAX)
    if choice.random() < 0.5:
        wire.socket.shutdown(socket.SHUT_WR)
        wire.read_to_close()
    wire.socket.close()


KINDS = {succeed: 70, fail: 40, hang_up: 40, leave_children: 25, be_answered_early: 15,
         take_too_long: 10}


@pytest.mark.timeout(300)
def test_after_200_mixed_runs_nothing_is_missing_and_nothing_is_left(new_gateway, tmp_path):
    places = 6
    gateway = new_gateway(env=fake_env(max_runs=places, kill_grace_ms=100))
    apps = [App(gateway, f"app-{number}") for number in range(4)]
    assert_success(apps[0].run({}))
    assert_nothing_left(gateway)
    before = descriptors(gateway)

    work = [kind for kind, count in KINDS.items() for _ in range(fewer(count))]
    assert fewer(200) != 200 or len(work) == 200
    choice = random.Random(3)
    choice.shuffle(work)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(kind, apps[number % 4], random.Random(number))
                for number, kind in enumerate(work)]
        for job in jobs:
            job.result()

    assert_nothing_left(gateway)
    wait_until(lambda: descriptors(gateway) <= before, "all descriptors are closed")
    wait_until(lambda: (running(gateway), waiting(gateway)) == (0, 0), "all places are back")
    held = [apps[number % 4].hold(tmp_path) for number in range(places)]
    for one in held:
        one.begun()
    for one in held:
        assert_success(one.end())
        one.hang_up()
    wait_until(lambda: all(row["ended_at"] for row in rows(gateway)), "all rows have ended")
    counts = collections.Counter(row["state"] for row in rows(gateway))
    asked = collections.Counter(work)
    assert counts["failed"] <= asked[fail] + asked[take_too_long]
    assert counts["failed"] >= asked[fail]
    assert counts["cancelled"] <= asked[hang_up] and counts["interrupted"] == 0
    assert counts["succeeded"] >= (
        asked[succeed] + asked[leave_children] + asked[be_answered_early] + places + 1)
