"""Spare agents: started ahead, taken by a new session, used once, and nothing is left of them."""
import os
import pathlib
import signal

import pytest

from agents import gauge, processes_below
from answers import assert_error
from gateway import refused_start, run_program, wait_until
from sessions import (Session, Talker, agent_table, assert_created, assert_turn, config_with,
                      is_agent, new_forge, session_dirs, session_rows)

__all__ = ["new_forge"]  # fixtures

KINDS = ("claude", "acp")


@pytest.fixture
def warm_forge(new_forge, agent_kind):
    """A gateway whose agent `quick` has spares; `flags` are those of the stand-in."""
    def make(warm='"auto"', flags=(), **settings):
        return new_forge(more=agent_table("quick", flags, agent_kind, warm=warm), **settings)
    return make


def spares(gateway):
    """The processes of agents in directories that no session has, by the directory's name."""
    known = {row["session_id"] for row in session_rows(gateway)}
    found = {}
    for name in set(session_dirs(gateway)) - known:
        for pid in processes_below(gateway.data_dir / "sessions" / name / "work"):
            if is_agent(pid):
                found[name] = pid
    return found


def told(gateway):
    """How many spares are ready, as the gateway says it in two places."""
    listed = {agent["name"]: agent for agent in gateway.admin.get("/agents").json()["agents"]}
    return listed["quick"]["spares"], counted(gateway, 'clawdforge_spare_agents{agent="quick"}')


def counted(gateway, name):
    """0 where there is no such series yet."""
    return gauge(gateway, name) if name in gateway.admin.get("/metrics").text else 0


def ready(gateway, count=1):
    """As many as this are ready, and no more."""
    def found():
        all_spares = spares(gateway)
        is_so = len(all_spares) == count and told(gateway) == (count, count)
        return all_spares if is_so else None
    return wait_until(found, f"{count} spares are ready")


def one_ready(gateway):
    """The process of one of them."""
    wait_until(lambda: told(gateway)[0] > 0, "there is a spare")
    return wait_until(lambda: next(iter(spares(gateway).values()), None), "its process runs")


def outcomes(gateway, outcome):
    return counted(gateway, f'clawdforge_spare_agents_total{{outcome="{outcome}"}}')


def test_there_is_none_before_the_first_use_and_one_after_it(warm_forge):
    gateway = warm_forge()
    assert gateway.admin.get("/agents").json()["agents"][0]["spares"] == 0
    assert not session_dirs(gateway)
    app = Talker(gateway)
    app.session("fake")
    app.session("quick")
    ready(gateway)
    # It is not a session.
    assert len(session_rows(gateway)) == len(app.ids()) == 2
    assert gauge(gateway, "clawdforge_agents_running") == 2


def test_the_next_session_takes_it_whoever_asks(warm_forge):
    gateway = warm_forge()
    Talker(gateway, "one").session("quick")
    (name, pid), = ready(gateway).items()
    session = Talker(gateway, "two").session("quick")
    assert session.id == name and session.pid() == pid
    assert session.told("hello") == "echo: hello"
    assert session.report("process")["cwd"] == str(session.work())
    assert outcomes(gateway, "used") == 1


def test_a_spare_is_used_once(warm_forge):
    gateway = warm_forge()
    app = Talker(gateway)
    first = app.session("quick")
    ready(gateway)
    sessions = [first] + [app.session("quick") for _ in range(4)]
    assert len({session.pid() for session in sessions}) == len(sessions)
    assert len({session.work() for session in sessions}) == len(sessions)
    for number, session in enumerate(sessions):
        assert session.told(f"hello {number}") == f"echo: hello {number}"


def test_what_the_session_asks_for_is_told_to_the_spare(warm_forge):
    gateway = warm_forge()
    app = Talker(gateway)
    app.session("quick")
    (_, pid), = ready(gateway).items()
    session = app.session("quick", model="m2", effort="low")
    assert session.pid() == pid
    options = session.report("session")["options"]
    assert "m2" in str(options) and "low" in str(options)


@pytest.mark.parametrize("fields", [{"system": "Be brief."}, {"permission_mode": "approve_all"}],
                         ids=lambda fields: next(iter(fields)))
def test_what_a_spare_cannot_be_told_is_a_plain_start(warm_forge, fields):
    gateway = warm_forge()
    app = Talker(gateway)
    app.session("quick")
    before = ready(gateway)
    session = app.session("quick", **fields)
    assert session.id not in before and session.pid() not in before.values()
    assert session.told("hello") == "echo: hello"
    assert before.items() <= spares(gateway).items()


def test_a_session_that_sleeps_wakes_with_its_conversation_and_not_with_a_spare(warm_forge):
    gateway = warm_forge(session_sleep_secs=1)
    app = Talker(gateway)
    app.session("quick")
    ready(gateway)
    session = app.session("quick")
    session.told("remember")
    wait_until(lambda: not session.state()["live"] and not session.processes(), "it sleeps")
    assert_turn(session.turn("hello"), resumed=True)


def test_a_spare_that_dies_is_replaced(warm_forge):
    gateway = warm_forge()
    app = Talker(gateway)
    app.session("quick")
    (name, pid), = ready(gateway).items()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: spares(gateway) and pid not in spares(gateway).values(), "there is another")
    wait_until(lambda: name not in session_dirs(gateway), "its directory is gone")
    assert app.session("quick").told("hello") == "echo: hello"


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_session_is_made_also_when_the_spare_dies_in_its_hands(warm_forge):
    """It is killed at the same moment. A process that is dying may still take a prompt, which is not sent
    again: then that turn fails with its end, and the next one works."""
    gateway = warm_forge()
    app = Talker(gateway)
    app.session("quick")
    for _ in range(5):
        os.kill(one_ready(gateway), signal.SIGKILL)
        session = Session(app, assert_created(app.create("quick"))["session_id"])
        answer = session.turn("hello")
        if answer.status_code != 200:
            assert (answer.status_code, answer.json()["code"]) == (502, "agent_exited"), answer.text
            answer = session.turn("hello")
        assert answer.json()["text"] == "echo: hello", answer.text
        session.close()


def test_a_session_is_made_when_the_spare_has_just_died(warm_forge):
    """The gateway may know it or not: the first turn works."""
    gateway = warm_forge()
    app = Talker(gateway)
    app.session("quick")
    for _ in range(5):
        spare = one_ready(gateway)
        os.kill(spare, signal.SIGKILL)
        wait_until(lambda: has_ended(spare), "the spare is dead")
        session = Session(app, assert_created(app.create("quick"))["session_id"])
        assert session.told("hello") == "echo: hello"
        session.close()


def test_an_agent_that_does_not_begin_makes_no_spares_and_no_noise(warm_forge):
    gateway = warm_forge(flags=("--at-initialize", "exit:3"))
    app = Talker(gateway)
    assert app.create("quick").status_code == 502
    wait_until(lambda: outcomes(gateway, "failed") == 1, "a spare has failed")
    assert told(gateway) == (0, 0)
    wait_until(lambda: not session_dirs(gateway), "nothing is left")


def test_a_refused_session_gives_its_spare_back(warm_forge):
    gateway = warm_forge(max_live_sessions=2, max_agents=8)
    app = Talker(gateway)
    app.session("quick")
    before = ready(gateway)
    app.session("fake")
    for _ in range(3):
        assert_error(app.create("quick"), 503, "pool_full")
    assert spares(gateway) == before


def test_spares_give_way_to_sessions(warm_forge):
    gateway = warm_forge(max_agents=2)
    app = Talker(gateway)
    app.session("quick")
    ready(gateway)
    app.session("fake")
    wait_until(lambda: not spares(gateway), "the spare has gone")
    wait_until(lambda: len(session_dirs(gateway)) == 2, "so has its directory")


def test_a_configured_number_is_there_from_the_start(warm_forge):
    gateway = warm_forge(warm=2)
    ready(gateway, 2)
    app = Talker(gateway)
    sessions = [app.session("quick") for _ in range(2)]
    assert [session.told("hello") for session in sessions] == ["echo: hello"] * 2
    assert outcomes(gateway, "used") == 2
    ready(gateway, 2)


def test_nothing_is_left_after_the_end(warm_forge):
    gateway = warm_forge(warm=3)
    left = ready(gateway, 3)
    gateway.stop()
    assert not processes_below(gateway.root)
    assert not set(session_dirs(gateway)) & set(left)


def test_nothing_is_left_after_a_kill_and_a_start(warm_forge):
    gateway = warm_forge(warm=2)
    left = ready(gateway, 2)
    gateway.kill()
    gateway.start()
    again = ready(gateway, 2)
    assert not set(left) & set(again)
    assert set(session_dirs(gateway)) == set(again)
    assert not set(left.values()) & processes_below(gateway.root)


@pytest.mark.parametrize("value", ["-1", "65", '"always"', "true"])
def test_a_wrong_number_is_refused(tmp_path, agent_kind, value):
    path = config_with(tmp_path, {}, agent_table("quick", [], agent_kind, warm=value))
    code, sentence = refused_start(tmp_path, "--config", path)
    assert code == 2 and "agents.quick.warm" in sentence and "auto" in sentence


def test_verify_takes_a_spares_directory_for_what_it_is(warm_forge):
    gateway = warm_forge(warm=1)
    ready(gateway)
    done = run_program("verify", "--data-dir", gateway.data_dir, home=gateway.root)
    assert done.returncode == 0, done.stdout + done.stderr
