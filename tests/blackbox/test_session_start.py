"""Sessions whose agent takes its time to start: who comes meanwhile, who leaves meanwhile."""
import concurrent.futures
import json
import shlex

import pytest

from agents import processes_below
from gateway import wait_until
from sessions import (BOTH_KINDS, FAKE_ACP, Session, Talker, assert_created, assert_no_process_left,
                      assert_turn, held, new_forge, query, session_dirs, session_rows)
from wire import Wire, bearer, with_body

__all__ = ["new_forge"]  # fixtures

KINDS = BOTH_KINDS


@pytest.fixture
def late_agent(agent_kind):
    """Makes tables with an agent that starts when the gate is there."""
    def make(gate):
        command = ["/bin/sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.02; done; exec {FAKE_ACP}"]
        protocol = ""
        if agent_kind == "acpx":
            command, protocol = ["--agent", shlex.join(command)], 'protocol = "acpx"\n'
        return f"[agents.late]\n{protocol}command = {json.dumps(command)}\n{held(agent_kind)}"
    return make


def first_id(app):
    wait_until(lambda: app.ids(), "the session's row is there")
    return app.ids()[0]


def test_a_turn_on_a_session_that_is_being_made_waits_for_it(new_forge, late_agent, tmp_path):
    gate = tmp_path / "gate"
    gateway = new_forge(more=late_agent(gate))
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        creating = pool.submit(app.create, "late")
        session = Session(app, first_id(app))
        turns = [session.send(f"hello {n}") for n in range(2)]
        wait_until(lambda: session.state()["turn_count"] == 2, "both turns wait")
        gate.touch()
        assert assert_created(creating.result())["session_id"] == session.id
        texts = [assert_turn(turn.read())["text"] for turn in turns]
    assert texts == ["echo: hello 0", "echo: hello 1"]
    assert session.told({"recall": True}).count("hello") == 2
    session.close()
    assert_no_process_left(gateway)


def test_two_sessions_can_be_made_at_once_with_one_place(new_forge, late_agent, tmp_path):
    gate = tmp_path / "gate"
    gateway = new_forge(more=late_agent(gate), max_agents=1)
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        creating = [pool.submit(app.create, "late") for _ in range(2)]
        wait_until(lambda: len(app.ids()) == 2, "both are being made")
        gate.touch()
        made = [Session(app, assert_created(one.result())["session_id"]) for one in creating]
    assert sorted(session.told("hello") for session in made) == ["echo: hello"] * 2


def test_closing_a_session_that_is_being_made_ends_all_of_it(new_forge, late_agent, tmp_path):
    gateway = new_forge(more=late_agent(tmp_path / "never"))
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        creating = pool.submit(app.create, "late")
        session = Session(app, first_id(app))
        wait_until(lambda: processes_below(session.work()), "its agent starts")
        assert session.close()["ok"] is True
        assert creating.result().status_code == 410
    assert_no_process_left(gateway)
    assert query(gateway, "SELECT * FROM sessions WHERE closed_at IS NULL") == []


def test_a_caller_who_leaves_while_the_session_is_made_leaves_nothing(
        new_forge, late_agent, tmp_path):
    gateway = new_forge(more=late_agent(tmp_path / "never"))
    app = Talker(gateway)
    wire = Wire(gateway)
    wire.send(with_body("POST /sessions", b'{"agent":"late"}', bearer(app.token)))
    session = Session(app, first_id(app))
    wait_until(lambda: processes_below(session.work()), "its agent starts")
    wire.socket.close()
    wait_until(lambda: session_rows(gateway) == [], "the row goes")
    wait_until(lambda: session_dirs(gateway) == [], "the directory goes")
    assert_no_process_left(gateway)


def test_the_gateway_ends_while_a_session_is_made(new_forge, late_agent, tmp_path):
    gateway = new_forge(more=late_agent(tmp_path / "never"), drain_grace_secs=0)
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        creating = pool.submit(app.create, "late")
        session = Session(app, first_id(app))
        wait_until(lambda: processes_below(session.work()), "its agent starts")
        gateway.finish()
        assert creating.result().status_code == 503
    assert not processes_below(gateway.root)
