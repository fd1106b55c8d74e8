"""The real program, the real Claude command line, and a stand-in for the model's API.

CLAWDFORGE_REAL_CLAUDE names the command line; `./test real` installs it. Every test has a
gateway, a home directory and a data directory of its own, and ends with nothing left.
"""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from gateway import PROGRAM, REPO, Gateway, wait_until  # noqa: E402
from model_api import ModelApi  # noqa: E402

CLAUDE = REPO / os.environ.get("CLAWDFORGE_REAL_CLAUDE", "build/real/node_modules/.bin/claude")
API_KEY = "sk-ant-api03-not-a-real-key-0123456789"
ANSWER_SECONDS_MAX = 150.0


def pytest_collection_modifyitems(config, items):
    for file in (PROGRAM, CLAUDE):
        if not file.exists():
            raise pytest.UsageError(f"{file} is not there: ./test real builds and installs it")
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(240))


def processes_of(root, but=()):
    """Living processes that work below `root`, or were told of it: pid and command line."""
    root = str(root)
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in (*but, os.getpid()):
            continue
        try:
            where = os.readlink(entry / "cwd")
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended, or it is a zombie
        if where.startswith(root) or root.encode() in told:
            found[int(entry.name)] = command
    return found


def processes_with(word):
    """Living processes with `word` in their command line."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, NotADirectoryError):
            continue
        if entry.name.isdigit() and word in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found


class House:
    """One gateway with the real command line behind it, and one app that calls it."""

    def __init__(self, gateway, api):
        self.gateway = gateway
        self.api = api
        self.home = gateway.root
        self.token = gateway.mint("app")["token"]
        self.client = gateway.client(self.token)
        self.client.timeout = ANSWER_SECONDS_MAX

    def run(self, prompt, **fields):
        return self.client.post("/run", json={"prompt": prompt, **fields})

    def upload(self, name, content):
        answer = self.client.post("/files", files={"file": (name, content)})
        assert answer.status_code == 200, answer.text
        return answer.json()["file_token"]

    def processes(self):
        """All but the gateway itself."""
        return processes_of(self.gateway.root, but=(self.gateway.process.pid,))

    def assert_nothing_left(self):
        wait_until(lambda: not self.processes(), "no process of a run is left")
        runs = self.gateway.data_dir / "runs"
        wait_until(lambda: not runs.exists() or not list(runs.iterdir()),
                   "no directory of a run is left")


@pytest.fixture(scope="session")
def shared_api(tmp_path_factory):
    api = ModelApi(tmp_path_factory.mktemp("model-api")).start()
    yield api
    api.stop()


@pytest.fixture
def api(shared_api):
    """The model's API, as if it had just been started."""
    shared_api.reset()
    return shared_api


@pytest.fixture
def new_house(tmp_path, api):
    """Makes houses; each is checked, and its gateway stopped, at the end of the test."""
    made = []

    def make(**env):
        number = len(made)
        surroundings = {"CLAWDFORGE_CLAUDE_BIN": str(CLAUDE), "ANTHROPIC_BASE_URL": api.url,
                        "ANTHROPIC_API_KEY": API_KEY}
        surroundings.update(env)
        environment = {name: value for name, value in surroundings.items() if value is not None}
        gateway = Gateway(tmp_path / f"house-{number}", env=environment)
        made.append(gateway)
        return House(gateway.start(), api)

    yield make
    failures = []
    for gateway in made:
        try:
            if gateway.process is not None:
                wait_until(lambda g=gateway: not processes_of(g.root, but=(g.process.pid,)),
                           "no process of a run is left")
            gateway.finish()
            left = processes_of(gateway.root)
            assert not left, left
            runs = gateway.data_dir / "runs"
            assert not runs.exists() or not list(runs.iterdir()), list(runs.iterdir())
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


@pytest.fixture
def house(new_house):
    return new_house()


@pytest.fixture(scope="session", autouse=True)
def the_version_is_the_pinned_one():
    """What these tests show, they show of this version."""
    done = subprocess.run([str(CLAUDE), "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "2.1.325 (Claude Code)", done
