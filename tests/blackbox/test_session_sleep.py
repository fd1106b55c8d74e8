"""An open session that is not used for long costs no agent: it sleeps, and its next turn wakes it."""
from agents import gauge
from gateway import wait_until
from sessions import BOTH_KINDS, Talker, assert_no_process_left, new_forge, only_acp

__all__ = ["new_forge"]  # fixtures

KINDS = (*BOTH_KINDS, "claude")


def asleep(session):
    return not session.state()["live"] and not session.processes()


def test_an_idle_session_sleeps_and_its_next_turn_wakes_it(new_forge):
    gateway = new_forge(session_sleep_secs=1)
    session = Talker(gateway).session()
    assert session.told("remember me") == "echo: remember me"
    wait_until(lambda: asleep(session), "its agent is gone")
    state = session.state()
    assert state["closed_at"] is None and not state["busy"]
    assert gauge(gateway, 'clawdforge_session_sleeps_total{reason="idle"}') == 1
    body = session.ask("hello")
    assert body["text"] == "echo: hello" and body["resumed"] is True
    assert "resumed" not in session.ask("again")


def test_a_session_sleeps_as_often_as_it_is_left_alone(new_forge):
    gateway = new_forge(session_sleep_secs=1)
    session = Talker(gateway).session()
    for _ in range(2):
        wait_until(lambda: asleep(session), "its agent is gone")
        assert session.told("hello") == "echo: hello"
    session.close()
    assert_no_process_left(gateway)


@only_acp
def test_a_turn_that_runs_is_not_idle(new_forge, tmp_path):
    gateway = new_forge(session_sleep_secs=1)
    app = Talker(gateway)
    idle, busy = app.session(), app.session()
    turn = busy.hold(tmp_path).begun()
    pid = busy.pid()
    assert idle.told("hello") == "echo: hello"
    wait_until(lambda: asleep(idle), "the idle one sleeps")
    assert busy.pid() == pid
    assert turn.end().json()["text"] == turn.name


@only_acp
def test_an_agent_that_cannot_load_its_conversation_stays(new_forge):
    gateway = new_forge(session_sleep_secs=1)
    app = Talker(gateway)
    forgetful, other = app.session("no-load"), app.session()
    forgetful.told("hello")
    pid = forgetful.pid()
    other.told("hello")
    wait_until(lambda: asleep(other), "the other one sleeps")
    assert forgetful.pid() == pid and forgetful.state()["live"]


@only_acp
def test_zero_means_never(new_forge):
    never, soon = new_forge(session_sleep_secs=0), new_forge(session_sleep_secs=1)
    session, other = Talker(never).session(), Talker(soon).session()
    wait_until(lambda: asleep(other), "the other gateway's session sleeps")
    assert session.state()["live"]
