"""An agent that stops its launcher, over and over, keeps neither its place nor a caller nor the
gateway: the launcher is killed in bounded time, and what it leaves is ended. Without a PID
namespace, in which an agent cannot signal its launcher at all."""
import concurrent.futures
import contextlib
import json
import shlex
import time

import httpx
import pytest

from agents import FAKE, App, assert_success, gauge, processes_below, run_dirs
from faults import UPLOADS, new_faulty, shim  # noqa: F401
from gateway import SECONDS_MAX, SLACK_SECONDS, wait_until
from sessions import FAKE_ACP, Talker, assert_turn, held, session_options
from wire import Wire, bearer, request

KILL_GRACE_MS = 200
# kill_grace, kLauncherEndMax and kOrphansEndMax, and what a busy machine adds.
END_MAX = KILL_GRACE_MS / 1000 + 5 + 10 + SLACK_SECONDS
EXIT_LATE = 3

# A process of the tree that does not heed TERM and stops the launcher whenever that goes on. When
# the launcher is gone it stays.
STOPPER = ("trap '' TERM; (exec </dev/null >/dev/null 2>&1; "
           "while kill -STOP $PPID; do sleep 0.02; done; exec sleep 600) & exec ")


def stopping_command(program):
    return ["/bin/sh", "-c", STOPPER + shlex.quote(str(program)) + ' "$@"', "sh"]


@pytest.fixture
def home(new_gateway, tmp_path):
    """Its agents `stopper` and `claude` stop their launchers."""
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exec " + f"{FAKE} --version\n"
                      + STOPPER + f'{FAKE} "$@"\n')
    claude.chmod(0o755)
    table = f"[agents.stopper]\ncommand = {json.dumps(stopping_command(FAKE_ACP))}\n" + held()
    return new_gateway(**session_options(
        tmp_path, more=table, claude_bin=claude, pid_namespace="off", kill_grace_ms=KILL_GRACE_MS,
        cancel_grace_ms=100, drain_grace_secs=0, max_agents=1, max_runs=1))


def stopped_session(gateway, name="app"):
    """Its launcher is stopped, and its process tree works in its directory."""
    session = Talker(gateway, name).session("stopper")
    launcher = session.row()["process_pid"]
    wait_until(lambda: state_of(launcher) == "T", "the launcher is stopped")
    return session


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def assert_gone(gateway):
    wait_until(lambda: not processes_below(gateway.data_dir), "no process is left", END_MAX)


def test_a_session_is_closed_and_its_place_given_back(home):
    session = stopped_session(home)
    begun = time.monotonic()
    answer = session.app.client().delete(session.path)
    assert answer.status_code == 200 and time.monotonic() - begun < END_MAX
    assert_gone(home)
    assert session.row()["process_pid"] is None
    wait_until(lambda: gauge(home, "clawdforge_agents_running") == 0, "its place is free")
    assert_turn(Talker(home, "next").session().turn("hello"))


def test_a_run_gives_its_place_back(home):
    app = App(home)
    assert_success(app.run("one"), "echo: one")
    assert_success(app.run("two"), "echo: two")
    assert_gone(home)
    wait_until(lambda: run_dirs(home) == [], "their directories are gone")


def test_a_gateway_ends_in_order(home):
    stopped_session(home)
    begun = time.monotonic()
    assert home.stop() == 0
    assert time.monotonic() - begun < END_MAX
    assert not processes_below(home.data_dir)


def test_a_start_finds_the_tree_of_a_session_that_was_closed(home):
    """Killed while it waits for the tree's end, when the row says already that it is closed."""
    session = stopped_session(home)
    with Wire(home) as wire:
        wire.send(request(f"DELETE {session.path}", bearer(session.app.token)))
        wait_until(lambda: session.row()["closed_at"], "the row is closed")
        home.kill()
    assert processes_below(home.data_dir)
    home.start()
    assert not processes_below(home.data_dir), "it ends them before it is ready"
    assert session.row()["process_pid"] is None


def test_a_start_finds_the_tree_of_a_run_that_was_answered(home):
    assert_success(App(home).run("one"), "echo: one")
    home.kill()
    assert processes_below(home.data_dir)
    home.start()
    assert not processes_below(home.data_dir), "it ends them before it is ready"


@pytest.mark.timeout(180)
def test_a_gateway_that_cannot_come_to_its_end_ends_anyway(new_faulty):  # noqa: F811
    """Its disk does not answer. It has the graces and kLastStepsMax beside the times above."""
    gateway, faults = new_faulty(drain_grace_secs=0, cancel_grace_ms=0, kill_grace_ms=0)
    app = App(gateway)
    with faults.set(scope=UPLOADS, hold=1), concurrent.futures.ThreadPoolExecutor(1) as pool:
        upload = pool.submit(app.client().post, "/files", files={"file": ("a.txt", b"text")})
        wait_until(lambda: faults.held, "the disk is stuck")
        gateway.process.terminate()
        assert gateway.process.wait(timeout=5 + 10 + 10 + SECONDS_MAX) == EXIT_LATE
        with contextlib.suppress(httpx.HTTPError):
            upload.result()
    gateway.expected_exit = EXIT_LATE
    assert gateway.wait() == EXIT_LATE
    assert "does not come to its end" in gateway.stderr()
