"""Starts the real program, each time in a directory and on a port of its own.

CLAWDFORGE_BIN names the program; a relative path counts from the root of the repository.
"""
import hashlib
import json
import os
import pathlib
import re
import resource
import selectors
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

import httpx

REPO = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = REPO / os.environ.get("CLAWDFORGE_BIN", "build/release/clawdforge")
READY = re.compile(r"clawdforge listening on (https?)://(\[[0-9a-f:.]+\]|[0-9.]+):([0-9]+)\n")
SANITIZER_MARKS = ("Sanitizer", "runtime error:", "terminate called", "Assertion `")
SANITIZER_OPTIONS = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")


def _is_sanitized():
    if not PROGRAM.exists():
        return False
    content = PROGRAM.read_bytes()
    return b"__asan_init" in content or b"__tsan_init" in content


SANITIZED = _is_sanitized()
# Bounds are generous for a busy machine and more so for a slow build; none is a target. A test
# must hold on any machine: where it shows that something does not wait, what it would wait for
# takes much longer than the bound, or does not come at all before the test lets it.
SECONDS_MAX = 60.0 if SANITIZED else 20.0
SLACK_SECONDS = 15.0 if SANITIZED else 5.0  # what a busy machine adds to a time that is promised
# For clients of http:// addresses. Without it each would read all certificates of the system, which
# costs more than all that most of them ask for.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def wait_until(condition, what, seconds=SECONDS_MAX):
    """Polls until `condition()` is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def clean_environment(home, extra=None):
    """Nothing of the developer's own environment reaches the program."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    environment.update({k: os.environ[k] for k in SANITIZER_OPTIONS if k in os.environ})
    environment.update(extra or {})
    return environment


def run_program(*arguments, home, env=None, stdin=""):
    """Runs the program to its end and gives the finished process."""
    done = subprocess.run(
        [str(PROGRAM), *map(str, arguments)], env=clean_environment(home, env), input=stdin,
        capture_output=True, text=True, timeout=SECONDS_MAX, cwd=str(home))
    assert_no_report(done.stderr)
    return done


def refused_start(home, *flags, data_dir=None, listen="127.0.0.1:0", env=None):
    """Runs a `serve` that must not start; gives its exit code and its one sentence."""
    done = run_program("serve", "--listen", listen, "--data-dir", data_dir or home / "data", *flags,
                       home=home, env=env)
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    # What was logged on the way there does not count.
    sentences = [line for line in lines if not (
        line.startswith("{") and json.loads(line)["level"] in ("debug", "info", "warn"))]
    assert len(sentences) == 1, done.stderr
    return done.returncode, sentences[0]


def assert_no_report(stderr_text):
    for mark in SANITIZER_MARKS:
        assert mark not in stderr_text, stderr_text[-6000:]


class Gateway:
    def __init__(self, root, *, env=None, flags=(), listen="127.0.0.1:0", files_soft=None,
                 user=None, program=PROGRAM):
        self.root = pathlib.Path(root)
        self.data_dir = self.root / "data"
        # Stand-ins read and write marks in the directories of their tests, also from a jail, and
        # some are called by wrappers.
        self.env = {"CLAWDFORGE_JAIL_WRITE": f"{tempfile.gettempdir()},{self.root}",
                    "CLAWDFORGE_JAIL_READ": str(REPO / "tests" / "agents"), **(env or {})}
        self.flags = list(flags)
        self.listen = listen
        self.files_soft = files_soft
        self.user = user
        self.program = program
        self.stderr_file = self.root / "stderr.log"
        self.stderr_target = None  # a descriptor instead of the file
        self.pass_fds = ()
        self.process = None
        self.expected_exit = 0
        self.verify = True
        self._clients = []

    def start(self):
        self.spawn()
        return self.await_ready()

    def await_ready(self):
        self.scheme, self.host, port = READY.fullmatch(self._ready_line()).groups()
        self.port = int(port)
        self.url = f"{self.scheme}://{self.host}:{self.port}"
        return self

    def spawn(self):
        """Starts the process and does not wait until it is ready."""
        assert self.process is None, "already running"
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.stderr_file, "ab") as stderr:
            self.process = subprocess.Popen(
                [str(self.program), "serve", "--listen", self.listen,
                 "--data-dir", str(self.data_dir), *self.flags],
                env=clean_environment(self.root, self.env), cwd=str(self.root), user=self.user,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr if self.stderr_target is None else self.stderr_target,
                preexec_fn=self._limit_files if self.files_soft else None, pass_fds=self.pass_fds)

    def _limit_files(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.files_soft, hard))

    def _ready_line(self):
        line = b""
        end = time.monotonic() + SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    break
                piece = os.read(self.process.stdout.fileno(), 4096)
                if not piece:
                    break
                line += piece
        text = line.decode()
        if not READY.fullmatch(text):
            self.process.kill()
            code = self.process.wait()
            self.process = None
            raise AssertionError(f"no ready line but {text!r}, ended with {code}: {self.stderr()}")
        return text

    @property
    def admin_token(self):
        if "CLAWDFORGE_ADMIN_TOKEN" in self.env:
            return self.env["CLAWDFORGE_ADMIN_TOKEN"]
        return (self.data_dir / "admin-token").read_text().strip()

    @property
    def admin(self):
        return self.client(self.admin_token)

    def client(self, token=None, source=None):
        """An HTTP client; `source` is the loopback address it calls from."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.HTTPTransport(
            local_address=source, verify=self.verify if self.scheme == "https" else NO_TLS)
        client = httpx.Client(base_url=self.url, headers=headers, transport=transport,
                              timeout=SECONDS_MAX, trust_env=False)
        self._clients.append(client)
        return client

    def mint(self, name, **fields):
        """Mints a token and gives the whole answer."""
        with self.admin as admin:
            answer = admin.post("/admin/tokens", json={"name": name, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def whoami(self, token, source=None):
        """The status that /whoami gives to `token`, over a new connection."""
        with self.client(token, source) as client:
            return client.get("/whoami").status_code

    def stop(self, number=signal.SIGTERM):
        """Asks it to end and gives the exit code; the second of two stops does nothing."""
        if self.process is None:
            return self.expected_exit
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        self._close_clients()
        rest = self.process.stdout.read()
        code = self.process.wait(timeout=SECONDS_MAX)
        self.process = None
        assert rest == b"", f"more than the ready line on stdout: {rest!r}"
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None
        self._close_clients()

    def restart(self):
        assert self.stop() == 0, self.stderr()
        return self.start()

    def finish(self):
        """The end of a test: it must end as expected and must not have complained."""
        try:
            code = self.stop() if self.process else self.expected_exit
            assert code == self.expected_exit, f"ended with {code}: {self.stderr()}"
        finally:
            if self.process is not None:
                self.kill()
        self.remove_sockets()
        assert_no_report(self.stderr())

    def remove_sockets(self):
        """Where acpx has its sockets for this home, which is nowhere below it."""
        digits = hashlib.sha256(str(self.root).encode()).hexdigest()[:10]
        shutil.rmtree(f"/tmp/acpx-{digits}", ignore_errors=True)

    def _close_clients(self):
        for client in self._clients:
            client.close()
        self._clients = []

    def stderr(self):
        return self.stderr_file.read_text(errors="replace") if self.stderr_file.exists() else ""

    def log_lines(self):
        lines = [line for line in self.stderr().split("\n") if line.startswith("{")]
        return [json.loads(line) for line in lines if line.endswith("}")]

    def requests_logged(self):
        return [line for line in self.log_lines() if line.get("message") == "request"]
