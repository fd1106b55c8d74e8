"""Starting, signals, draining, ending."""
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import httpx
import pytest

from answers import assert_error
from gateway import (PROGRAM, SANITIZED, SECONDS_MAX, Gateway, assert_no_report,
                     clean_environment, refused_start, wait_until)
from wire import GET_HEALTH, Wire, bearer, is_draining, request

ADMIN_TOKEN = "an-admin-token-of-enough-length"
BODY = b'{"name":"in-flight"}'


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def hold_a_request(gateway):
    """A connection whose request waits for its body: the gateway is busy with it."""
    wire = Wire(gateway)
    go_on = wire.ask(request("POST /admin/tokens", bearer(gateway.admin_token),
                             f"Content-Length: {len(BODY)}", "Expect: 100-continue"))
    assert go_on.status == 100
    return wire


# Starting

def test_the_port_file_names_the_port_and_goes_at_a_clean_end(gateway):
    port_file = gateway.data_dir / "port"
    assert port_file.read_text() == f"{gateway.port}\n"
    assert gateway.stop() == 0
    assert not port_file.exists()


def test_the_data_directory_and_the_admin_token_are_for_the_owner_alone(gateway):
    token_file = gateway.data_dir / "admin-token"
    assert mode_of(gateway.data_dir) == 0o700
    assert mode_of(token_file) == 0o600
    assert len(gateway.admin_token) >= 20
    for path in gateway.data_dir.iterdir():
        assert mode_of(path) & 0o077 == 0 or mode_of(gateway.data_dir) == 0o700, path
    assert gateway.admin.get("/admin/tokens").status_code == 200
    assert gateway.admin_token not in gateway.stderr()
    wait_until(lambda: str(token_file) in gateway.stderr(), "where it is, is printed")


def test_the_data_directory_is_made_with_its_parents(tmp_path):
    gateway = Gateway(tmp_path / "gateway")
    gateway.data_dir = tmp_path / "a" / "b" / "c"
    gateway.start()
    assert mode_of(gateway.data_dir) == 0o700
    gateway.finish()


def test_without_any_setting_it_starts_in_the_state_directory(tmp_path):
    elsewhere = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for env, place in (({}, tmp_path / ".local/state/clawdforge"),
                       (elsewhere, tmp_path / "state/clawdforge")):
        process = subprocess.Popen([str(PROGRAM), "serve", "--listen", "127.0.0.1:0"],
                                   env=clean_environment(tmp_path, env), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, cwd=str(tmp_path))
        assert process.stdout.readline().startswith(b"clawdforge listening on http://127.0.0.1:")
        assert (place / "admin-token").exists() and (place / "clawdforge.db").exists()
        process.terminate()
        assert process.wait(timeout=SECONDS_MAX) == 0
        process.stdout.close()


def test_the_admin_token_of_the_environment_is_wiped_and_written_nowhere(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_ADMIN_TOKEN": ADMIN_TOKEN})
    assert gateway.admin.get("/admin/tokens").status_code == 200
    try:
        environment = pathlib.Path(f"/proc/{gateway.process.pid}/environ").read_bytes()
        assert ADMIN_TOKEN.encode() not in environment
    except PermissionError:
        pass  # not even the owner may look
    assert not (gateway.data_dir / "admin-token").exists()
    for path in [p for p in gateway.root.rglob("*") if p.is_file()]:
        assert ADMIN_TOKEN.encode() not in path.read_bytes(), path


def test_the_admin_token_of_the_environment_beats_the_file(gateway):
    of_the_file = gateway.admin_token
    assert gateway.stop() == 0
    gateway.env["CLAWDFORGE_ADMIN_TOKEN"] = ADMIN_TOKEN
    gateway.start()
    assert (gateway.whoami(ADMIN_TOKEN), gateway.whoami(of_the_file)) == (200, 401)


@pytest.mark.skipif(SANITIZED, reason="the leak check of this build traces its own process")
def test_the_process_cannot_be_dumped(tmp_path):
    """The kernel gives the /proc entry of such a process to root, also if another user runs it."""
    if os.geteuid() != 0:
        gateway = Gateway(tmp_path / "gateway").start()
        assert os.stat(f"/proc/{gateway.process.pid}/environ").st_uid == 0
        gateway.finish()
        return
    user = 65534
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        program = shutil.copy(PROGRAM, place)
        home = pathlib.Path(place) / "home"
        home.mkdir()
        os.chown(home, user, user)
        gateway = Gateway(home, user=user, program=program).start()
        assert os.stat(f"/proc/{gateway.process.pid}/environ").st_uid == 0
        gateway.finish()


def test_the_soft_descriptor_limit_is_raised(new_gateway):
    gateway = new_gateway(files_soft=256)
    limits = pathlib.Path(f"/proc/{gateway.process.pid}/limits").read_text()
    line, = [line for line in limits.splitlines() if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard or int(soft) >= 10000


def test_an_unknown_variable_warns_and_a_known_one_does_not(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_COLOUR": "red-value", "CLAWDFORGE_MAX_RUNS": "3"})
    wait_until(lambda: "CLAWDFORGE_COLOUR" in gateway.stderr(), "it is told")
    warnings = [line for line in gateway.log_lines() if line["level"] == "warn"]
    assert "CLAWDFORGE_COLOUR" in str(warnings)
    assert "CLAWDFORGE_MAX_RUNS" not in str(warnings)
    assert "red-value" not in gateway.stderr()


# Starts that are refused

def test_a_second_gateway_on_the_same_data_directory_is_refused(gateway, tmp_path):
    code, sentence = refused_start(tmp_path, data_dir=gateway.data_dir)
    assert code == 1
    assert str(gateway.data_dir) in sentence
    assert gateway.client().get("/healthz").status_code == 200
    assert (gateway.data_dir / "port").read_text() == f"{gateway.port}\n"


def test_a_lock_that_is_let_go_of_in_time_does_not_keep_it_from_starting(new_gateway):
    """A child of a killed gateway holds the lock until its exec."""
    gateway = new_gateway(start=False)
    gateway.data_dir.mkdir(parents=True)
    with open(gateway.data_dir / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        gateway.spawn()

        def has_opened_it():
            try:
                descriptors = pathlib.Path(f"/proc/{gateway.process.pid}/fd").iterdir()
                return any(os.readlink(one) == lock.name for one in descriptors)
            except FileNotFoundError:
                return False  # one was closed meanwhile
            except PermissionError:
                pytest.skip("an ordinary user may not look into a process that cannot be dumped")
        wait_until(has_opened_it, "it asks for the lock")
    assert gateway.await_ready()


def test_a_port_in_use_is_exit_1(gateway, tmp_path):
    code, sentence = refused_start(tmp_path, listen=f"127.0.0.1:{gateway.port}")
    assert code == 1
    assert str(gateway.port) in sentence
    assert not (tmp_path / "data" / "port").exists()


def test_a_data_directory_that_is_a_file_is_exit_1(tmp_path):
    (tmp_path / "data").write_text("x")
    assert refused_start(tmp_path)[0] == 1


def test_an_address_that_is_not_ours_is_exit_1(tmp_path):
    assert refused_start(tmp_path, listen="192.0.2.1:0")[0] == 1


# Ending

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_gateway_cleanly(gateway, number):
    with Wire(gateway) as idle:
        assert idle.ask(GET_HEALTH).status == 200
        assert gateway.stop(number) == 0
        assert idle.read() is None


def test_a_request_in_flight_is_answered_while_draining(gateway):
    wire = hold_a_request(gateway)
    gateway.process.terminate()
    wait_until(lambda: is_draining(gateway), "it drains")
    assert gateway.process.poll() is None
    answer = wire.ask(BODY)
    assert answer.status == 200 or assert_error(answer, 503, "draining")
    assert answer.header("Connection").lower() == "close"
    assert wire.read() is None
    assert gateway.wait() == 0


def test_a_connection_that_is_open_while_draining_gets_no_new_work_done(gateway):
    busy = hold_a_request(gateway)
    with Wire(gateway) as idle:
        assert idle.ask(GET_HEALTH).status == 200
        gateway.process.terminate()
        wait_until(lambda: is_draining(gateway), "it drains")
        answer = idle.ask(request("GET /readyz"))
        assert answer is None or answer.status == 503
    busy.socket.close()
    assert gateway.wait() == 0


def test_a_request_whose_head_is_complete_only_while_draining_is_told_so(gateway):
    app = gateway.mint("late")["token"]
    heads = {"/readyz": request("GET /readyz"), "/whoami": request("GET /whoami", bearer(app))}
    wires = {path: Wire(gateway) for path in heads}
    for path, wire in wires.items():
        wire.send(heads[path][:20])
    # One io thread: when these are answered, it has seen the halves before them.
    assert [gateway.client().get("/healthz").status_code for _ in range(3)] == [200] * 3
    gateway.process.terminate()
    wait_until(lambda: is_draining(gateway), "it drains")
    for path, wire in wires.items():
        answer = wire.ask(heads[path][20:])
        assert_error(answer, 503, "draining")
        assert int(answer.header("Retry-After")) >= 1
        assert answer.header("Connection").lower() == "close"
        assert wire.read() is None
    assert gateway.wait() == 0


def test_what_does_not_end_in_its_grace_is_ended(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_DRAIN_GRACE_SECS": "1"})
    wire = hold_a_request(gateway)
    assert gateway.stop() == 0
    wire.socket.close()
    assert not (gateway.data_dir / "port").exists()


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once(gateway, number, code):
    wire = hold_a_request(gateway)
    gateway.process.send_signal(number)
    wait_until(lambda: is_draining(gateway), "the first signal is heard")
    assert gateway.process.poll() is None
    gateway.expected_exit = code
    assert gateway.stop(number) == code
    wire.socket.close()


# Signals and pipes that must do no harm

@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGPIPE])
def test_a_hangup_or_a_broken_pipe_does_no_harm(gateway, number):
    with Wire(gateway) as wire:
        assert wire.ask(GET_HEALTH).status == 200
        for _ in range(3):
            gateway.process.send_signal(number)
            assert wire.ask(GET_HEALTH).status == 200


def test_callers_that_reset_their_connection_do_no_harm(gateway):
    for _ in range(50):
        with Wire(gateway) as wire:
            wire.send(GET_HEALTH * 50)
            linger_zero = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
    assert gateway.client().get("/healthz").status_code == 200


def test_a_stderr_without_a_reader_does_no_harm(tmp_path):
    for close_at_once in (True, False):
        process = subprocess.Popen(
            [str(PROGRAM), "serve", "--listen", "127.0.0.1:0",
             "--data-dir", str(tmp_path / "data")],
            env=clean_environment(tmp_path, {"CLAWDFORGE_LOG_LEVEL": "debug"}),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if close_at_once:
            process.stderr.close()
        url = process.stdout.readline().decode().strip().split()[-1]
        with httpx.Client(base_url=url, trust_env=False, timeout=SECONDS_MAX) as client:
            # Far more than a pipe holds, so a writer that waits for its reader would stall.
            for _ in range(2000):
                assert client.get("/nowhere").status_code == 404
        process.terminate()
        if not close_at_once:
            assert_no_report(process.stderr.read().decode())
            process.stderr.close()
        assert process.wait(timeout=SECONDS_MAX) == 0
        process.stdout.close()


def test_a_stderr_that_is_not_read_does_not_keep_it_from_ending(new_gateway):
    reader, writer = os.pipe()
    try:
        gateway = new_gateway(start=False)
        gateway.stderr_target = writer
        gateway.start()
        with gateway.client() as client:
            for _ in range(1000):  # far more than a pipe holds
                assert client.get("/healthz").status_code == 200
        assert gateway.stop() == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_too_few_descriptors_to_start_is_exit_1_and_one_sentence(tmp_path):
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 9; exec "$0" serve --listen 127.0.0.1:0 --data-dir "$1"',
         str(PROGRAM), str(tmp_path / "data")],
        env=clean_environment(tmp_path), capture_output=True, text=True, timeout=SECONDS_MAX)
    if "Sanitizer" in done.stderr or "symbolizer" in done.stderr:
        pytest.skip("a sanitizer needs descriptors of its own")
    assert done.returncode == 1
    sentences = [s for s in done.stderr.splitlines() if s.startswith("clawdforge: ")]
    assert len(sentences) == 1, done.stderr
