"""The memory that all agents take together: spares end, idle sessions sleep, starts wait, and at last
are refused. The limit of each test follows from what its own gateway measures."""

from agents import gauge
from answers import assert_error
from gateway import wait_until
from sessions import Talker, agent_table, assert_turn, new_forge

__all__ = ["new_forge"]  # fixtures

KINDS = ("claude",)
MIB = 1024 * 1024


def measured(gateway, agent="fake"):
    """What the processes of an agent take, once that is known."""
    name = f'clawdforge_agent_memory_bytes{{agent="{agent}"}}'
    return wait_until(lambda: known(gateway, name), "it is measured")


def known(gateway, name):
    try:
        return gauge(gateway, name)
    except ValueError:
        return 0  # there is no such series yet


def size_of_one(new_forge):
    """Of the stand-in, in a gateway without a limit."""
    gateway = new_forge()
    Talker(gateway).session()
    return measured(gateway)


def test_it_is_measured_and_told_by_agent_app_and_session(new_forge):
    gateway = new_forge()
    app = Talker(gateway, "hungry")
    session = app.session()
    bytes_taken = measured(gateway)
    assert MIB < bytes_taken < 1024 * MIB
    assert gauge(gateway, 'clawdforge_app_memory_bytes{app="hungry"}') == bytes_taken
    agents = {agent["name"]: agent for agent in gateway.admin.get("/agents").json()["agents"]}
    assert agents["fake"]["memory_bytes"] == bytes_taken
    state, = gateway.admin.get("/admin/sessions").json()["sessions"]
    assert state["memory_bytes"] == bytes_taken
    assert "memory_bytes" not in session.state()
    session.close()
    wait_until(lambda: measured_now(gateway) == 0, "nothing is left")


def measured_now(gateway):
    return gauge(gateway, 'clawdforge_agent_memory_bytes{agent="fake"}')


def test_spares_end_first(new_forge, agent_kind):
    one = size_of_one(new_forge)
    more = agent_table("quick", [], agent_kind, warm=2)
    gateway = new_forge(more=more, agent_memory_max=int(3.6 * one))
    app = Talker(gateway)
    sessions = [app.session("quick")]
    ready = 'clawdforge_spare_agents{agent="quick"}'
    wait_until(lambda: known(gateway, ready) == 2, "both spares are ready")
    sessions += [app.session(), app.session()]
    wait_until(lambda: known(gateway, ready) == 0, "the spares are gone")
    assert all(session.state()["live"] for session in sessions)
    assert [session.told("hello") for session in sessions] == ["echo: hello"] * 3
    assert known(gateway, 'clawdforge_session_sleeps_total{reason="memory"}') == 0


def test_idle_sessions_sleep_the_one_unused_for_longest_first(new_forge):
    one = size_of_one(new_forge)
    gateway = new_forge(agent_memory_max=int(2.5 * one))
    app = Talker(gateway)
    sessions = [app.session() for _ in range(3)]
    wait_until(lambda: not sessions[0].state()["live"], "the first one sleeps")
    assert gauge(gateway, 'clawdforge_session_sleeps_total{reason="memory"}') >= 1
    assert_turn(sessions[0].turn("hello"), resumed=True)


def test_a_start_waits_while_others_work_and_goes_on_when_they_end(new_forge, tmp_path):
    one = size_of_one(new_forge)
    gateway = new_forge(agent_memory_max=int(1.5 * one))
    app = Talker(gateway)
    sessions = [app.session() for _ in range(2)]
    turns = [session.hold(tmp_path) for session in sessions]
    wait_until(lambda: any(turn.has_begun() for turn in turns), "one begins")
    wait_until(lambda: gauge(gateway, "clawdforge_agents_waiting") == 1 or
               all(turn.has_begun() for turn in turns), "the other waits, or has come first")
    for turn in turns:
        turn.let_go()
    assert sorted(turn.answer().json()["text"] for turn in turns) == sorted(
        turn.name for turn in turns)


def test_what_waits_in_vain_is_told_that_memory_is_full(new_forge, tmp_path):
    one = size_of_one(new_forge)
    gateway = new_forge(agent_memory_max=int(one / 2), agent_start_timeout_secs=2)
    app = Talker(gateway)
    session = app.session()
    held = session.hold(tmp_path).begun()
    wait_until(lambda: measured(gateway) > one / 2, "it is over the limit")
    refused = app.create()
    assert_error(refused, 503, "memory_full")
    assert int(refused.headers["Retry-After"]) >= 1
    run = app.client().post("/run", json={"prompt": "hello", "timeout_secs": 5})
    assert_error(run, 503, "memory_full")
    assert held.end().json()["text"] == held.name
    # The one that is idle now sleeps for the next.
    assert app.session().told("hello") == "echo: hello"
