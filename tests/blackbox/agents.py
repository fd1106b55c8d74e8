"""Runs of a stand-in agent: starts them, holds them, and sees that nothing of them is left."""
import contextlib
import itertools
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import warnings

import httpx
import pytest

from answers import header_of, status_of
from gateway import NO_TLS, PROGRAM, REPO, SANITIZED, SECONDS_MAX, Gateway, wait_until
from wire import Wire, bearer, request, with_body

FAKE = REPO / "tests" / "agents" / "fake_claude"
FAKE_VERSION = "2.1.325 (Claude Code)"  # what its --version prints
FAKE_KEY = "sk-ant-api03-of-a-stand-in-0123456789"  # so that it needs no login
UNPRIVILEGED = 65534
ALL_CHILDREN = ["plain", "setsid", "daemon", "bare", "stubborn", "holder"]

FAILURE_KEYS = {"ok", "error", "stderr", "duration_ms", "stop_reason", "code", "detail",
                "request_id"}
NUMBERS = itertools.count()


def fake_env(**settings):
    """The gateway's environment: the stand-in as claude, and settings by their TOML names."""
    # Most tests count processes and directories: spares are for those that ask for them.
    env = {"CLAWDFORGE_CLAUDE_BIN": str(FAKE), "CLAWDFORGE_KILL_GRACE_MS": "300",
           "CLAWDFORGE_WARM": "off", "LC_ALL": "C.UTF-8", "ANTHROPIC_API_KEY": FAKE_KEY}
    env.update({f"CLAWDFORGE_{name.upper()}": str(value) for name, value in settings.items()})
    return env


class App:
    """A caller with a token. A prompt that is not text is a script for the stand-in."""

    def __init__(self, gateway, name="app", **fields):
        self.gateway = gateway
        self.name = name
        self.token = gateway.mint(name, **fields)["token"]
        self._client = None

    @staticmethod
    def body(prompt, fields):
        text = prompt if isinstance(prompt, str) else json.dumps(prompt)
        return {"prompt": text, **fields}

    def client(self):
        """One for all calls, as they are dear to make; each call has a connection of its own."""
        if self._client is None or self._client.base_url != self.gateway.url:
            transport = httpx.HTTPTransport(verify=NO_TLS,
                                            limits=httpx.Limits(max_keepalive_connections=0))
            self._client = httpx.Client(base_url=self.gateway.url, transport=transport,
                                        headers={"Authorization": f"Bearer {self.token}"},
                                        timeout=2 * SECONDS_MAX, trust_env=False)
        return self._client

    def post(self, body):
        return self.client().post("/run", json=body)

    def run(self, prompt, **fields):
        """Asks and waits for the answer."""
        return self.post(self.body(prompt, fields))

    def send(self, prompt, **fields):
        """Asks, and gives the connection on which the answer will come."""
        wire = Wire(self.gateway)
        wire.send(self.bytes(prompt, **fields))
        return wire

    def bytes(self, prompt, **fields):
        body = json.dumps(self.body(prompt, fields)).encode()
        return with_body("POST /run", body, bearer(self.token))

    def report(self, prompt=None, **fields):
        """What the agent saw."""
        answer = self.run({"report": True} if prompt is None else prompt, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def upload(self, name, content):
        answer = self.client().post("/files", files={"file": (name, content)})
        assert answer.status_code == 200, answer.text
        return answer.json()["file_token"]

    def hold(self, place, script=None, **fields):
        return Held(self, place, script or {}, fields)


class Held:
    """A run that goes on, once it has begun, until it is let go."""

    def __init__(self, app, place, script, fields):
        name = f"{next(NUMBERS)}-{app.name}"
        self.gate = place / f"gate-{name}"
        self.mark = place / f"begun-{name}"
        self.wire = app.send({"touch": str(self.mark), "wait_for": str(self.gate),
                              "result": name, **script}, **fields)

    def has_begun(self):
        return self.mark.exists()

    def begun(self):
        wait_until(self.has_begun, "the run begins")
        return self

    def let_go(self):
        self.gate.touch()

    def answer(self):
        return self.wire.read()

    def end(self):
        """Lets it go and gives its answer."""
        self.let_go()
        return self.answer()

    def hang_up(self):
        self.wire.socket.close()


# What an answer looks like

def body_of(answer):
    return json.loads(answer.body if hasattr(answer, "body") else answer.content)


def assert_success(answer, result=...):
    body = body_of(answer)
    assert status_of(answer) == 200, body
    assert set(body) == {"ok", "result", "duration_ms", "stop_reason"}
    assert body["ok"] is True
    assert isinstance(body["duration_ms"], int) and body["duration_ms"] >= 0
    assert result is ... or body["result"] == result
    return body


def assert_failure(answer, status, code, error=None):
    """A failed run, with exactly the promised body."""
    body = body_of(answer)
    assert (status_of(answer), body.get("code")) == (status, code), body
    assert header_of(answer, "Content-Type") == "application/json"
    assert set(body) == FAILURE_KEYS
    assert body["ok"] is False
    assert body["error"] and body["detail"] == body["error"]
    assert error is None or body["error"] == error
    assert isinstance(body["duration_ms"], int) and body["duration_ms"] >= 0
    assert body["stop_reason"] == {"timeout": "timeout", "token_revoked": "cancelled",
                                    "cancelled": "cancelled"}.get(code, "error")
    assert body["request_id"] == header_of(answer, "X-Request-Id")
    return body


# What the ledger knows

def rows(gateway):
    """The table of runs, the oldest first."""
    with contextlib.closing(
            sqlite3.connect(f"file:{gateway.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute("SELECT * FROM runs ORDER BY rowid")]


def row_of(gateway, answer):
    run_id = header_of(answer, "X-Clawdforge-Run-Id")
    row, = [row for row in rows(gateway) if row["run_id"] == run_id]
    return row


def settled_rows(gateway, count):
    """The rows, once that many are there and all have ended."""
    def found():
        all_rows = rows(gateway)
        return all_rows if len(all_rows) >= count and all(r["ended_at"] for r in all_rows) else None
    found_rows = wait_until(found, f"{count} rows have ended")
    assert len(found_rows) == count, found_rows
    return found_rows


# What the gateway counts

def gauge(gateway, name):
    with Wire(gateway) as wire:
        lines = wire.ask(request("GET /metrics", bearer(gateway.admin_token))).body.decode().splitlines()
    line, = [line for line in lines if line.startswith(name + " ")]
    return float(line.split()[1])


def running(gateway):
    return gauge(gateway, "clawdforge_runs_running")


def waiting(gateway):
    return gauge(gateway, "clawdforge_runs_waiting")


# What is left

def processes_below(root):
    """Ids of the processes that work in `root`: whatever else a process of a tree has thrown
    off, its directory it still has, and its launcher has the gateway's."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            place = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue  # it has ended, or is another user's
        if place == str(root) or place.startswith(f"{root}/"):
            found.add(int(entry))
    return found


def children_of(pid):
    """Also those that have ended and are not reaped."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def processes(gateway):
    """All that the gateway has started and that is still there."""
    found = processes_below(gateway.root)
    if gateway.process is not None:
        found |= set(children_of(gateway.process.pid))
        found.discard(gateway.process.pid)
    return found


def run_dirs(gateway):
    return sorted(path.name for path in (gateway.data_dir / "runs").iterdir())


def assert_nothing_left(gateway):
    wait_until(lambda: not processes(gateway), "all processes are gone")
    wait_until(lambda: not run_dirs(gateway), "the directories of the runs are gone")


def descriptors(gateway):
    """How many the gateway has open."""
    try:
        return len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
    except PermissionError:
        pytest.skip("an ordinary user may not look into a process that cannot be dumped")


# Gateways of other users, with and without namespaces

def allows_namespaces(user):
    """Whether the kernel gives a PID namespace with a /proc of its own to this user."""
    own = [] if (user or os.geteuid()) == 0 else ["--user", "--map-root-user"]
    tried = subprocess.run(["unshare", *own, "--pid", "--fork", "--mount-proc", "true"], user=user,
                           capture_output=True, check=False)
    return tried.returncode == 0


@contextlib.contextmanager
def gateway_of(user, pid_namespace, stand_in=FAKE, **settings):
    """A gateway of root or of an ordinary user, with the stand-in; skips, loudly, what this
    machine does not allow."""
    if user is not None and os.geteuid() != 0:
        loud_skip("only root can start a gateway as another user")
    if pid_namespace == "on" and not allows_namespaces(user):
        loud_skip(f"the kernel gives no PID namespace to user {user or os.geteuid()}")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name).resolve()
        place.chmod(0o755)
        home = place / "home"
        home.mkdir()
        fake = place / "claude"
        fake.write_bytes(stand_in.read_bytes())
        fake.chmod(0o755)
        for module in ("claude.py", "claude_login.py", "lean.py"):
            (place / module).write_bytes((FAKE.parent / module).read_bytes())
        program = PROGRAM
        if user is not None:
            program = place / "clawdforge"
            program.write_bytes(PROGRAM.read_bytes())
            program.chmod(0o755)
            os.chown(home, user, user)
        env = fake_env(claude_bin=fake, pid_namespace=pid_namespace, **settings)
        gateway = Gateway(home, env=env, user=user, program=program).start()
        try:
            wait_until(lambda: not processes(gateway), "it has looked for its agents")
            yield gateway
            gateway.finish()
        finally:
            if gateway.process is not None:
                gateway.kill()
        assert not processes_below(home), "something outlived its gateway"


def loud_skip(reason):
    warnings.warn(f"not tested here: {reason}")
    pytest.skip(reason)


def fewer(count):
    """As many as a slow build can do in its time."""
    return max(1, count // 4) if SANITIZED else count
