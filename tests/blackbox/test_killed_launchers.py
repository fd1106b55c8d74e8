"""A launcher that is killed, as by a kernel out of memory, leaves nothing either: what it has lost
becomes a child of the gateway, which ends it and no process of others. The work that was under way
fails with a clear answer, and everything else goes on."""
import os
import random
import secrets
import signal
import subprocess
import threading

import pytest

from agents import (App, allows_namespaces, assert_failure, assert_success, body_of, children_of,
                    gauge, loud_skip, processes, processes_below, run_dirs, settled_rows)
from gateway import PROGRAM, wait_until
from sessions import (Talker, assert_turn, assert_turn_failure, audit, is_alive, journal,
                      session_options, turn_rows)
from wire import Wire, bearer, request
from test_census import (CHILDREN, DEAF, GRACES, HOMES, Crowd, mark_cleaner,  # noqa: F401
                         marked)

LONG_MS = 60_000


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def started(new_gateway, place, kind, namespace, **settings):
    if namespace == "on" and not allows_namespaces(None):
        loud_skip("the kernel gives no PID namespace")
    return new_gateway(**session_options(place, {"deaf": DEAF}, kind=kind,
                                         **{"pid_namespace": namespace, **GRACES, **settings}))


@pytest.fixture(params=HOMES, ids=lambda home: f"{home[0]}-namespace-{home[1]}")
def home(request, new_gateway, tmp_path, mark_cleaner):  # noqa: F811
    return started(new_gateway, tmp_path, *request.param)


@pytest.fixture(params=["off", "on"], ids=lambda namespace: f"namespace-{namespace}")
def run_home(request, new_gateway, tmp_path, mark_cleaner):  # noqa: F811
    return started(new_gateway, tmp_path, "acp", request.param)


@pytest.fixture
def new_crowd(mark_cleaner):  # noqa: F811
    def make(gateway):
        crowd = Crowd(gateway)
        mark_cleaner.append(crowd)
        return crowd
    return make


@pytest.fixture
def bystander():
    """A process that has nothing to do with the gateway."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    is_there = process.poll() is None
    process.kill()
    process.wait()
    assert is_there, "a stranger was ended"


class Lodger:
    """A session with a crowd of its own."""

    def __init__(self, crowd, name="app", agent="fake"):
        self.crowd = crowd
        self.gateway = crowd.gateway
        self.session = Talker(crowd.gateway, name).session(agent)

    def rest(self):
        self.session.ask(self.crowd.children)
        return self._settle()

    def work(self, place, *steps):
        self.held = self.session.hold(place, self.crowd.children, *steps).begun()
        wait_until(lambda: turn_rows(self.gateway, self.session), "the turn's row is there")
        return self._settle()

    def _settle(self):
        self.crowd.assembled()
        self.launcher = self.session.row()["process_pid"]
        self.crowd.agents = (self.session.processes() | {self.launcher}
                             | set(children_of(self.launcher)))
        self.agent = self.session.pid()
        assert self.agent and parent_of(self.launcher) == self.gateway.process.pid
        return self

    def kill_launcher(self):
        os.kill(self.launcher, signal.SIGKILL)

    def assert_untouched(self):
        assert len(marked(self.crowd.mark)) == len(CHILDREN)
        assert is_alive(self.launcher) and self.session.pid() == self.agent
        assert self.session.told("still there?") == "echo: still there?"


def assert_only_children(gateway, *launchers):
    """No orphan, and no zombie of one."""
    wait_until(lambda: set(children_of(gateway.process.pid)) == set(launchers),
               f"its children are {launchers}, and not {children_of(gateway.process.pid)}")


def killings(gateway):
    return [line for line in gateway.log_lines() if line["message"] == "a launcher was killed"]


# Sessions

def test_a_launcher_killed_during_a_turn_leaves_nothing(home, new_crowd, tmp_path, bystander):
    neighbour = Lodger(new_crowd(home), "neighbour").rest()
    lodger = Lodger(new_crowd(home)).work(tmp_path)
    lodger.kill_launcher()
    lodger.crowd.assert_gone()
    assert_turn_failure(lodger.held.answer(), 502, "agent_exited")
    assert_only_children(home, neighbour.launcher)
    neighbour.assert_untouched()
    row, = turn_rows(home, lodger.session)
    assert (row["state"], row["code"]) == ("failed", "agent_exited") and row["ended_at"]
    assert [event["event"] for event in journal(home, lodger.session)].count("failed") == 1
    assert audit(home, lodger.session).count("turn") == 1
    wait_until(lambda: gauge(home, "clawdforge_agents_running") == 1, "its place is free")
    line, = killings(home)
    assert (line["level"], line["pid"], line["signal"]) == ("warn", lodger.launcher, 9)
    assert_turn(lodger.session.turn("hello"), resumed=True)


def test_a_launcher_killed_while_its_session_idles_leaves_nothing(home, new_crowd, bystander):
    neighbour = Lodger(new_crowd(home), "neighbour").rest()
    lodger = Lodger(new_crowd(home)).rest()
    lodger.kill_launcher()
    lodger.crowd.assert_gone()
    assert_only_children(home, neighbour.launcher)
    neighbour.assert_untouched()
    wait_until(lambda: not lodger.session.state()["live"], "it sleeps")
    wait_until(lambda: lodger.session.row()["process_pid"] is None, "its mark is gone")
    wait_until(lambda: gauge(home, "clawdforge_agents_running") == 1, "its place is free")
    assert_turn(lodger.session.turn("hello"), resumed=True)


def test_all_launchers_but_one_killed_at_once_leave_nothing(run_home, new_crowd, tmp_path):
    neighbour = Lodger(new_crowd(run_home), "neighbour").rest()
    lodgers = [Lodger(new_crowd(run_home), f"app-{number}").work(tmp_path) for number in range(3)]
    for lodger in lodgers:
        lodger.kill_launcher()
    for lodger in lodgers:
        lodger.crowd.assert_gone()
        assert_turn_failure(lodger.held.answer(), 502, "agent_exited")
    assert_only_children(run_home, neighbour.launcher)
    neighbour.assert_untouched()
    assert len(killings(run_home)) == 3


@pytest.mark.parametrize("namespace", ["off", "on"])
def test_a_launcher_killed_in_its_grace_leaves_nothing(new_gateway, tmp_path, new_crowd, namespace):
    """The session is closed, and its tree does not care."""
    home = started(new_gateway, tmp_path, "acp", namespace, kill_grace_ms=LONG_MS)
    lodger = Lodger(new_crowd(home), agent="deaf").rest()
    with Wire(home) as wire:
        wire.send(request(f"DELETE {lodger.session.path}", bearer(lodger.session.app.token)))
        wait_until(lambda: lodger.session.row()["closed_at"], "it is closed")
        assert lodger.crowd.alive() >= {lodger.launcher, lodger.agent}, "it is in its grace"
        lodger.kill_launcher()
        lodger.crowd.assert_gone()
        assert wire.read().status == 200
    assert_only_children(home)


def test_a_gateway_ends_in_order_right_after_a_launcher_was_killed(home, new_crowd, tmp_path):
    lodger = Lodger(new_crowd(home)).work(tmp_path)
    lodger.kill_launcher()
    assert home.stop() == 0
    assert not lodger.crowd.alive(), "it ends after what it has adopted"
    lodger.held.hang_up()


# Runs

def test_a_launcher_killed_during_a_run_leaves_nothing(run_home, new_crowd, tmp_path, bystander):
    neighbour = Lodger(new_crowd(run_home), "neighbour").rest()
    before = processes(run_home)
    crowd = new_crowd(run_home)
    held = App(run_home).hold(tmp_path, {**crowd.children, "ignore_term": True}).begun()
    crowd.assembled()
    crowd.agents -= before
    launcher, = set(children_of(run_home.process.pid)) - {neighbour.launcher}
    os.kill(launcher, signal.SIGKILL)
    crowd.assert_gone()
    assert_failure(held.answer(), 502, "agent_lost")
    assert_only_children(run_home, neighbour.launcher)
    neighbour.assert_untouched()
    row, = settled_rows(run_home, 1)
    assert (row["state"], row["outcome"]) == ("failed", "agent_lost")
    wait_until(lambda: settled_rows(run_home, 1)[0]["process_pid"] is None, "its mark is gone")
    wait_until(lambda: gauge(run_home, "clawdforge_runs_running") == 0, "its place is free")
    wait_until(lambda: run_dirs(run_home) == [], "its directory is gone")
    assert_success(App(run_home, "after").run({}))


def test_a_launcher_that_has_just_been_started_is_no_orphan(run_home, new_crowd):
    """While every third launcher is killed, no run fails but theirs."""
    choice = random.Random(7)
    answers = []
    mark = new_crowd(run_home).mark

    def ask(number):
        app = App(run_home, f"app-{number}")
        for _ in range(12):
            answers.append(app.run({"children": ["plain", "forgotten"], "child_mark": mark,
                                    "sleep": 0.05}))

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    seen = set()
    while any(worker.is_alive() for worker in workers):
        for pid in sorted(set(children_of(run_home.process.pid)) - seen):
            seen.add(pid)
            if choice.random() < 1 / 3:
                kill_if_launcher(pid, run_home)
        workers[0].join(0.002)
    for worker in workers:
        worker.join()
    failed = [body_of(answer) for answer in answers if answer.status_code != 200]
    assert {body["code"] for body in failed} <= {"agent_lost"}
    assert len(answers) == 48 and 0 < len(failed) < 48
    wait_until(lambda: len(failed) <= len(killings(run_home)), "no other run has failed")
    assert_only_children(run_home)
    assert not processes(run_home) and not marked(mark)


def kill_if_launcher(pid, gateway):
    """It is held while it is looked at."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if parent_of(pid) == gateway.process.pid and is_launcher(pid):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        pass  # it has ended
    finally:
        os.close(handle)


def is_launcher(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return file.read() == "cf-launcher\n"


# Whom the gateway must not touch

def test_what_was_there_before_the_gateway_is_left_alone(new_gateway, tmp_path, new_crowd):
    """Children of the process that has become the gateway; and SIGCHLD was ignored in it."""
    mark = "sidecar-" + secrets.token_hex(8)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!/bin/bash\n(exec -a {mark} sleep 600) >/dev/null 2>&1 &\n"
                       f"trap '' CHLD\nexec {PROGRAM} \"$@\"\n")
    wrapper.chmod(0o755)
    options = session_options(tmp_path, pid_namespace="off", **GRACES)
    home = new_gateway(program=wrapper, **options)
    sidecar, = marked(mark)
    try:
        assert parent_of(sidecar) == home.process.pid
        lodger = Lodger(new_crowd(home)).rest()
        lodger.kill_launcher()
        lodger.crowd.assert_gone()
        assert_only_children(home, sidecar)
        assert is_alive(sidecar)
        assert_success(App(home, "after").run({}))
        assert_only_children(home, sidecar)
    finally:
        os.kill(sidecar, signal.SIGKILL)


# Both killed: no gateway is left that could adopt the orphans

def kill_both(gateway, launcher):
    """The gateway does not notice that the launcher has died."""
    gateway.process.send_signal(signal.SIGSTOP)
    os.kill(launcher, signal.SIGKILL)
    gateway.kill()


@pytest.mark.parametrize("kind, namespace", HOMES)
def test_what_a_start_makes_of_a_launcher_and_a_gateway_killed_together(
        new_gateway, tmp_path, new_crowd, kind, namespace):
    """Within a namespace nothing is left. Without one, what has thrown off its launcher cannot be
    told from a stranger, and is not ended."""
    home = started(new_gateway, tmp_path, kind, namespace)
    lodger = Lodger(new_crowd(home)).work(tmp_path)
    try:
        program = children_of(lodger.launcher)[0]
        kill_both(home, lodger.launcher)
        lodger.held.hang_up()
        home.start()
        wait_until(lambda: not is_alive(program), "at least the program has died with its launcher")
        if namespace == "on":
            lodger.crowd.assert_gone()
        row, = turn_rows(home, lodger.session)
        assert (row["state"], row["code"]) == ("interrupted", "interrupted")
        assert audit(home, lodger.session).count("interrupted") == 1
        # The owner of an acpx session may have survived, and then finishes its turn first.
        lodger.held.let_go()
        assert_turn(lodger.session.turn("hello"), resumed=True)
        assert_success(App(home, "after").run({}))
    finally:
        left = processes_below(lodger.session.work()) & lodger.crowd.agents
        for pid in left:
            os.kill(pid, signal.SIGKILL)
