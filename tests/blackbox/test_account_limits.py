"""The limit of an agent's account, as turns meet it: no agent is asked in vain until it ends, one
ask tries, and callers who would rather wait do."""
import concurrent.futures
import time

import pytest

from agents import fake_env
from answers import assert_error
from gateway import SECONDS_MAX, wait_until
from sessions import Talker, agent_table, assert_turn, assert_turn_failure, new_forge, query

__all__ = ["new_forge"]  # fixtures


def limited(seconds):
    """A step: the agent says that its account is at its limit for so long."""
    return {"error": {"code": -32603, "message": "Internal error: Claude AI usage limit reached|"
                                                 f"{int(time.time()) + seconds}"}}


def wait_of(answer):
    return int(answer.headers["Retry-After"])


@pytest.fixture
def gateway(new_forge):
    return new_forge()


def test_at_the_accounts_limit_no_agent_is_asked_until_it_ends(gateway, tmp_path):
    mine, other = Talker(gateway, "mine"), Talker(gateway, "other")
    first, second, third = mine.session(), other.session(), other.session("resume")
    reached = first.turn(limited(7200))
    assert_turn_failure(reached, 429, "account_limit")
    assert 7100 <= wait_of(reached) <= 7200
    begun = tmp_path / "begun"
    for session in (first, second):
        answer = session.turn({"touch": str(begun)})
        assert_error(answer, 429, "account_limit")
        assert 7100 <= wait_of(answer) <= wait_of(reached)
        assert_error(session.turn({"touch": str(begun)}, stream=True), 429, "account_limit")
    assert not begun.exists()
    assert len(query(gateway, "SELECT * FROM turns")) == 1, "what is refused is not a turn"
    assert third.told("hello") == "echo: hello", "another agent has another account"
    gateway.restart()
    assert second.told("hello") == "echo: hello"


def test_runs_and_turns_share_an_agents_limit(new_gateway, tmp_path):
    """A run meets the limit, and a turn of the same agent is refused at once."""
    path = tmp_path / "config.toml"
    path.write_text(agent_table("claude", []))
    gateway = new_gateway(env=fake_env(), flags=["--config", str(path)])
    app = Talker(gateway)
    session = app.session("claude")
    assert app.run({"known": "usage_limit", "reset_in": 7200}).status_code == 429
    assert_error(session.turn("hello"), 429, "account_limit")


def test_what_waits_in_its_session_is_not_asked_in_vain(gateway, tmp_path):
    app = Talker(gateway)
    session, other = app.session(), app.session()
    held = session.hold(tmp_path).begun()
    begun = tmp_path / "begun"
    waiting = session.send({"touch": str(begun)})
    wait_until(lambda: session.state()["turn_count"] == 2, "it waits")
    assert_turn_failure(other.turn(limited(7200)), 429, "account_limit")
    held.session.app.client().post(session.path + "/cancel")  # says nothing of the account
    assert_turn_failure(waiting.read(), 429, "account_limit")
    assert not begun.exists()


def test_when_it_ends_one_tries_and_then_all_may(gateway, tmp_path):
    app = Talker(gateway)
    sessions = [app.session() for _ in range(3)]
    assert_turn_failure(sessions[0].turn(limited(2)), 429, "account_limit")
    assert_error(sessions[1].turn("too early"), 429, "account_limit")
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        trial = None

        def has_begun():
            nonlocal trial
            if trial is None or (trial.done() and trial.result().status_code == 429):
                trial = pool.submit(sessions[0].turn, {"touch": str(mark)}, {"wait_for": str(gate)})
            return mark.exists()
        wait_until(has_begun, "one turn may try the agent")
        assert_error(sessions[1].turn("not yet"), 429, "account_limit")
        gate.touch()
        assert_turn(trial.result())
    assert all(session.told("now") == "echo: now" for session in sessions)


def test_turns_wait_for_its_end_if_their_callers_want_that(gateway):
    app, other = Talker(gateway), Talker(gateway, "other")
    sessions = [app.session(), other.session(), app.session(), other.session()]
    assert_turn_failure(sessions[0].turn(limited(3)), 429, "account_limit")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda session: session.turn("hi", wait=True), sessions))
    for answer in answers:
        assert_turn(answer)
    assert_turn_failure(sessions[0].turn(limited(7200)), 429, "account_limit")
    begun = time.monotonic()
    assert_error(sessions[0].turn("hi", wait=True, timeout_secs=600), 429, "account_limit")
    assert time.monotonic() - begun < SECONDS_MAX, "what would not end in time is refused at once"


def test_a_turn_that_waits_goes_with_its_caller(gateway, tmp_path):
    app = Talker(gateway)
    session = app.session()
    assert_turn_failure(session.turn(limited(4)), 429, "account_limit")
    begun = tmp_path / "begun"
    wire = session.send({"touch": str(begun)}, wait=True)
    wire.socket.close()
    wait_until(lambda: session.turn("hello", wait=True).status_code == 200, "the limit has ended")
    assert [row["turn_index"] for row in query(gateway, "SELECT * FROM turns")] == [1, 2]
    assert not begun.exists()


def test_a_job_waits_for_its_end(gateway):
    app = Talker(gateway)
    session = app.session()
    assert_turn_failure(session.turn(limited(3)), 429, "account_limit")
    accepted = app.client().post("/jobs", json={"turn": {"session_id": session.id, "prompt": "hi"}})
    assert accepted.status_code == 202, accepted.text
    path = accepted.headers["Location"]
    job = wait_until(lambda: (job := app.client().get(path, headers={"Prefer": "wait=5"}).json())
                     ["state"] == "succeeded" and job, "the job is done")
    assert job["answer"]["text"] == "echo: hi" and job["attempts"] == 1
