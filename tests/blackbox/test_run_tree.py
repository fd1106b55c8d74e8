"""However a run or its gateway ends, nothing of it is left running."""
import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import time

import pytest

from agents import (ALL_CHILDREN, NUMBERS, UNPRIVILEGED, App, Held, assert_failure,
                    assert_nothing_left, assert_success, children_of, descriptors, fake_env,
                    gateway_of, processes, processes_below, rows, run_dirs, settled_rows, waiting)
from answers import assert_error
from gateway import SLACK_SECONDS, Gateway, wait_until
from wire import Wire, is_draining

LINGER_ZERO = struct.pack("ii", 1, 0)
# The agent, its launcher, and the children that it has thrown off.
TREE_SIZE = 2 + len(ALL_CHILDREN)
HOMES = [(user, namespace) for user in (None, UNPRIVILEGED) for namespace in ("off", "on")]


def id_of(home):
    return f"{'root' if home[0] is None else 'unprivileged'}-namespace-{home[1]}"


class Tree(Held):
    """A held run with every kind of child, all of which are there."""

    def __init__(self, app, script=None, **fields):
        place = app.gateway.root  # where also an ordinary user's agent may write
        self.pids = place / f"pids-{next(NUMBERS)}"
        super().__init__(app, place, {"children": ALL_CHILDREN, "child_pids": str(self.pids),
                                      **(script or {})}, fields)
        wait_until(self.is_complete, "all children are there")
        assert len(processes(app.gateway)) >= TREE_SIZE, "this test can see them"

    def is_complete(self):
        return self.pids.exists() and len(self.pids.read_text().split()) == len(ALL_CHILDREN)


def close(wire):
    wire.socket.close()


def reset(wire):
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
    wire.socket.close()


def half_close(wire):
    wire.socket.shutdown(socket.SHUT_WR)


HANG_UPS = [close, reset, half_close]


def terminate(gateway):
    gateway.process.terminate()
    wait_until(lambda: is_draining(gateway), "it drains")


def states(gateway):
    return [(row["state"], row["outcome"]) for row in rows(gateway)]


# The end of a run, as root and as an ordinary user, with and without namespaces

@pytest.fixture(scope="module", params=HOMES, ids=id_of)
def home(request):
    with gateway_of(*request.param) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def home_app(home):
    return App(home)


@pytest.mark.parametrize("script, status", [
    ({}, 200), ({"exit": 1}, 200), ({"signal": 9}, 200), ({"then_sleep": 600}, 200),
    ({"ignore_term": True, "then_sleep": 600}, 200), ({"error": "no"}, 502),
    ({"silent": True}, 502), ({"silent": True, "signal": 9}, 502), ({"half": True}, 502)])
def test_no_child_outlives_its_run(home, home_app, script, status):
    tree = Tree(home_app, script)
    assert tree.end().status == status
    assert_nothing_left(home)
    assert len(children_of(home.process.pid)) == 0, "and all are reaped"


@pytest.mark.parametrize("hang_up", HANG_UPS)
def test_a_hang_up_cancels_the_run_with_its_whole_tree(home, home_app, hang_up):
    before = len(rows(home))
    tree = Tree(home_app, {"ignore_term": True})
    hang_up(tree.wire)
    assert_nothing_left(home)
    row = settled_rows(home, before + 1)[-1]
    assert (row["state"], row["outcome"]) == ("cancelled", "cancelled")
    assert row["stop_reason"] == "cancelled"
    tree.wire.socket.close()


def test_an_agent_of_an_ordinary_user_cannot_write_into_an_attached_file(home, home_app):
    if home.user is None and os.geteuid() == 0:
        pytest.skip("root may write into any file")
    token = home_app.upload("a.txt", b"as it was")
    body = assert_failure(home_app.run({"touch": "attachment-1.txt"}, files=[token]),
                          502, "agent_exit")
    assert "PermissionError" in body["stderr"]
    report = home_app.report(files=[token])
    assert report["contents"] == {"attachment-1.txt": "as it was"}
    assert report["uid"] == (home.user if home.user is not None else os.geteuid())
    assert_nothing_left(home)


def test_a_launcher_that_is_killed_takes_its_tree_along(home, home_app):
    tree = Tree(home_app)
    for launcher in children_of(home.process.pid):
        os.kill(launcher, signal.SIGKILL)
    assert_failure(tree.answer(), 502, "agent_lost")
    assert_nothing_left(home)
    assert len(children_of(home.process.pid)) == 0, "and all are reaped"


# The end of the gateway

@pytest.fixture(params=HOMES, ids=id_of)
def fresh_home(request):
    with gateway_of(*request.param, drain_grace_secs=1) as gateway:
        yield gateway


def assert_interrupted_after_restart(gateway, count):
    wait_until(lambda: not processes_below(gateway.root), "the trees are gone")
    gateway.expected_exit = 0
    gateway.start()
    assert states(gateway) == [("interrupted", "interrupted")] * count
    assert all(row["ended_at"] and row["process_pid"] is None for row in rows(gateway))
    assert run_dirs(gateway) == []
    listed = gateway.admin.get("/admin/runs").json()["runs"]
    assert [run["state"] for run in listed] == ["interrupted"] * count
    assert_success(App(gateway, "after").run({}))


def test_a_gateway_that_is_killed_takes_its_trees_along(fresh_home):
    app = App(fresh_home)
    trees = [Tree(app) for _ in range(2)]
    fresh_home.kill()
    assert_interrupted_after_restart(fresh_home, len(trees))


def test_a_run_over_the_grace_is_answered_as_interrupted_and_ended(fresh_home):
    tree = Tree(App(fresh_home), {"ignore_term": True})
    fresh_home.process.terminate()
    answer = tree.answer()
    assert_failure(answer, 503, "interrupted")
    assert fresh_home.wait() == 0
    assert not processes_below(fresh_home.root), "it ends after its trees"
    assert states(fresh_home) == [("interrupted", "interrupted")]
    assert run_dirs(fresh_home) == []


@pytest.mark.parametrize("patient_home", HOMES, ids=id_of)
def test_a_gateway_that_is_told_twice_to_end_takes_its_trees_along(patient_home):
    with gateway_of(*patient_home, drain_grace_secs=60) as gateway:
        tree = Tree(App(gateway))
        terminate(gateway)
        gateway.expected_exit = 143
        assert gateway.stop() == 143
        assert tree.answer() is None
        assert_interrupted_after_restart(gateway, 1)


def test_a_kill_while_runs_are_starting_leaves_nothing(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=8))
    app = App(gateway)
    for count in (1, 4, 8):
        first = app.hold(tmp_path)
        others = [app.hold(tmp_path) for _ in range(count)]
        first.begun()
        gateway.kill()
        wait_until(lambda: not processes_below(gateway.root), "the trees are gone")
        gateway.start()
        assert set(states(gateway)) == {("interrupted", "interrupted")}
        assert run_dirs(gateway) == []
        for held in (first, *others):
            held.hang_up()
    assert_success(app.run({}))


# Draining

def test_what_runs_and_what_waits_is_answered_within_the_grace(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    held = app.hold(tmp_path).begun()
    later = app.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == 1, "the second waits")
    terminate(gateway)
    assert gateway.process.poll() is None
    for one in (held, later):
        answer = one.end()
        assert_success(answer)
        assert answer.header("Connection").lower() == "close"
        assert one.answer() is None
    assert gateway.wait() == 0
    assert states(gateway) == [("succeeded", "ok")] * 2
    assert not processes_below(gateway.root) and run_dirs(gateway) == []


def test_what_waits_is_told_at_the_end_of_the_grace_and_never_starts(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1, drain_grace_secs=1))
    app = App(gateway)
    held = app.hold(tmp_path).begun()
    later = app.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == 1, "the second waits")
    gateway.process.terminate()
    assert_failure(held.answer(), 503, "interrupted")
    assert_error(later.answer(), 503, "interrupted")
    assert gateway.wait() == 0
    assert not later.has_begun()
    assert states(gateway) == [("interrupted", "interrupted")]


# Callers who hang up

@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """A gateway that runs one at a time."""
    gateway = Gateway(tmp_path_factory.mktemp("single") / "gateway",
                      env=fake_env(max_runs=1)).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def single_app(single):
    return App(single)


@pytest.mark.parametrize("hang_up", HANG_UPS)
def test_a_hang_up_while_waiting_frees_the_place_and_nothing_starts(
        single, single_app, hang_up, tmp_path):
    before = len(rows(single))
    held = single_app.hold(tmp_path).begun()
    later = single_app.hold(tmp_path)
    wait_until(lambda: waiting(single) == 1, "the second waits")
    hang_up(later.wire)
    wait_until(lambda: waiting(single) == 0, "its place in the queue is free")
    assert_success(held.end())
    assert_success(single_app.run({}))
    assert not later.has_begun()
    assert [row["state"] for row in settled_rows(single, before + 2)[before:]] == ["succeeded"] * 2
    later.wire.socket.close()
    held.hang_up()
    assert_nothing_left(single)


def http_1_0(data):
    return data.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)


@pytest.mark.parametrize("hang_up", HANG_UPS)
@pytest.mark.parametrize("early", [b"", b"GET /whoami HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /who"])
@pytest.mark.parametrize("version", [bytes, http_1_0])
def test_a_hang_up_is_seen_behind_what_came_early(
        single, single_app, hang_up, early, version, tmp_path):
    """Also over HTTP/1.0, and also after a request that waits for its turn."""
    before = len(rows(single))
    mark = tmp_path / "begun"
    with Wire(single) as wire:
        wire.send(version(single_app.bytes({"touch": str(mark), "sleep": 600})) + early)
        wait_until(mark.exists, "the run begins")
        hang_up(wire)
        assert settled_rows(single, before + 1)[-1]["state"] == "cancelled"
    assert_nothing_left(single)


def test_a_half_closed_connection_is_closed_in_the_end(single, single_app, tmp_path):
    held = single_app.hold(tmp_path).begun()
    half_close(held.wire)
    held.wire.read_to_close()
    held.hang_up()
    assert_nothing_left(single)


def test_hang_ups_and_runs_leave_no_descriptor_behind(single, single_app, tmp_path):
    assert_success(single_app.run({}))
    assert_nothing_left(single)
    before = descriptors(single)
    for hang_up in HANG_UPS * 3:
        held = single_app.hold(tmp_path).begun()
        hang_up(held.wire)
        held.wire.socket.close()
        single_app.run({"silent": True, "signal": 9})
    assert_nothing_left(single)
    wait_until(lambda: descriptors(single) <= before, "all descriptors are closed")


@pytest.mark.parametrize("hang_up", [close, reset])
def test_over_tls_a_run_is_answered_and_a_hang_up_seen(new_gateway, tmp_path, hang_up):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
        check=True, capture_output=True, timeout=60)
    gateway = new_gateway(start=False, env=fake_env(tls_cert=tmp_path / "cert.pem",
                                                    tls_key=tmp_path / "key.pem"))
    gateway.verify = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    app = App(gateway.start())
    with Wire(gateway) as wire:
        wire.socket = gateway.verify.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        for number in range(3):  # the watch over each leaves the connection as it was
            prompt = f"{number} " * 20_000
            assert_success(wire.ask(app.bytes(prompt)), "echo: " + prompt)
        gate, mark = tmp_path / "gate", tmp_path / "mark"
        wire.send(app.bytes({"touch": str(mark), "wait_for": str(gate)}))
        wait_until(mark.exists, "it begins")
        wire.send(app.bytes({"result": "early"}))
        gate.touch()
        assert_success(wire.read(), "ok")
        assert_success(wire.read(), "early")
        mark.unlink()
        wire.send(app.bytes({"touch": str(mark), "children": ALL_CHILDREN, "sleep": 600}))
        wait_until(mark.exists, "it begins")
        hang_up(wire)
        assert settled_rows(gateway, 6)[-1]["state"] == "cancelled"
    assert_nothing_left(gateway)


# Time

def test_a_run_over_its_time_is_504_and_its_tree_is_gone(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=16))
    app = App(gateway)
    with contextlib.ExitStack() as stack:
        # The time of a request begins with its last byte: this one's is sent at the end.
        late = stack.enter_context(Wire(gateway))
        late_bytes = app.bytes({"result": "in time"}, timeout_secs=5)
        late.send(late_bytes[:-1])
        begun = time.monotonic()
        scripts = [{"sleep": 600}, {"sleep": 600, "ignore_term": True}, {"half": True,
                   "then_sleep": 600}, {"children": ALL_CHILDREN, "sleep": 600},
                   {"lines": ["noise"], "silent": True, "then_sleep": 600}]
        wires = [stack.enter_context(app.send(script, timeout_secs=5)) for script in scripts]
        speechless = stack.enter_context(app.send({"close": ["stdout"], "sleep": 600}))
        for wire in wires:
            answer = wire.read()
            body = assert_failure(answer, 504, "timeout", "claude did not finish within 5 seconds")
            assert body["duration_ms"] >= 4_000
        assert 5 <= time.monotonic() - begun < 10 + 2 * SLACK_SECONDS
        assert_success(late.ask(late_bytes[-1:]), "in time")
        assert_failure(speechless.read(), 502, "agent_signal", "claude signal 15")
    assert_nothing_left(gateway)
    assert sorted(states(gateway)) == sorted(
        [("failed", "timeout")] * len(scripts) + [("succeeded", "ok"), ("failed", "agent_signal")])


# Pipes

def test_a_child_that_keeps_the_pipes_open_holds_nothing_up(single, single_app):
    for script, status in (({}, 200), ({"silent": True}, 502), ({"silent": True, "exit": 4}, 502)):
        answer = single_app.run({"children": ["holder", "holder"], **script})
        assert answer.status_code == status, answer.text
    assert_nothing_left(single)


def test_a_flood_on_both_pipes_stops_neither(single, single_app):
    answer = single_app.run({"stdout_bytes": 8_000_000, "stderr_bytes": 8_000_000,
                             "result": "through"})
    assert_success(answer, "through")
    assert_nothing_left(single)


def test_a_process_that_is_not_ours_is_never_hit(single, single_app):
    """One that looks the same, and one that stands in the gateway's own directory."""
    strangers = [subprocess.Popen(["/bin/sleep", "600"], cwd=place)
                 for place in ("/", single.root.parent)]
    try:
        for script in ({}, {"silent": True, "signal": 9}, {"then_sleep": 600}):
            single_app.run({"children": ALL_CHILDREN, **script})
            assert_nothing_left(single)
        assert [stranger.poll() for stranger in strangers] == [None, None]
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
