"""The real program, the real Claude command line, and a stand-in for the model's API.

CLAWDFORGE_REAL_CLAUDE names the command line; `./test real` installs it, and the other agents. The
adapter that sessions need is installed by the first test that asks for it, if it is absent. Every test has a
gateway, a home directory and a data directory of its own, and ends with nothing left.
"""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from gateway import PROGRAM, REPO, Gateway, wait_until  # noqa: E402
from model_api import ModelApi  # noqa: E402

CLAUDE = REPO / os.environ.get("CLAWDFORGE_REAL_CLAUDE", "build/real/node_modules/.bin/claude")
ADAPTER_PACKAGE = "@agentclientprotocol/claude-agent-acp"
ADAPTER_VERSION = "0.99.1"
REAL = REPO / "build" / "real"
ADAPTER = REAL / "node_modules" / ".bin" / "claude-agent-acp"
INSTALL_SECONDS_MAX = 900
API_KEY = "sk-ant-api03-not-a-real-key-0123456789"
ANSWER_SECONDS_MAX = 150.0


def pytest_configure(config):
    config.addinivalue_line("markers", "kinds(...): see tests/blackbox/conftest.py")


def pytest_collection_modifyitems(config, items):
    for file in (PROGRAM, CLAUDE):
        if not file.exists():
            raise pytest.UsageError(f"{file} is not there: ./test real builds and installs it")
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(240))


def pytest_terminal_summary(terminalreporter):
    """What was skipped is said aloud, with its cause."""
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.setdefault(reason, []).append(report.nodeid)
    for reason, tests in reasons.items():
        terminalreporter.write_line(f"SKIPPED: {len(tests)} of the tests in tests/real: {reason}")


def adapter_version():
    """What the installed adapter calls its version; empty: it is not there, or does not run."""
    try:
        done = subprocess.run([str(ADAPTER), "--version"], capture_output=True, text=True,
                              timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def install_adapter():
    """Installs the pinned adapter beside the command line. Gives why that failed, or nothing."""
    if shutil.which("npm") is None:
        return "there is no npm"
    log = REAL / "npm-adapter.log"
    with open(log, "wb") as output:
        try:
            done = subprocess.run(
                ["npm", "install", "--prefix", str(REAL), "--no-audit", "--no-fund",
                 "--save-exact", f"{ADAPTER_PACKAGE}@{ADAPTER_VERSION}"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                timeout=INSTALL_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return f"npm did not install it within {INSTALL_SECONDS_MAX} seconds"
    if done.returncode != 0:
        lines = log.read_text(errors="replace").splitlines() or [""]
        errors = [line for line in lines if line.startswith(("npm error", "npm ERR"))]
        return f"npm could not install it: {(errors or lines[-1:])[0]}"
    version = adapter_version()
    return "" if version == ADAPTER_VERSION else f"it was installed but says {version!r}"


@pytest.fixture(scope="session")
def adapter():
    """The real adapter; without a network, all that needs it is skipped."""
    with open(REAL / "adapter.lock", "w") as lock:  # one of several workers installs
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = "" if adapter_version() == ADAPTER_VERSION else install_adapter()
    if reason:
        pytest.skip(f"{ADAPTER_PACKAGE} {ADAPTER_VERSION}: {reason}")
    return ADAPTER


def installed(package, version):
    """Why the package is not there in this version; empty: it is. `./test real` installs it."""
    about = REAL / "node_modules" / package / "package.json"
    found = json.loads(about.read_text())["version"] if about.exists() else None
    return "" if found == version else f"{package} {version} is not installed (found: {found})"


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


class RealGateway:
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

    def talk(self, **fields):
        """A new session."""
        return Talk(self, **fields)

    def processes(self):
        """All but the gateway itself."""
        return processes_of(self.gateway.root, but=(self.gateway.process.pid,))

    def assert_nothing_left(self):
        wait_until(lambda: not self.processes(), "no process of a run is left")
        runs = self.gateway.data_dir / "runs"
        wait_until(lambda: not runs.exists() or not list(runs.iterdir()),
                   "no directory of a run is left")


class Talk:
    """One session of the app, and what is said in it."""

    def __init__(self, house, **fields):
        self.house = house
        answer = house.client.post("/sessions", json=fields)
        assert answer.status_code == 200, answer.text
        self.created = answer.json()
        self.id = self.created["session_id"]

    def turn(self, prompt, **fields):
        return self.house.client.post(f"/sessions/{self.id}/turn", json={"prompt": prompt, **fields})

    def say(self, prompt, **fields):
        """A turn that must go well; gives its body."""
        answer = self.turn(prompt, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def state(self):
        answer = self.house.client.get(f"/sessions/{self.id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self):
        answer = self.house.client.delete(f"/sessions/{self.id}")
        assert answer.status_code == 200, answer.text
        return answer.json()


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

    def make(may_hold_agents=False, **env):
        """Agents that live on between turns are ended by the gateway's own end."""
        number = len(made)
        # Most tests count processes: spares are for those that ask for them.
        surroundings = {"CLAWDFORGE_CLAUDE_BIN": str(CLAUDE), "CLAWDFORGE_WARM": "off",
                        "ANTHROPIC_BASE_URL": api.url,
                        "ANTHROPIC_API_KEY": API_KEY}
        surroundings.update(env)
        environment = {name: value for name, value in surroundings.items() if value is not None}
        gateway = Gateway(tmp_path / f"house-{number}", env=environment)
        made.append((gateway, may_hold_agents))
        return RealGateway(gateway.start(), api)

    yield make
    failures = []
    for gateway, may_hold_agents in made:
        try:
            if gateway.process is not None and not may_hold_agents:
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


@pytest.fixture(params=["claude", "acp"])
def new_parlour(request, new_house, adapter, tmp_path):
    """Makes houses in which sessions are held with the real command line, spoken to by the gateway
    itself, or with the real adapter, found in PATH."""
    def make(**env):
        file = tmp_path / "parlour.toml"
        file.write_text(f'[agents.claude]\nprotocol = "{request.param}"\n')
        path = f"{adapter.parent}:/usr/bin:/bin"
        house = new_house(may_hold_agents=True, **{"PATH": path, "CLAWDFORGE_CONFIG": str(file),
                                                   **env})
        house.protocol = request.param
        return house

    return make


@pytest.fixture
def parlour(new_parlour):
    return new_parlour()


@pytest.fixture(scope="session", autouse=True)
def the_version_is_the_pinned_one():
    """What these tests show, they show of this version."""
    done = subprocess.run([str(CLAUDE), "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "2.1.325 (Claude Code)", done
