"""What one caller or one agent may make the gateway hold and do: bytes in memory, requests and bytes
a second, chunks, values of a JSON text, events of a session. Whatever is refused has a code and says
when to come again, and other apps do not notice."""
import contextlib
import json
import sqlite3
import threading

import pytest

from agents import App, gauge
from answers import assert_error, header_of
from gateway import SANITIZED, wait_until
from sessions import Talker, assert_turn_failure, new_forge, only_acp
from streams import tail
from wire import Wire, bearer, request, with_body

__all__ = ["new_forge"]  # a fixture
KIB = 1024
MIB = 1024 * KIB


def settings(**values):
    return {f"CLAWDFORGE_{name.upper()}": str(value) for name, value in values.items()}


def resident_bytes(gateway):
    with open(f"/proc/{gateway.process.pid}/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmRSS"].split()[0]) * KIB


def assert_wait(answer, status, code):
    """A refusal that ends by itself."""
    assert_error(answer, status, code)
    assert int(header_of(answer, "Retry-After")) >= 1


# Rates

def test_an_app_that_asks_too_fast_waits_and_another_does_not(new_gateway):
    gateway = new_gateway(env=settings(max_requests_per_sec_per_app=1))
    greedy, modest = App(gateway, "greedy"), App(gateway, "modest")
    with Wire(gateway) as wire:
        ask = request("GET /whoami", bearer(greedy.token))
        answers = [wire.ask(ask) for _ in range(2)]
        assert [answer.status for answer in answers] == [200, 200], "a burst of two seconds"
    refused = wait_until(lambda: next((answer for answer in (
        greedy.client().get("/whoami") for _ in range(20)) if answer.status_code == 429), None),
        "it is refused")
    assert_wait(refused, 429, "too_many_requests")
    assert modest.client().get("/whoami").status_code == 200
    assert gauge(gateway, "clawdforge_http_rate_refused_total") >= 1


@pytest.mark.parametrize("ask, status", [
    (request("GET /nothing"), 404), (request("GET /whoami", bearer("cf_" + "A" * 43)), 401)])
def test_what_is_refused_counts_for_its_address(new_gateway, ask, status):
    gateway = new_gateway(env=settings(max_requests_per_sec_per_address=1))
    seen = set()

    def is_over():
        with Wire(gateway) as wire:
            for _ in range(20):  # loopback has twenty times the allowance
                answer = wire.ask(ask)
                if answer is None:
                    break
                seen.add((answer.status, answer.json()["code"]))
        return (429, "too_many_requests") in seen
    wait_until(is_over, "the address has had enough")
    assert any(found == status for found, _ in seen)


def test_bytes_that_come_too_fast_make_their_app_wait(new_gateway):
    gateway = new_gateway(env=settings(max_bytes_per_sec_per_app=1024))
    greedy, modest = App(gateway, "greedy"), App(gateway, "modest")
    assert greedy.post({"agent": "demo", "prompt": "x" * 20_000}).status_code == 200
    assert_wait(greedy.client().get("/whoami"), 429, "too_many_requests")
    assert modest.client().get("/whoami").status_code == 200


# Bodies

def chunks_of(size, count):
    return (b"%x\r\n%s\r\n" % (size, b" " * size)) * count


def test_a_body_of_tiny_chunks_is_refused_soon(gateway):
    app = App(gateway)
    with Wire(gateway) as wire:
        wire.send(request("POST /run", bearer(app.token), "Transfer-Encoding: chunked"))
        wire.send(chunks_of(1, 40_000))
        assert_error(wire.read(), 400, "chunks_too_small")


def test_a_body_of_small_chunks_is_taken(gateway):
    app = App(gateway)
    body = json.dumps({"agent": "demo", "prompt": "echo " + "x" * 3_000}).encode()
    with Wire(gateway) as wire:
        wire.send(request("POST /run", bearer(app.token), "Transfer-Encoding: chunked"))
        wire.send(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        assert wire.read().status == 200


@pytest.mark.parametrize("value", [b"[],", b"0,", b'{"a":0},'])
def test_a_body_of_many_values_is_refused_before_it_is_built(gateway, value):
    app = App(gateway)
    before = resident_bytes(gateway)
    text = b'{"agent":"demo","prompt":"x","meta":[' + value * (12 * MIB // len(value)) + b"0]}"
    assert_error(app.client().post("/run", content=text), 400, "bad_json")
    assert resident_bytes(gateway) - before < 100 * MIB


@contextlib.contextmanager
def half_body(gateway, app, announced, sent=1):
    """A request whose body does not come to its end."""
    with Wire(gateway) as wire:
        wire.send(request("POST /run", bearer(app.token), f"Content-Length: {announced}",
                          body=b"x" * sent))
        yield wire


MEMORY = settings(max_body_bytes=256 * KIB, memory_budget_bytes=MIB,
                  memory_budget_bytes_per_app=300 * KIB)


def held(gateway):
    return gauge(gateway, "clawdforge_memory_held_bytes")


def test_an_app_holds_its_share_of_memory_in_bodies_and_no_more(new_gateway):
    gateway = new_gateway(env=MEMORY)
    greedy, modest = App(gateway, "greedy"), App(gateway, "modest")
    large = {"agent": "demo", "prompt": "x" * 100_000}
    with half_body(gateway, greedy, 250 * KIB), half_body(gateway, greedy, 100 * KIB):
        wait_until(lambda: held(gateway) == 350 * KIB, "its bodies have their place")
        with half_body(gateway, greedy, 100 * KIB) as third:
            assert_wait(third.read(), 429, "too_many_bytes")
        assert greedy.client().get("/whoami").status_code == 200, "what is small is not counted"
        assert modest.post(large).status_code == 200
    wait_until(lambda: held(gateway) == 0, "it is given back")
    assert greedy.post(large).status_code == 200


def test_all_apps_together_hold_the_budget_and_no_more(new_gateway):
    gateway = new_gateway(env=MEMORY)
    with contextlib.ExitStack() as bodies:
        for number in range(4):
            bodies.enter_context(half_body(gateway, App(gateway, f"app-{number}"), 250 * KIB))
        wait_until(lambda: held(gateway) == 4 * 250 * KIB, "all have their place")
        with half_body(gateway, App(gateway, "late"), 100 * KIB) as late:
            assert_wait(late.read(), 503, "memory_budget")
    wait_until(lambda: held(gateway) == 0, "it is given back")
    assert gauge(gateway, "clawdforge_memory_refused_total") == 1


def test_a_chunked_body_is_counted_as_it_grows(new_gateway):
    gateway = new_gateway(env=MEMORY)
    app = App(gateway)
    with half_body(gateway, app, 250 * KIB), half_body(gateway, app, 200 * KIB):
        wait_until(lambda: held(gateway) == 450 * KIB, "its bodies have their place")
        with Wire(gateway) as wire:
            wire.send(request("POST /run", bearer(app.token), "Transfer-Encoding: chunked"))
            wire.send(chunks_of(1024, 200))
            assert_wait(wire.read(), 429, "too_many_bytes")


# Answers and streams

def test_answers_that_are_not_read_have_a_bound(new_forge):
    gateway = new_forge(memory_budget_bytes=32 * MIB, memory_budget_bytes_per_app=8 * MIB)
    session = Talker(gateway).session()
    session.ask({"flood": 16, "piece_bytes": 200_000}, {"text": "end"})  # 3 MB
    ask = request(f"GET {session.path}/events?limit=1000", bearer(session.app.token))
    with contextlib.ExitStack() as readers:
        wires = [readers.enter_context(Wire(gateway, receive_bytes=4096)) for _ in range(8)]
        for wire in wires:
            wire.send(ask)
        wait_until(lambda: gauge(gateway, "clawdforge_memory_refused_total") > 0, "some are refused")
        assert held(gateway) <= 16 * MIB
        codes = {wire.read().status for wire in wires}
        assert codes == {200, 429}
    wait_until(lambda: held(gateway) == 0, "it is given back")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for a while")
@only_acp
def test_a_large_event_is_not_copied_for_each_reader(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    streams = [tail(session, buffer_bytes=4096) for _ in range(12)]
    session.ask("hello")
    before = resident_bytes(gateway)
    session.ask({"big_line": 12 * MIB})
    wait_until(lambda: gauge(gateway, "clawdforge_event_readers") <= 12, "all have it")
    assert resident_bytes(gateway) - before < 8 * 12 * MIB, "twelve copies would be more"
    for stream in streams:
        stream.close()


@only_acp
def test_events_that_stalled_readers_hold_are_counted_once_and_given_back(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    with contextlib.ExitStack() as streams:
        for _ in range(12):
            streams.enter_context(contextlib.closing(tail(session, buffer_bytes=4096)))
        session.ask({"big_line": 8 * MIB})
        wait_until(lambda: 8 * MIB < held(gateway) < 10 * MIB, "they share one event")
    wait_until(lambda: held(gateway) == 0, "it is given back")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for a while")
@only_acp
def test_readers_that_each_stall_at_another_event_stay_within_the_budget(new_forge):
    """Each of them holds an event that no other one has: ten would be 150 MiB."""
    gateway = new_forge(memory_budget_bytes=32 * MIB)
    app = Talker(gateway)
    sessions = [app.session() for _ in range(10)]
    with contextlib.ExitStack() as stack, PeakOfMemory(gateway) as peak:
        for session in sessions:
            stack.enter_context(contextlib.closing(tail(session, buffer_bytes=4096)))
        turns = [stack.enter_context(session.send({"big_line": 15 * MIB}, timeout_secs=10))
                 for session in sessions]
        codes = [turn.read().status for turn in turns]
        assert held(gateway) <= 16 * MIB
    assert set(codes) <= {200, 429, 504}, "an answer needs memory, too"
    assert peak.bytes < 120 * MIB
    wait_until(lambda: held(gateway) == 0, "all is given back")
    assert sessions[0].told("hello") == "echo: hello"


# What an agent says

@only_acp
def test_a_large_message_is_read_apart_and_stays_in_its_place(new_forge):
    session = Talker(new_forge()).session()
    answer = session.ask({"text": "before"}, {"big_line": 4 * MIB}, {"text": "after"})
    pieces = [event["params"]["update"]["content"]["text"] for event in answer["events"]
              if "params" in event]
    assert [pieces[0], pieces[-1]] == ["before", "after"]
    assert len(pieces[1]) > 3 * MIB


def parts(gateway):
    """How many parts of large events the ledger has, and the size of the largest."""
    with sqlite3.connect(gateway.data_dir / "clawdforge.db") as ledger:
        return ledger.execute("SELECT COUNT(*), COALESCE(MAX(LENGTH(CAST(lines AS BLOB))), 0) "
                              "FROM journal_parts").fetchone()


@only_acp
def test_a_large_message_is_kept_in_parts_and_read_back_whole(new_forge):
    gateway = new_forge(journal_max_bytes_per_session=6 * MIB, sweep_interval_secs=86_400)
    session = Talker(gateway).session()
    answer = session.ask({"text": "before"}, {"big_line": 4 * MIB}, {"text": "after"})
    count, largest = parts(gateway)
    assert count >= 16 and largest <= 256 * KIB
    gateway.restart()
    first, large, last = [event for event in answer["events"] if "params" in event]
    page = session.app.get(session.path + "/events", after=1, limit=2).json()
    assert [event["data"] for event in page["events"]] == [first, large]
    page = session.app.get(session.path + "/events", after=3, limit=1).json()
    assert [event["data"] for event in page["events"]] == [last]
    for _ in range(3):
        session.ask({"big_line": 4 * MIB})
    assert parts(gateway)[0] < 3 * count, "those of events that are gone go, too"


@only_acp
def test_a_message_for_which_there_is_no_memory_ends_its_agent(new_forge):
    gateway = new_forge(max_body_bytes=64 * KIB, memory_budget_bytes=4 * MIB)
    session = Talker(gateway).session()
    assert_turn_failure(session.turn({"big_line": 8 * MIB}), 429, "too_many_bytes")
    assert session.told("hello") == "echo: hello", "it wakes again"
    wait_until(lambda: held(gateway) == 0, "it is given back")


@only_acp
def test_a_question_with_an_endless_id_is_nonsense(new_forge):
    session = Talker(new_forge()).session()
    ask = {"jsonrpc": "2.0", "id": "i" * 5_000, "method": "session/request_permission",
           "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}}
    assert_turn_failure(session.turn({"raw": json.dumps(ask)}), 502, "agent_nonsense")


@only_acp
def test_the_audit_keeps_no_endless_words_of_an_agent(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    session.ask({"permission": {"kind": "k" * 100_000, "title": "t" * 100_000}})
    with sqlite3.connect(gateway.data_dir / "clawdforge.db") as ledger:
        longest = ledger.execute("SELECT MAX(LENGTH(meta)) FROM session_events").fetchone()[0]
    assert longest < 2_000


def journal_bytes(gateway):
    with sqlite3.connect(gateway.data_dir / "clawdforge.db") as ledger:
        return ledger.execute("SELECT COALESCE(SUM(bytes), 0) FROM journal").fetchone()[0]


def test_a_journal_keeps_its_bound_while_it_is_written(new_forge):
    gateway = new_forge(journal_max_bytes_per_session=2 * MIB, sweep_interval_secs=86_400)
    session = Talker(gateway).session()
    session.ask({"flood": 2_000, "piece_bytes": 10_000}, {"text": "end"})  # 20 MB
    assert journal_bytes(gateway) <= 5 * MIB, "no sweep has come"
    page = session.app.get(session.path + "/events", after=0, limit=1)
    assert page.json()["gap"]["from"] == 1, "what is gone is told"
    with tail(session, after=0) as stream:
        first = stream.expect()
        assert first.name == "gap" and first.json()["from"] == 1


# Memory as a whole

class PeakOfMemory:
    """Looks at the gateway's resident size all the time."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.bytes = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.is_over.wait(0.005):
            self.bytes = max(self.bytes, resident_bytes(self.gateway))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def send_what_is_taken(wire, data):
    wire.socket.settimeout(0.5)
    with contextlib.suppress(OSError):
        wire.socket.sendall(data)


def assert_served(app):
    assert app.run("hello", agent="demo").status_code == 200


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory is many times the gateway's")
def test_bodies_of_many_hostile_callers_stay_within_256_mib(new_forge):
    gateway = new_forge()
    hostile = [App(gateway, f"hostile-{number}") for number in range(4)]
    modest = App(gateway, "modest")
    with PeakOfMemory(gateway) as peak:
        with contextlib.ExitStack() as wires:
            for app in hostile:
                for _ in range(10):
                    wire = wires.enter_context(Wire(gateway))
                    wire.send(request("POST /run", bearer(app.token),
                                      f"Content-Length: {15 * MIB}"))
                    send_what_is_taken(wire, b"x" * (14 * MIB))
            assert_served(modest)
            many = b'{"agent":"demo","prompt":"x","meta":[' + b"[]," * (4 * MIB) + b"0]}"
            for app in hostile:
                send_what_is_taken(wires.enter_context(Wire(gateway)),
                                   with_body("POST /run", many, bearer(app.token)))
            assert_served(modest)
    assert peak.bytes < 256 * MIB
