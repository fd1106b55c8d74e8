"""A restart without an outage: a socket that the service manager hands over, or keeps for the gateway."""
import array
import collections
import fcntl
import json
import os
import socket
import threading
import time

import httpx
import pytest

from agents import App, fake_env
from gateway import NO_TLS, PROGRAM, SECONDS_MAX, Gateway, wait_until
from sessions import Talker, session_options

# Puts the socket where the protocol wants it, and itself into the place of the process that is meant.
HAND_OVER = """for at in $(seq 0 $((KEPT_COUNT - 1))); do
  name=KEPT_$at; eval "exec $((3 + at))<&${!name}"
done
export LISTEN_FDS=$KEPT_COUNT LISTEN_PID=${KEPT_PID:-$BASHPID}
exec "$KEPT_PROGRAM" "$@"
"""


class Manager:
    """Holds sockets and starts gateways on them, as systemd does."""

    def __init__(self, place):
        self.place = place
        self.program = place / "hand-over"
        self.program.write_text("#!/bin/bash\n" + HAND_OVER)
        self.program.chmod(0o755)
        self.sockets = []

    def listen(self, family=socket.AF_INET, address=("127.0.0.1", 0)):
        made = socket.socket(family)
        made.bind(address)
        made.listen(4096)
        return self.keep(made)

    def keep(self, kept):
        # High numbers, so that those of the protocol are free.
        high = fcntl.fcntl(kept.fileno(), fcntl.F_DUPFD, 200)
        os.set_inheritable(high, True)
        self.sockets.append(high)
        return kept

    def gateway(self, root, names=None, env=None, **options):
        handed = {f"KEPT_{at}": str(number) for at, number in enumerate(self.sockets)}
        handed |= {"KEPT_COUNT": str(len(self.sockets)), "KEPT_PROGRAM": str(PROGRAM)}
        if names:
            handed["LISTEN_FDNAMES"] = ":".join(names)
        gateway = Gateway(root, program=self.program, env={**(env or {}), **handed}, **options)
        gateway.pass_fds = self.sockets
        return gateway

    def close(self):
        for number in self.sockets:
            os.close(number)


@pytest.fixture
def manager(tmp_path):
    made = Manager(tmp_path)
    yield made
    made.close()


def ended(gateway):
    if gateway.process is not None:
        gateway.kill()


# A socket that is handed over

def test_it_listens_on_what_is_handed_over_whatever_is_configured(manager, tmp_path):
    kept = manager.listen()
    gateway = manager.gateway(tmp_path / "gateway", listen="127.0.0.1:1").start()
    try:
        port = kept.getsockname()[1]
        assert gateway.port == port
        assert gateway.client().get("/healthz").status_code == 200
        assert (gateway.data_dir / "port").read_text() == f"{port}\n"
        environment = open(f"/proc/{gateway.process.pid}/environ").read()
        assert "LISTEN_FDS=1" in environment, "as it was started"
        answer = App(gateway, "one").client().get("/agents")
        assert answer.status_code == 200
    finally:
        ended(gateway)


def test_agents_do_not_get_the_socket(manager, tmp_path):
    manager.listen()
    gateway = manager.gateway(tmp_path / "gateway", **session_options(tmp_path)).start()
    try:
        report = Talker(gateway).session().report("process")
        assert not [name for name in report["env"] if name.startswith("LISTEN_")]
    finally:
        assert gateway.stop() == 0


def test_a_socket_for_another_process_is_not_ours(manager, tmp_path):
    kept = manager.listen()
    gateway = manager.gateway(tmp_path / "gateway", env={"KEPT_PID": "1"}).start()
    try:
        assert gateway.port != kept.getsockname()[1]
    finally:
        ended(gateway)


def test_ipv6_is_handed_over_too(manager, tmp_path):
    manager.listen(socket.AF_INET6, ("::1", 0))
    gateway = manager.gateway(tmp_path / "gateway").start()
    try:
        assert gateway.host == "[::1]"
        assert gateway.client().get("/healthz").status_code == 200
    finally:
        ended(gateway)


@pytest.mark.parametrize("kind", ["two", "file", "unix", "not listening"])
def test_what_cannot_be_listened_on_stops_the_start(manager, tmp_path, kind):
    if kind == "two":
        manager.listen()
        manager.listen()
    elif kind == "file":
        manager.keep(open("/dev/null"))
    elif kind == "unix":
        manager.listen(socket.AF_UNIX, str(tmp_path / "socket"))
    else:
        manager.keep(socket.socket())
    gateway = manager.gateway(tmp_path / "gateway")
    gateway.spawn()
    assert gateway.process.wait(SECONDS_MAX) == 2
    gateway.process = None
    sentence = gateway.stderr()
    assert "ListenStream" in sentence, sentence


# A socket that is given away

class Store:
    """A service manager with a place for one descriptor."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(SECONDS_MAX)

    def until(self, key):
        """The message with this key, and the descriptors that came with it."""
        while True:
            room = socket.CMSG_SPACE(array.array("i").itemsize)
            data, control, _, _ = self.socket.recvmsg(4096, room)
            message = dict(line.split("=", 1) for line in data.decode().splitlines())
            numbers = array.array("i")
            for level, kind, held in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers.frombytes(held)
            if key in message:
                return message, list(numbers)

    def close(self):
        self.socket.close()


def test_its_own_socket_is_kept_by_the_manager_and_comes_back(manager, tmp_path):
    store = Store(tmp_path / "notify")
    env = {"NOTIFY_SOCKET": store.path, "FDSTORE": "1"}
    first = Gateway(tmp_path / "gateway", env=env).start()
    message, [number] = store.until("FDSTORE")
    assert message["FDNAME"] == "clawdforge-listen"
    kept = manager.keep(socket.socket(fileno=number))
    assert first.stop() == 0
    # No gateway is there, and the connection waits.
    waiting = socket.create_connection(kept.getsockname(), timeout=SECONDS_MAX)
    waiting.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    second = manager.gateway(tmp_path / "gateway", ["clawdforge-listen"], env=env).start()
    try:
        assert second.port == first.port
        assert waiting.recv(100).startswith(b"HTTP/1.1 200 ")
    finally:
        waiting.close()
        assert second.stop() == 0
    # Its owner wants another address now.
    third = manager.gateway(tmp_path / "gateway", ["clawdforge-listen"], env=env,
                            listen="127.0.0.2:0").start()
    try:
        assert third.host == "127.0.0.2"
        assert store.until("FDSTOREREMOVE")[0]["FDNAME"] == "clawdforge-listen"
        assert store.until("FDSTORE")[1], "the new one is kept"
    finally:
        assert third.stop() == 0
        store.close()


# Under load

class Caller(threading.Thread):
    """Asks again and again and never tries anything twice: whatever goes wrong is counted."""

    def __init__(self, load, connects_each_time):
        super().__init__(daemon=True)
        self.load = load
        self.connects_each_time = connects_each_time
        self.answers = collections.Counter()
        self.failures = []

    def run(self):
        limits = httpx.Limits(max_keepalive_connections=0 if self.connects_each_time else 1)
        with httpx.Client(base_url=self.load.url, timeout=2 * SECONDS_MAX, trust_env=False,
                          transport=httpx.HTTPTransport(verify=NO_TLS, limits=limits)) as client:
            while not self.load.is_over.is_set():
                try:
                    self.step(client)
                except httpx.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}")

    def count(self, answer):
        self.answers[answer.status_code] += 1
        if answer.status_code != 200:
            self.failures.append(f"{answer.status_code}: {answer.text[:300]}")


class Asker(Caller):
    def step(self, client):
        self.count(client.get("/whoami", headers=self.load.headers))


class Runner(Caller):
    def step(self, client):
        self.count(client.post("/run", headers=self.load.headers,
                               json={"prompt": json.dumps({"sleep": 0.05})}))


class Talking(Caller):
    def __init__(self, load, connects_each_time, session):
        super().__init__(load, connects_each_time)
        self.session = session

    def step(self, client):
        self.count(client.post(self.session.path + "/turn", json={"prompt": "hello"},
                               headers={"Authorization": f"Bearer {self.session.app.token}"}))


class Load:
    def __init__(self, gateway, app):
        self.url = gateway.url
        self.headers = {"Authorization": f"Bearer {app.token}"}
        self.is_over = threading.Event()


@pytest.mark.timeout(300)
def test_restarts_under_load_refuse_no_caller_and_fail_nothing(manager, tmp_path):
    """Callers with a new connection for each request, and callers that keep theirs; none of them
    tries again. Three restarts in the middle of it."""
    manager.listen()
    options = session_options(tmp_path, drain_grace_secs=30, max_live_sessions=20, max_runs=8)
    gateway = manager.gateway(tmp_path / "gateway", **options).start()
    talker = Talker(gateway, "talker")
    load = Load(gateway, App(gateway, "asker"))
    callers = [kind(load, fresh) for kind in (Asker, Runner) for fresh in (True, False)]
    callers += [Talking(load, fresh, talker.session()) for fresh in (True, False)]
    for caller in callers:
        caller.start()
    gaps = []
    try:
        for _ in range(3):
            goals = [caller.answers[200] + 5 for caller in callers]
            wait_until(lambda goals=goals: all(caller.answers[200] >= goal or caller.failures
                                               for caller, goal in zip(callers, goals)),
                       "all go on")
            begun = time.monotonic()
            assert gateway.stop() == 0
            gateway.start()
            gaps.append(round(time.monotonic() - begun, 2))
    finally:
        load.is_over.set()
        for caller in callers:
            caller.join(2 * SECONDS_MAX)
    try:
        assert not any(caller.is_alive() for caller in callers), "a caller hangs"
        total = sum(sum(caller.answers.values()) for caller in callers)
        print(f"{total} requests, restarts of {gaps} s")
        assert [caller.failures for caller in callers if caller.failures] == []
        assert all(caller.answers[200] >= 15 for caller in callers)
    finally:
        assert gateway.stop() == 0


def test_without_a_kept_socket_a_restart_is_seen(new_gateway):
    """What the test above would find: the same load meets a port on which no process listens."""
    gateway = new_gateway(env=fake_env())
    gateway.listen = f"127.0.0.1:{gateway.port}"
    load = Load(gateway, App(gateway, "asker"))
    caller = Asker(load, True)
    caller.start()
    try:
        for _ in range(3):
            assert gateway.stop() == 0
            gateway.start()
    finally:
        load.is_over.set()
        caller.join(2 * SECONDS_MAX)
    assert caller.failures


def test_work_that_outlasts_the_grace_is_what_fails(manager, tmp_path):
    manager.listen()
    gateway = manager.gateway(tmp_path / "gateway", env=fake_env(
        drain_grace_secs=1, cancel_grace_ms=200, kill_grace_ms=200)).start()
    app = App(gateway, "app")
    held = app.hold(tmp_path).begun()
    assert gateway.stop() == 0
    answer = held.answer()
    assert answer.status == 503, answer
    gateway.start()
    assert app.client().get("/whoami").status_code == 200
    assert gateway.stop() == 0
