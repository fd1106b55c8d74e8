"""The Unix socket in the data directory, over which the owner administers the gateway without a
token; and why a stranger cannot lock the admin out."""
import json
import os
import secrets
import signal
import socket
import stat
import sys

import pytest

from agents import UNPRIVILEGED, fake_env
from answers import assert_error
from gateway import Gateway, run_program, wait_until
from sessions import Talker, config_with, held
from wire import Wire, bearer, request, with_body

FREE_ATTEMPTS = 20
LOCAL_CONNECTIONS_MAX = 16


class LocalWire(Wire):
    """As Wire, over the Unix socket."""

    def __init__(self, gateway):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(gateway.data_dir / "admin.sock"))
        self.buffer = b""


def guess(gateway, source, count=FREE_ATTEMPTS + 10):
    with Wire(gateway, source) as wire:
        return [wire.ask(request("GET /whoami", bearer("cf_" + secrets.token_urlsafe(32)))).status
                for _ in range(count)]


def test_a_stranger_who_guesses_does_not_lock_out_what_is_right(gateway):
    stolen = gateway.mint("stolen")["token"]
    assert guess(gateway, "127.0.0.1")[-1] == 429
    assert gateway.whoami(stolen) == 200
    with gateway.client(gateway.admin_token) as admin:
        assert admin.delete("/admin/tokens/stolen").status_code == 200
    assert gateway.whoami(stolen) == 429, "it is wrong now, and what is wrong is limited"


def test_the_socket_is_its_owners_alone_and_needs_no_token(gateway):
    found = os.lstat(gateway.data_dir / "admin.sock")
    assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
    with LocalWire(gateway) as wire:
        assert wire.ask(request("GET /whoami")).json() == {"ok": True, "kind": "admin"}
        minted = wire.ask(with_body("POST /admin/tokens", b'{"name":"by-socket"}'))
        assert minted.status == 200
        assert_error(wire.ask(with_body("POST /run", b'{"prompt":"x"}')), 403, "wrong_token_kind")
        assert wire.ask(request("GET /healthz")).status == 200
        token = minted.json()["token"]
        assert wire.ask(request("GET /whoami", bearer(token))).json()["name"] == "by-socket"
        assert_error(wire.ask(request("GET /whoami", bearer("cf_wrong"))), 401, "unauthorized")
    events = gateway.admin.get("/admin/events", params={"app": "by-socket"}).json()["events"]
    assert [(event["event"], event["meta"]) for event in events] == [
        ("token_mint", {"by": "admin_socket"})]
    wait_until(lambda: "socket" in {line["peer"] for line in gateway.requests_logged()},
               "the log names the socket")


def test_the_socket_is_there_when_all_connections_are_taken(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_MAX_CONNECTIONS": "2"})
    held = [Wire(gateway) for _ in range(80)]
    with LocalWire(gateway) as wire:
        assert wire.ask(request("GET /admin/tokens")).status == 200
    for wire in held:
        wire.socket.close()


def test_the_socket_has_a_limit_of_its_own(gateway):
    held = [LocalWire(gateway) for _ in range(LOCAL_CONNECTIONS_MAX)]
    for wire in held:
        assert wire.ask(request("GET /whoami")).status == 200
    with LocalWire(gateway) as one_more:
        assert one_more.ask(request("GET /whoami")) is None
    assert gateway.admin.get("/whoami").status_code == 200
    for wire in held:
        wire.socket.close()

    def works():
        with LocalWire(gateway) as wire:
            return wire.ask(request("GET /whoami")) is not None
    wait_until(works, "there is room again")


def test_the_socket_goes_with_a_clean_end_and_is_replaced_after_a_kill(gateway):
    place = gateway.data_dir / "admin.sock"
    gateway.kill()
    assert place.exists(), "a killed gateway leaves it"
    gateway.start()
    with LocalWire(gateway) as wire:
        assert wire.ask(request("GET /whoami")).status == 200
    assert gateway.stop() == 0
    assert not place.exists()


def test_what_is_no_socket_is_not_replaced(new_gateway):
    gateway = new_gateway(start=False)
    gateway.data_dir.mkdir(parents=True)
    (gateway.data_dir / "admin.sock").write_text("mine")
    gateway.start()
    assert gateway.admin.get("/whoami").status_code == 200
    assert (gateway.data_dir / "admin.sock").read_text() == "mine"
    wait_until(lambda: "local socket" in gateway.stderr(), "it says so")


def test_a_path_that_is_too_long_leaves_the_port(tmp_path):
    gateway = Gateway(tmp_path / ("d" * 100))
    gateway.start()
    try:
        assert not (gateway.data_dir / "admin.sock").exists()
        wait_until(lambda: "local socket" in gateway.stderr(), "it says so")
        warned, = [line for line in gateway.log_lines() if "local socket" in line["message"]]
        assert "longer than" in warned["why"]
        done = run_program("token", "mint", "x", "--data-dir", gateway.data_dir, home=gateway.root)
        assert done.returncode == 0, done.stderr
    finally:
        gateway.finish()


# The command line

def cli(gateway, *arguments, env=None):
    return run_program("token", *arguments, "--data-dir", gateway.data_dir, home=gateway.root,
                       env=env)


def test_the_token_commands_work_while_the_address_is_locked_and_without_a_token(gateway):
    stolen = gateway.mint("stolen")["token"]
    guess(gateway, "127.0.0.1")
    (gateway.data_dir / "admin-token").rename(gateway.root / "elsewhere")
    assert cli(gateway, "revoke", "stolen").returncode == 0
    assert "stolen" not in cli(gateway, "list").stdout
    (gateway.root / "elsewhere").rename(gateway.data_dir / "admin-token")
    assert gateway.whoami(stolen) in (401, 429)


def test_without_the_socket_the_commands_use_the_port(gateway):
    (gateway.data_dir / "admin.sock").unlink()
    assert cli(gateway, "mint", "by-port").returncode == 0
    events = gateway.admin.get("/admin/events", params={"app": "by-port"}).json()["events"]
    assert events[0]["meta"] == {"by": "admin_token", "address": "127.0.0.1"}


# Who may not

ASKER = """
import socket, sys
wire = socket.socket(socket.AF_UNIX)
try:
    wire.connect(sys.argv[1])
    wire.sendall(b"GET /whoami HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
    print(wire.recv(4096).decode()[:12] or "nothing", file=sys.stderr)
except OSError as error:
    print(type(error).__name__, file=sys.stderr)
sys.exit(5)
"""


@pytest.mark.parametrize("prefix", [[], ["setsid", "-w"]])
def test_an_agent_is_not_let_in_although_it_runs_as_the_same_user(new_gateway, tmp_path, prefix):
    asker = tmp_path / "asker.py"
    asker.write_text(ASKER)
    gateway = new_gateway(start=False, env=fake_env())
    command = [*prefix, sys.executable, str(asker), str(gateway.data_dir / "admin.sock")]
    config = config_with(tmp_path, {}, f"[agents.nosy]\ncommand = {json.dumps(command)}\n" + held())
    gateway.flags = ["--config", str(config)]
    gateway.start()
    said = Talker(gateway).create("nosy").json()["stderr"].strip()
    assert "200" not in said, said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_another_user_is_not_let_in_even_if_the_mode_allows_it(gateway):
    for place in (gateway.root, gateway.data_dir, *gateway.root.parents[:3]):
        os.chmod(place, 0o755)
    os.chmod(gateway.data_dir / "admin.sock", 0o666)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
        try:
            with LocalWire(gateway) as wire:
                answer = wire.ask(request("GET /whoami"))
            os.write(write_end, b"none" if answer is None else str(answer.status).encode())
        except OSError as error:
            os.write(write_end, type(error).__name__.encode())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(write_end)
    said = os.read(read_end, 100)
    os.close(read_end)
    assert said in (b"none", b"ConnectionResetError", b"PermissionError", b"BrokenPipeError"), said
