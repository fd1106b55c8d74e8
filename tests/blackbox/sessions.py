"""Sessions with a stand-in agent: makes them, holds their turns, and sees what is left of them.

The stand-in is spoken to directly (kind "acp"), through a stand-in for acpx (kind "acpx"), or as
Claude's command line is (kind "claude"). A
file whose tests hold for both says KINDS = BOTH_KINDS; a test in it that holds for the first alone
has the mark only_acp."""
import contextlib
import json
import pathlib
import shlex
import sqlite3
import time

import pytest

from agents import (NUMBERS, App, body_of, fake_env, processes, processes_below, run_dirs)
from answers import assert_error, header_of, status_of
from gateway import REPO, SECONDS_MAX, Gateway, wait_until
from wire import Wire, bearer, with_body

FAKE_ACP = REPO / "tests" / "agents" / "fake_acp"
FAKE_CLAUDE_STREAM = REPO / "tests" / "agents" / "fake_claude_stream"
FAKE_ACPX = REPO / "tests" / "agents" / "fake_acpx"
FAKE_ACP_VERSION = "1.2.3"
BOTH_KINDS = ("acp", "acpx")
only_acp = pytest.mark.kinds("acp")
LINE_BYTES_MAX = 32 * 1024 * 1024

TURN_KEYS = {"ok", "session_id", "turn_index", "events", "text", "stop_reason", "duration_ms",
             "usage", "cost_usd"}
TURN_FAILURE_KEYS = {"ok", "error", "stderr", "duration_ms", "stop_reason", "code", "detail",
                     "request_id", "session_id", "turn_index", "events"}
STATE_KEYS = {"session_id", "agent", "model", "app_name", "created_at", "last_turn_at", "closed_at",
              "close_reason", "turn_count", "live", "busy", "meta", "usage", "cost_usd", "last_event_id",
              "title", "permission_mode", "effort", "turns_waiting", "questions_open", "turn_started_at",
              "context", "agent_version", "delete_at"}
USAGE_KEYS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}

# Agents that every gateway of these tests has, by the flags of the stand-in.
USUAL_AGENTS = {"fake": [], "resume": ["--resume"], "no-load": ["--no-load"],
                "load-gone": ["--load-gone"]}


# What the stand-in can be held to: it asks before it does anything. acpx asks no app.
HELD_MODES = {"acp": ["deny_all", "approve_reads", "ask", "approve_all"],
              "acpx": ["deny_all", "approve_reads", "approve_all"]}


def modes_line(kind):
    """Claude's own switches hold it."""
    return "" if kind == "claude" else held(kind)


def held(kind="acp"):
    """The line of a table that says so."""
    return f"permission_modes = {json.dumps(HELD_MODES[kind])}\n"


def agent_table(name, flags, kind="acp", **keys):
    """One [agents.NAME]; a JSON text or list of texts is TOML as well."""
    command = [str(FAKE_ACP), *map(str, flags)]
    lines = [f"[agents.{name}]", modes_line(kind)]
    if kind == "acpx":
        command = ["--agent", shlex.join(command)]
        lines.append('protocol = "acpx"')
    if kind == "claude":
        command[0] = str(FAKE_CLAUDE_STREAM)
        lines.append('protocol = "claude"')
    lines.append(f"command = {json.dumps(command)}")
    return "\n".join(lines + [f"{key} = {value}" for key, value in keys.items()]) + "\n"


def config_with(place, agents, more="", kind="acp"):
    """A file with these agents in it."""
    path = place / f"config-{next(NUMBERS)}.toml"
    tables = [agent_table(name, flags, kind) for name, flags in agents.items()]
    path.write_text("\n".join(tables) + more)
    return path


def session_options(place, agents=None, more="", kind="acp", **settings):
    """What makes a gateway one with stand-in agents; settings go by their TOML names."""
    path = config_with(place, {**USUAL_AGENTS, **(agents or {})}, more, kind)
    return {"env": fake_env(**{"acpx_bin": FAKE_ACPX, **settings}), "flags": ["--config", str(path)]}


@contextlib.contextmanager
def session_gateway(place, agents=None, more="", **settings):
    """A gateway of a test file; it must leave no process behind."""
    options = session_options(place, agents, more, **{"max_live_sessions": 500, **settings})
    gateway = Gateway(place / "gateway", **options).start()
    try:
        yield gateway
        gateway.finish()
    finally:
        if gateway.process is not None:
            gateway.kill()
    assert not processes_below(gateway.root), "something outlived its gateway"


class Talker(App):
    """A caller who has sessions."""

    def create(self, agent="fake", **fields):
        return self.client().post("/sessions", json={"agent": agent, **fields})

    def session(self, agent="fake", **fields):
        """A new session that works."""
        return Session(self, assert_created(self.create(agent, **fields))["session_id"])

    def get(self, path, **parameters):
        return self.client().get(path, params=parameters)

    def list(self, **parameters):
        """One page of the caller's sessions, in the promised shape."""
        answer = self.get("/sessions", **parameters)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert set(body) == {"sessions", "count", "next_cursor"}
        assert body["count"] == len(body["sessions"])
        assert all(set(state) == STATE_KEYS for state in body["sessions"])
        return body

    def ids(self, **parameters):
        return [state["session_id"] for state in self.list(**parameters)["sessions"]]


def as_prompt(steps):
    """A text is a prompt itself; steps are a script for the stand-in."""
    return steps[0] if len(steps) == 1 and isinstance(steps[0], str) else json.dumps(list(steps))


class Session:
    def __init__(self, app, session_id):
        self.app = app
        self.id = session_id
        self.path = f"/sessions/{session_id}"

    def turn(self, *steps, **fields):
        """Asks and waits for the answer, whatever it is."""
        body = {"prompt": as_prompt(steps), **fields}
        return self.app.client().post(self.path + "/turn", json=body)

    def ask(self, *steps, **fields):
        """A turn that goes well; gives its body."""
        return assert_turn(self.turn(*steps, **fields))

    def told(self, *steps, **fields):
        """The text of a turn that goes well."""
        return self.ask(*steps, **fields)["text"]

    def report(self, what):
        return json.loads(self.told({"report": what}))

    def send(self, *steps, **fields):
        """Asks, and gives the connection on which the answer will come."""
        body = json.dumps({"prompt": as_prompt(steps), **fields}).encode()
        wire = Wire(self.app.gateway)
        wire.send(with_body(f"POST {self.path}/turn", body, bearer(self.app.token)))
        return wire

    def hold(self, place, *steps, **fields):
        return HeldTurn(self, place, steps, fields)

    def state(self):
        answer = self.app.get(self.path)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == STATE_KEYS
        return answer.json()

    def close(self):
        answer = self.app.client().delete(self.path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def row(self):
        found = [row for row in session_rows(self.app.gateway) if row["session_id"] == self.id]
        return found[0] if found else None

    def work(self):
        """Its working directory."""
        return self.app.gateway.data_dir / "sessions" / self.id / "work"

    def processes(self):
        """Those that work for it, by the ids that the machine has for them."""
        return processes_below(self.work())

    def pid(self):
        """The agent's own process; none while it sleeps."""
        found = [pid for pid in self.processes() if is_agent(pid)]
        assert len(found) <= 1, found
        return min(found, default=None)


def command_line(pid):
    """Its words, each followed by a zero byte; empty if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_agent(pid):
    """Not a child of it, nor what drives it."""
    words = command_line(pid).split(b"\0")[:3]
    return any(str(program).encode() in words for program in (FAKE_ACP, FAKE_CLAUDE_STREAM))


class HeldTurn:
    """A turn that goes on, once it has begun, until it is let go."""

    def __init__(self, session, place, steps, fields):
        number = next(NUMBERS)
        self.session = session
        self.name = f"turn-{number}"
        self.gate = place / f"gate-{number}"
        self.mark = place / f"begun-{number}"
        self.wire = session.send({"touch": str(self.mark)}, *steps, {"wait_for": str(self.gate)},
                                 {"text": self.name}, **fields)

    def has_begun(self):
        return self.mark.exists()

    def begun(self):
        wait_until(self.has_begun, "the turn begins")
        return self

    def answer(self):
        return self.wire.read()

    def let_go(self):
        self.gate.touch()

    def end(self):
        """Lets it go and gives its answer."""
        self.let_go()
        return self.answer()

    def hang_up(self):
        self.wire.socket.close()


# What an answer looks like

def assert_created(answer):
    assert answer.status_code == 200, answer.text
    body = answer.json()
    keys = {"ok", "session_id", "agent", "model", "created_at"}
    if "workspace" in body:
        keys |= {"workspace", "workspace_mode"} | ({"branch"} & set(body))
    assert set(body) == keys
    assert body["ok"] is True
    assert abs(body["created_at"] - time.time()) < 2 * SECONDS_MAX
    return body


def assert_turn(answer, resumed=...):
    """A turn that went well, with exactly the promised body."""
    body = body_of(answer)
    assert status_of(answer) == 200, str(body)[:2000]
    assert header_of(answer, "Content-Type") == "application/json"
    assert set(body) - {"resumed", "text_truncated", "events_truncated"} == TURN_KEYS
    assert body["ok"] is True
    assert isinstance(body["duration_ms"], int) and body["duration_ms"] >= 0
    assert body["usage"] is None or set(body["usage"]) == USAGE_KEYS
    assert resumed is ... or body.get("resumed") is resumed
    return body


def assert_turn_failure(answer, status, code, resumed=...):
    body = body_of(answer)
    assert (status_of(answer), body.get("code")) == (status, code), str(body)[:2000]
    assert header_of(answer, "Content-Type") == "application/json"
    assert set(body) - {"resumed", "events_truncated"} == TURN_FAILURE_KEYS
    assert body["ok"] is False
    assert body["error"] and body["detail"] == body["error"] and len(body["error"]) <= 500
    assert isinstance(body["duration_ms"], int) and body["duration_ms"] >= 0
    assert body["request_id"] == header_of(answer, "X-Request-Id")
    assert isinstance(body["events"], list) and isinstance(body["turn_index"], int)
    assert resumed is ... or body.get("resumed") is resumed
    return body


def texts_of(events):
    """The message pieces among raw events, in either nesting."""
    found = []
    for event in events:
        params = event.get("params", {})
        update = params.get("update", params)
        if update.get("sessionUpdate") == "agent_message_chunk":
            found.append(update["content"]["text"])
    return found


# What the ledger knows

def query(gateway, statement, *values):
    with contextlib.closing(
            sqlite3.connect(f"file:{gateway.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute(statement, values)]


def change(gateway, statement, *values):
    """As another program would."""
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10,
                                            isolation_level=None)) as ledger:
        return ledger.execute(statement, values).rowcount


def session_rows(gateway):
    return query(gateway, "SELECT * FROM sessions ORDER BY rowid")


def turn_rows(gateway, session):
    return query(gateway, "SELECT * FROM turns WHERE session_id = ? ORDER BY turn_index",
                 session.id)


def audit(gateway, session):
    """The names of a session's events, the oldest first."""
    return [row["event"] for row in query(
        gateway, "SELECT event FROM session_events WHERE session_id = ? ORDER BY event_id",
        session.id)]


def journal_blocks(gateway, session):
    """The rows of a session's journal, each with its lines; what is too large for one is in parts."""
    for row in query(gateway, "SELECT * FROM journal WHERE session_id = ? ORDER BY first_event_id",
                     session.id):
        parts = query(gateway, "SELECT lines FROM journal_parts WHERE session_id = ? "
                      "AND first_event_id = ? ORDER BY part", session.id, row["first_event_id"])
        yield row, row["events"] or "".join(part["lines"] for part in parts)


def journal(gateway, session):
    """All events of a session, as they are kept; they must be numbered without a gap."""
    events = []
    for row, text in journal_blocks(gateway, session):
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["id"] for line in lines] == list(
            range(row["first_event_id"], row["last_event_id"] + 1))
        assert {line["turn_index"] for line in lines} == {row["turn_index"]}
        assert row["bytes"] == len(text.encode())
        events += lines
    assert not events or [event["id"] for event in events] == list(
        range(events[0]["id"], events[0]["id"] + len(events)))
    return events


def sweep(gateway):
    """The counts of a sweep, in the promised shape."""
    answer = gateway.admin.post("/admin/sweep")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"ok", "soft_closed", "hard_deleted", "files_deleted"}
    assert body["ok"] is True
    return body["soft_closed"], body["hard_deleted"]


# What is left

def session_dirs(gateway):
    return sorted(path.name for path in (gateway.data_dir / "sessions").iterdir())


def assert_no_process_left(gateway):
    wait_until(lambda: not processes(gateway), "all processes are gone")
    assert not run_dirs(gateway)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_same_refusal(answers, status, code):
    """All are this error, byte for byte the same but for the request's id."""
    bodies = set()
    for answer in answers:
        body = assert_error(answer, status, code)
        bodies.add(answer.content.replace(body["request_id"].encode(), b""))
    assert len(bodies) == 1, bodies


@pytest.fixture(scope="module")
def forge(tmp_path_factory, agent_kind):
    """One gateway for the tests of a file that leave it as it was."""
    with session_gateway(tmp_path_factory.mktemp("sessions"), kind=agent_kind) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def app(forge):
    return Talker(forge)


@pytest.fixture
def new_forge(new_gateway, tmp_path, agent_kind):
    """Makes gateways with stand-in agents that end, and are checked, with the test."""
    def make(agents=None, more="", start=True, **settings):
        options = session_options(tmp_path, agents, more, **{"kind": agent_kind, **settings})
        return new_gateway(start=start, **options)
    return make
