"""Which network an agent has: open, through the gateway's proxy, or none."""
import contextlib
import socket
import threading

import pytest

from agents import REPO, UNPRIVILEGED, App, allows_namespaces, assert_success, gateway_of, gauge, loud_skip
from gateway import wait_until

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"
either_user = pytest.mark.parametrize("user", [None, UNPRIVILEGED], ids=["root", "ordinary"])


@pytest.fixture(autouse=True)
def namespaces():
    if not allows_namespaces(None):
        loud_skip("the kernel allows no namespaces")


class Echo:
    """A service on loopback that says back what it was told, until its end."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.peers = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                self.peers += 1
                with peer:
                    while piece := peer.recv(65536):
                        peer.sendall(piece.upper())

    def close(self):
        self.listener.close()


@pytest.fixture
def echo():
    service = Echo()
    yield service
    service.close()


def with_net(user, **settings):
    return gateway_of(user, "auto", stand_in=INTRUDER, **{"jail_write": "", **settings})


def results(gateway, *what, app="app", **fields):
    return assert_success(App(gateway, app, **fields).run({"do": [list(one) for one in what]}))["result"]


def direct(gateway, echo):
    return [("connect", "tcp", ["127.0.0.1", echo.port]),
            ("connect", "tcp", ["127.0.0.1", gateway.port])]


@either_user
def test_open_reaches_what_the_machine_does(user, echo):
    """The control of the next ones."""
    with with_net(user) as gateway:
        assert results(gateway, *direct(gateway, echo)) == [None, None]


@either_user
def test_none_reaches_nothing(user, echo):
    with with_net(user, net="none") as gateway:
        found = results(gateway, *direct(gateway, echo), ("getenv", "HTTPS_PROXY"),
                        ("run", "sh", "-c", "cat /proc/net/dev | wc -l"))
        assert found[:2] == ["ECONNREFUSED"] * 2 and found[2] is None
        assert found[3][1] == "3", "loopback alone"
        assert echo.peers == 0


@either_user
def test_proxy_reaches_what_is_named(user, echo):
    """Row 23: the gateway, loopback, other hosts and ports are refused, and told."""
    with with_net(user, net="proxy", net_allow=f"localhost:{echo.port},*.example.invalid:443") as gateway:
        allowed = f"localhost:{echo.port}"
        found = results(
            gateway, *direct(gateway, echo), ("tunnel", allowed, "hello"),
            ("tunnel", f"LOCALHOST.:{echo.port}", "again"),
            ("ask_proxy", f"CONNECT 127.0.0.1:{echo.port} HTTP/1.1\r\n\r\n"),
            ("ask_proxy", f"CONNECT localhost:{gateway.port} HTTP/1.1\r\n\r\n"),
            ("ask_proxy", f"GET http://{allowed}/ HTTP/1.1\r\n\r\n"),
            ("ask_proxy", "CONNECT a.example.invalid:443 HTTP/1.1\r\n\r\n"),
            ("ask_proxy", "nonsense\r\n\r\n"), ("resolve", "example.org"), ("connect", "tcp", ["192.0.2.1", 443]))
        assert found[:2] == ["ECONNREFUSED"] * 2
        assert found[2].endswith("HELLO") and found[3].endswith("AGAIN")
        assert found[2].startswith("HTTP/1.1 200 ")
        assert found[4].startswith("HTTP/1.1 403 ") and f"127.0.0.1:{echo.port}" in found[4]
        assert found[5].startswith("HTTP/1.1 403 ")
        assert found[6].startswith("HTTP/1.1 405 ")
        assert found[7].startswith("HTTP/1.1 502 "), "there is no such host"
        assert found[8].startswith("HTTP/1.1 405 ")
        assert found[9] != "" and "." not in found[9], "no names are looked up inside"
        assert found[10] == "ENETUNREACH"
        assert gauge(gateway, "clawdforge_net_refused_total") == 4
        wait_until(lambda: {line["target"] for line in gateway.log_lines()
                            if line["message"] == "an agent was refused a connection"}
                   == {f"127.0.0.1:{echo.port}", f"localhost:{gateway.port}", "http"}, "the log has them")
        wait_until(lambda: "net.refused" in gateway.admin.get("/admin/events").text, "the audit has it")
        wait_until(lambda: gauge(gateway, "clawdforge_net_tunnels") == 0, "all tunnels end")


def test_a_tunnel_ends_with_its_tree(echo):
    with with_net(None, net="proxy", net_allow=f"localhost:{echo.port}") as gateway:
        script = ("import os, socket, time; p = socket.create_connection(('127.0.0.1', 3128)); "
                  f"p.sendall(b'CONNECT localhost:{echo.port} HTTP/1.1\\r\\n\\r\\n'); p.recv(100); "
                  "n = os.open('/dev/null', 2); os.fork() or (os.setsid(), [os.dup2(n, i) for i in range(3)], "
                  "time.sleep(600))")
        results(gateway, ("run", "python3", "-c", script))
        wait_until(lambda: gauge(gateway, "clawdforge_net_tunnels") == 0, "it ends with the tree")


def test_an_app_has_its_own_network_and_targets(echo):
    """The strictest network counts; targets are put together."""
    with with_net(None) as gateway:
        shut = results(gateway, *direct(gateway, echo), app="shut", net="none")
        assert shut == ["ECONNREFUSED"] * 2
        named = results(gateway, ("tunnel", f"localhost:{echo.port}", "x"), app="named", net="proxy",
                        net_allow=[f"localhost:{echo.port}"])
        assert named[0].endswith("X")
        other = results(gateway, ("ask_proxy", f"CONNECT localhost:{echo.port} HTTP/1.1\r\n\r\n"),
                        app="other", net="proxy")
        assert other[0].startswith("HTTP/1.1 403 ")


def test_full_means_proxy(echo):
    with with_net(None, jail="full", net_allow=f"localhost:{echo.port}") as gateway:
        found = results(gateway, *direct(gateway, echo), ("tunnel", f"localhost:{echo.port}", "y"))
        assert found[:2] == ["ECONNREFUSED"] * 2 and found[2].endswith("Y")
