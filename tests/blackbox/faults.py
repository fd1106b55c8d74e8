"""Makes the machine misbehave under a live gateway, and sees that the gateway is well afterwards.

A small library is preloaded into the gateway alone (tests/faults/shim.c): agents get no
LD_PRELOAD. It obeys a file that is mapped here and there; the places in it have one list."""
import contextlib
import mmap
import shutil
import struct
import subprocess

import pytest

from agents import (NUMBERS, assert_success, body_of, gauge, loud_skip, processes, rows, run_dirs)
from answers import ERROR_KEYS, header_of, status_of
from gateway import REPO, wait_until
from sessions import query, session_options, session_rows

PLACES = ("write_errno", "sync_millis", "hold", "held", "scope", "write_nth", "writes",
          "descriptor_nth", "descriptors", "fired", "clock_seconds", "spawn_errno", "open_errno",
          "signals_lost", "names_hold", "names_held")
LEDGER, UPLOADS = 1, 2
STALL_SECONDS = 10  # from then on a stuck disk answers everybody, and no queue is full
BROKEN_CODES = {"ledger_unavailable", "ledger_stalled", "no_resources", "workspace_unavailable",
                "disk_busy", "disk_full", "out_of_memory", "internal"}


class Faults:
    """The file that the preloaded library obeys: faults.spawn_errno = errno.EAGAIN."""

    def __init__(self, path):
        path.write_bytes(bytes(8 * len(PLACES)))
        path.chmod(0o666)
        with open(path, "r+b") as file:
            map_ = mmap.mmap(file.fileno(), 0)
        object.__setattr__(self, "map", map_)
        object.__setattr__(self, "path", path)

    def __getattr__(self, name):
        return struct.unpack_from("q", self.map, 8 * PLACES.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("q", self.map, 8 * PLACES.index(name), value)

    @contextlib.contextmanager
    def set(self, **values):
        """These, until the end of the block."""
        for name, value in values.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name in values:
                setattr(self, name, 0)

    def arm(self, kind, number):
        """The n-th of its kind fails once: "write" or "descriptor"."""
        self.fired = 0
        setattr(self, {"write": "writes", "descriptor": "descriptors"}[kind], 0)
        setattr(self, kind + "_nth", number)

    def disarm(self):
        """Whether it has happened."""
        self.write_nth = self.descriptor_nth = 0
        return bool(self.fired)


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """The library, built by whatever compiler there is."""
    compiler = next(filter(None, map(shutil.which, ("clang-19", "clang", "cc"))), None)
    if compiler is None:
        loud_skip("there is no C compiler for the library that makes faults")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    library.parent.chmod(0o755)
    done = subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library),
                           str(REPO / "tests" / "faults" / "shim.c"), "-ldl"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


@pytest.fixture
def new_faulty(new_gateway, tmp_path, shim):
    """Makes gateways with stand-in agents and gives them with their faults."""
    def make(more="", start=True, **settings):
        faults = Faults(tmp_path / f"control-{next(NUMBERS)}")
        options = session_options(tmp_path, more=more, **settings)
        options["env"] |= {"LD_PRELOAD": str(shim), "FAULTS_CONTROL": str(faults.path)}
        gateway = new_gateway(start=start, **options)
        gateway.faults = faults
        return gateway, faults
    return make


@pytest.fixture
def faulty(new_faulty):
    return new_faulty()


def assert_clear(answer, *codes):
    """A refusal of the 500s with a stable code, which says when to come back if it is a 503."""
    body = body_of(answer)
    assert 500 <= status_of(answer) < 600, body
    assert body["ok"] is False and ERROR_KEYS <= set(body), body
    assert body["code"] in (codes or BROKEN_CODES), body
    if status_of(answer) == 503:
        assert int(header_of(answer, "Retry-After")) >= 1, body
    return body["code"]


def is_ready(gateway):
    with gateway.client() as client:
        return client.get("/readyz").status_code == 200


def unready_code(gateway):
    with gateway.client() as client:
        answer = client.get("/readyz")
    return answer.json().get("code") if answer.status_code == 503 else None


def open_rows(gateway):
    """Rows of what still runs, by the ledger."""
    return ([row for row in rows(gateway) if row["ended_at"] is None]
            + query(gateway, "SELECT * FROM turns WHERE ended_at IS NULL"))


def assert_well(gateway, app, sessions=()):
    """A run and a turn work again, without a restart, and nothing is missing or left over but
    these sessions, which work as well."""
    wait_until(lambda: is_ready(gateway), "it is ready again")
    for session in sessions:
        # Its own last events may take a second longer to be written.
        wait_until(lambda session=session: session.turn({"text": "well"}).status_code == 200,
                   "a session that was there works")
    assert_success(app.run({"result": "well"}), "well")
    canary = app.session()
    assert canary.told({"text": "well"}) == "well"
    canary.close()
    assert gateway.admin.post("/admin/sweep").status_code == 200
    wait_until(lambda: not open_rows(gateway), "no row says that something runs")
    ids = sorted(session.id for session in sessions)
    opened = sorted(row["session_id"] for row in session_rows(gateway) if row["closed_at"] is None)
    assert opened == ids, "sessions without a caller who knows them, or lost ones"
    wait_until(lambda: gauge(gateway, "clawdforge_agents_running") == len(ids), "no place is lost")
    for name in ("runs_running", "runs_waiting", "agents_waiting", "ledger_queue_jobs"):
        wait_until(lambda name=name: gauge(gateway, "clawdforge_" + name) == 0, name + " is 0")
    if not ids:
        wait_until(lambda: not processes(gateway), "no child is alive")
    wait_until(lambda: not run_dirs(gateway), "no directory of a run is left")


def limit(gateway, name, value):
    """Sets a soft limit of the live process: "nofile", "as" or "nproc"; gives the one before. By
    its own user, who needs no privilege for that."""
    pid = str(gateway.process.pid)
    prlimit = ["prlimit", "--pid", pid, "--noheadings", "--raw", "--output=SOFT"]
    before = subprocess.run([*prlimit, f"--{name}"], user=gateway.user, check=True,
                            capture_output=True, text=True).stdout.strip()
    subprocess.run(["prlimit", "--pid", pid, f"--{name}={value}:"], user=gateway.user, check=True)
    return before
