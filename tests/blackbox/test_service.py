"""What the gateway tells a service manager, and what callers see of a supervisor's restart."""
import os
import pathlib
import secrets
import signal
import socket

import pytest

from agents import App, fake_env
from gateway import SECONDS_MAX, wait_until


class ServiceManager:
    """Listens where NOTIFY_SOCKET says."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(SECONDS_MAX)

    def next(self):
        """One message, as a dictionary."""
        text = self.socket.recv(4096).decode()
        assert text.endswith("\n")
        return dict(line.split("=", 1) for line in text.splitlines())

    def until(self, key):
        while key not in (message := self.next()):
            assert message == {"WATCHDOG": "1"}, message
        return message

    def rest(self):
        """What has been said until now."""
        self.socket.setblocking(False)
        messages = []
        try:
            while True:
                messages.append(self.next())
        except BlockingIOError:
            self.socket.settimeout(SECONDS_MAX)
            return messages


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = (str(tmp_path / "notify") if request.param == "path"
            else f"@clawdforge-{os.getpid()}-{secrets.token_hex(4)}")
    made = ServiceManager(name)
    yield made
    made.socket.close()


def test_the_service_manager_is_told_of_the_start_and_of_the_end(new_gateway, manager):
    gateway = new_gateway(env={"NOTIFY_SOCKET": manager.name, "CLAWDFORGE_DRAIN_GRACE_SECS": "7",
                               "CLAWDFORGE_CANCEL_GRACE_MS": "500",
                               "CLAWDFORGE_KILL_GRACE_MS": "500"})
    assert manager.next() == {"READY": "1", "STATUS": f"listening on {gateway.url}"}
    assert gateway.client().get("/healthz").status_code == 200
    assert manager.rest() == [], "no watchdog was asked for"
    assert gateway.stop() == 0
    assert manager.next() == {"STOPPING": "1", "STATUS": "draining",
                              "EXTEND_TIMEOUT_USEC": "48000000"}, "with the wait for a login"
    assert manager.rest() == []


def test_a_start_that_fails_is_never_ready(gateway, manager, new_gateway):
    second = new_gateway(start=False, env={"NOTIFY_SOCKET": manager.name},
                         listen=f"127.0.0.1:{gateway.port}")
    with pytest.raises(AssertionError, match="no ready line"):
        second.start()
    assert manager.rest() == []


def test_a_watchdog_hears_that_the_loop_runs_and_that_it_does_not(new_gateway, manager, tmp_path):
    gateway = new_gateway(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "300000",
                               **fake_env(drain_grace_secs=30)})
    manager.until("READY")
    for _ in range(5):
        assert manager.next() == {"WATCHDOG": "1"}
    gateway.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: "T" in pathlib.Path(f"/proc/{gateway.process.pid}/stat").read_text()
               .rsplit(")", 1)[1].split()[0], "it stands still")
    manager.rest()
    manager.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        manager.next()
    manager.socket.settimeout(SECONDS_MAX)
    gateway.process.send_signal(signal.SIGCONT)
    assert manager.next() == {"WATCHDOG": "1"}
    held = App(gateway).hold(tmp_path).begun()
    gateway.process.terminate()
    manager.until("STOPPING")
    for _ in range(3):
        assert manager.next() == {"WATCHDOG": "1"}, "also while it drains"
    assert held.end().status == 200
    assert gateway.wait() == 0


@pytest.mark.parametrize("extra", [
    {"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"},
    {"WATCHDOG_USEC": "-5"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_PID": "1"}])
def test_a_watchdog_that_is_not_ours_hears_nothing(new_gateway, manager, extra):
    gateway = new_gateway(env={"NOTIFY_SOCKET": manager.name, **extra})
    manager.until("READY")
    assert gateway.stop() == 0
    assert list(manager.next()) == ["STOPPING", "STATUS", "EXTEND_TIMEOUT_USEC"]


@pytest.mark.parametrize("name", ["", "@", "/", "/nowhere/at/all", "relative", "/" + "x" * 200,
                                  "vsock:2:1234"])
def test_a_socket_that_is_none_does_no_harm(new_gateway, name):
    gateway = new_gateway(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "10000"})
    assert gateway.client().get("/healthz").status_code == 200
    assert gateway.stop() == 0


def test_a_manager_that_goes_or_does_not_read_does_no_harm(new_gateway, tmp_path):
    manager = ServiceManager(str(tmp_path / "notify"))
    gateway = new_gateway(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "3000"})
    lag = gateway.client().get("/healthz")
    assert lag.status_code == 200
    # Far more than such a socket holds; then it goes.
    wait_until(lambda: "clawdforge_io_loop_lag_seconds_count 2" in
               gateway.admin.get("/metrics").text, "two seconds have passed")
    manager.socket.close()
    assert gateway.client().get("/healthz").status_code == 200
    assert gateway.stop() == 0


def test_no_agent_learns_of_the_service_manager(new_gateway, manager):
    gateway = new_gateway(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "60000000",
                               **fake_env()})
    environment = App(gateway).report()["env"]
    assert not [name for name in environment if name.startswith(("NOTIFY", "WATCHDOG"))]
