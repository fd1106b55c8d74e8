"""Whatever ends an agent, nothing that it has started is alive three seconds later: no plain child,
none in a session of its own, none that ignores SIGTERM, and no daemon that has thrown off its
parent, its environment, its directory and its descriptors. Those are counted by their name, which
is another one in each test."""
import os
import secrets
import signal

import pytest

from agents import App, allows_namespaces, children_of, loud_skip, processes, rows
from gateway import wait_until
from sessions import Talker, assert_turn, audit, is_alive, session_options, sweep, turn_rows
from test_session_sweep import back_date

DAY = 24 * 60 * 60
CHILDREN = ["plain", "setsid", "forgotten", "stubborn"]
DEAF = ["--ignore-term", "--ignore-eof"]
GRACES = {"kill_grace_ms": 200, "cancel_grace_ms": 200, "drain_grace_secs": 0,
          "sweep_interval_secs": DAY}
HOMES = [(kind, namespace) for kind in ("acp", "acpx") for namespace in ("off", "on")]


def marked(mark):
    """Ids of the processes that have this name, below any parent."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read().split(b"\0")[0] == mark.encode():
                    found.add(int(entry))
        except OSError:
            pass  # it has ended
    return found


class Crowd:
    """What an agent has started, counted once it is all there."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.mark = "crowd-" + secrets.token_hex(8)
        self.children = {"children": CHILDREN, "child_mark": self.mark}
        self.agents = set()

    def assembled(self):
        wait_until(lambda: len(marked(self.mark)) == len(CHILDREN), "all children are there")
        self.agents = processes(self.gateway)
        return self

    def alive(self):
        return marked(self.mark) | set(filter(is_alive, self.agents))

    def assert_gone(self):
        assert self.agents, "this test can see them"
        # They sleep for ten minutes, so those that are gone were ended.
        wait_until(lambda: not self.alive(), f"nothing of {self.alive()} is alive")


@pytest.fixture
def mark_cleaner():
    """Whatever a failing test leaves behind ends with it."""
    made = []
    yield made
    for crowd in made:
        for pid in marked(crowd.mark):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=HOMES, ids=lambda home: f"{home[0]}-namespace-{home[1]}")
def home(request, new_gateway, tmp_path, mark_cleaner):
    kind, namespace = request.param
    if namespace == "on" and not allows_namespaces(None):
        loud_skip("the kernel gives no PID namespace")
    return new_gateway(**session_options(tmp_path, {"deaf": DEAF}, kind=kind,
                                         pid_namespace=namespace, **GRACES))


@pytest.fixture(params=["off", "on"], ids=lambda namespace: f"namespace-{namespace}")
def run_home(request, new_gateway, tmp_path, mark_cleaner):
    if request.param == "on" and not allows_namespaces(None):
        loud_skip("the kernel gives no PID namespace")
    return new_gateway(**session_options(tmp_path, pid_namespace=request.param, **GRACES))


@pytest.fixture
def crowd(home, mark_cleaner):
    made = Crowd(home)
    mark_cleaner.append(made)
    return made


def at_rest(crowd, agent="fake"):
    """A session whose agent has started all of them in a turn that is over."""
    session = Talker(crowd.gateway).session(agent)
    session.ask(crowd.children)
    crowd.assembled()
    return session


def at_work(crowd, tmp_path, *steps, agent="fake", **fields):
    """The same in a turn that goes on."""
    session = Talker(crowd.gateway).session(agent)
    held = session.hold(tmp_path, crowd.children, *steps, **fields).begun()
    crowd.assembled()
    return session, held


# Sessions

@pytest.mark.parametrize("agent", ["fake", "deaf"])
def test_close_leaves_nothing(home, crowd, agent):
    session = at_rest(crowd, agent)
    assert session.close()["ok"] is True
    crowd.assert_gone()


@pytest.mark.parametrize("agent", ["fake", "deaf"])
def test_close_while_busy_leaves_nothing(home, crowd, tmp_path, agent):
    session, held = at_work(crowd, tmp_path, agent=agent)
    session.close()
    assert held.answer().status == 410
    crowd.assert_gone()


def test_a_turn_over_its_time_of_an_agent_that_ignores_cancel_leaves_nothing(
        home, crowd, tmp_path):
    session, held = at_work(crowd, tmp_path, {"ignore_cancel": True}, agent="deaf",
                            timeout_secs=5)
    assert held.answer().status == 504
    crowd.assert_gone()
    assert session.told("hello") == "echo: hello"


def test_a_sweep_leaves_nothing(home, crowd):
    session = at_rest(crowd)
    back_date(session, "last_turn_at", DAY)
    back_date(session, "created_at", DAY)
    assert sweep(home) == (1, 0)
    crowd.assert_gone()


@pytest.mark.parametrize("step", [{"exit": 3}, {"signal": 9}], ids=["exit", "signal"])
def test_an_agent_that_ends_by_itself_leaves_nothing(home, crowd, tmp_path, step):
    session = at_rest(crowd)
    assert session.turn(step).status_code == 502
    crowd.assert_gone()
    assert session.told("hello") == "echo: hello"


def test_an_account_that_is_revoked_leaves_nothing(home, crowd, tmp_path):
    _, held = at_work(crowd, tmp_path)
    assert home.admin.delete("/admin/tokens/app").status_code == 200
    crowd.assert_gone()
    held.hang_up()


@pytest.mark.parametrize("agent", ["fake", "deaf"])
def test_a_drain_leaves_nothing(home, crowd, tmp_path, agent):
    session, held = at_work(crowd, tmp_path, agent=agent)
    home.process.terminate()
    assert held.answer().status == 503
    assert home.wait() == 0
    assert not crowd.alive(), "it ends after what it has started"
    row, = turn_rows(home, session)
    assert row["state"] == "interrupted"


@pytest.mark.parametrize("agent", ["fake", "deaf"])
def test_a_gateway_that_is_killed_leaves_nothing_and_wakes_its_sessions(
        home, crowd, tmp_path, agent):
    session, held = at_work(crowd, tmp_path, agent=agent)
    home.kill()
    home.start()
    assert not crowd.alive(), "it does not start before what was there has ended"
    held.hang_up()
    row, = turn_rows(home, session)
    assert (row["state"], row["code"]) == ("interrupted", "interrupted")
    assert audit(home, session).count("interrupted") == 1
    assert_turn(session.turn("hello"), resumed=True)


# Runs

@pytest.fixture
def run_crowd(run_home, mark_cleaner):
    made = Crowd(run_home)
    mark_cleaner.append(made)
    return made


def run_at_work(crowd, tmp_path, script=None, **fields):
    held = App(crowd.gateway).hold(tmp_path, {**crowd.children, **(script or {})},
                                   **fields).begun()
    crowd.assembled()
    return held


@pytest.mark.parametrize("script", [{}, {"ignore_term": True}, {"exit": 1}, {"signal": 9}],
                         ids=["good", "deaf", "exit", "signal"])
def test_the_end_of_a_run_leaves_nothing(run_home, run_crowd, tmp_path, script):
    held = run_at_work(run_crowd, tmp_path, script)
    assert held.end().status == 200
    run_crowd.assert_gone()


@pytest.mark.parametrize("script", [{}, {"ignore_term": True}], ids=["good", "deaf"])
def test_a_caller_who_hangs_up_leaves_nothing(run_home, run_crowd, tmp_path, script):
    run_at_work(run_crowd, tmp_path, script).hang_up()
    run_crowd.assert_gone()


def test_a_run_over_its_time_leaves_nothing(run_home, run_crowd, tmp_path):
    held = run_at_work(run_crowd, tmp_path, {"ignore_term": True}, timeout_secs=5)
    assert held.answer().status == 504
    run_crowd.assert_gone()


def test_a_drain_with_a_run_leaves_nothing(run_home, run_crowd, tmp_path):
    held = run_at_work(run_crowd, tmp_path, {"ignore_term": True})
    run_home.process.terminate()
    assert held.answer().status == 503
    assert run_home.wait() == 0
    assert not run_crowd.alive(), "it ends after what it has started"


def test_a_gateway_that_is_killed_during_a_run_leaves_nothing(run_home, run_crowd, tmp_path):
    held = run_at_work(run_crowd, tmp_path, {"ignore_term": True})
    run_home.kill()
    run_home.start()
    assert not run_crowd.alive(), "it does not start before what was there has ended"
    held.hang_up()
    assert [row["state"] for row in rows(run_home)] == ["interrupted"]
    assert children_of(run_home.process.pid) == []
