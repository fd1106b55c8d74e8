"""A supervisor restarts the gateway in the middle of work: what was answered is there afterwards,
and callers who try again, as they are told to, go on."""
import collections
import json
import threading
import time

import httpx
import pytest

from agents import App, assert_nothing_left, rows
from gateway import NO_TLS, SECONDS_MAX, wait_until
from sessions import (Talker, assert_no_process_left, journal, query, session_options, turn_rows)

RESTARTS = 3
WORK = 6  # things that each caller has done, at least, between two restarts


class Caller(threading.Thread):
    """Does one thing again and again, each until it is answered, and keeps what was answered."""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load = load
        self.refused = collections.Counter()  # why it had to try again
        self.kept = []
        self.failure = None

    def run(self):
        try:
            while not self.load.is_over.is_set():
                self.step()
        except BaseException as failure:  # told to the test, which is another thread
            self.failure = failure

    def call(self, method, path, **options):
        """Until it is neither refused nor cut off. Gives none when the test is over."""
        while not self.load.is_over.is_set():
            try:
                answer = self.load.client.request(method, path, headers=self.headers, **options)
            except httpx.HTTPError as cut:
                self.refused[type(cut).__name__] += 1
                time.sleep(0.02)
                continue
            if answer.status_code != 503:
                return answer
            assert int(answer.headers["Retry-After"]) >= 1, answer.text
            self.refused[answer.json()["code"]] += 1
            time.sleep(0.02)
        return None


class Runner(Caller):
    def __init__(self, load, app):
        super().__init__(load)
        self.headers = {"Authorization": f"Bearer {app.token}"}

    def step(self):
        answer = self.call("POST", "/run", json={"prompt": json.dumps({"sleep": 0.05})})
        if answer is not None:
            assert answer.status_code == 200, answer.text
            self.kept.append(answer.headers["X-Clawdforge-Run-Id"])


class Talking(Caller):
    def __init__(self, load, session):
        super().__init__(load)
        self.session = session
        self.headers = {"Authorization": f"Bearer {session.app.token}"}
        self.count = 0

    def step(self):
        self.count += 1
        said = f"{self.session.id} says {self.count}"
        answer = self.call("POST", self.session.path + "/turn", json={"prompt": said})
        if answer is not None:
            assert answer.status_code == 200, answer.text
            assert answer.json()["text"] == "echo: " + said
            self.kept.append((answer.json()["turn_index"], said))


class Reader(Caller):
    """Follows one session, and comes back with the number of the last event it has seen."""

    def __init__(self, load, session):
        super().__init__(load)
        self.session = session
        self.last = 0

    def step(self):
        headers = {"Authorization": f"Bearer {self.session.app.token}",
                   "Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        try:
            with self.load.client.stream("GET", self.session.path + "/events",
                                         headers=headers) as answer:
                if answer.status_code == 503:
                    self.refused["503"] += 1
                    time.sleep(0.02)
                    return
                assert answer.status_code == 200
                self.take(answer)
        except httpx.HTTPError as cut:
            self.refused[type(cut).__name__] += 1
            time.sleep(0.02)

    def take(self, answer):
        number = None
        for line in map(str.rstrip, answer.iter_lines()):
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: ") and number is not None:
                assert number == self.last + 1, "nothing is missing, nothing comes twice"
                self.last = number
                self.kept.append(line[6:])
                number = None
            elif line == "event: shutdown":
                self.refused["shutdown"] += 1
            if self.load.is_over.is_set():
                return


class Bringer(Caller):
    def __init__(self, load, app):
        super().__init__(load)
        self.headers = {"Authorization": f"Bearer {app.token}"}

    def step(self):
        answer = self.call("POST", "/files", files={"file": ("a.txt", b"brought")})
        if answer is not None:
            assert answer.status_code == 200, answer.text
            self.kept.append(answer.json()["file_token"])
            time.sleep(0.02)


class Minter(Caller):
    def __init__(self, load, gateway):
        super().__init__(load)
        self.headers = {"Authorization": f"Bearer {gateway.admin_token}"}
        self.count = 0

    def step(self):
        self.count += 1
        answer = self.call("POST", "/admin/tokens", json={"name": f"minted-{self.count}"})
        if answer is None:
            return
        # One that was cut off may have been minted all the same.
        assert answer.status_code in (200, 409), answer.text
        if answer.status_code == 200:
            self.kept.append(answer.json()["token"])
        time.sleep(0.02)


class Load:
    def __init__(self, gateway):
        self.is_over = threading.Event()
        transport = httpx.HTTPTransport(verify=NO_TLS,
                                        limits=httpx.Limits(max_keepalive_connections=0))
        self.client = httpx.Client(base_url=gateway.url, transport=transport,
                                   timeout=2 * SECONDS_MAX, trust_env=False)

    def end(self, callers):
        self.is_over.set()
        for caller in callers:
            caller.join(2 * SECONDS_MAX)
            assert not caller.is_alive(), "a caller hangs"
        self.client.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("grace", [10, 0], ids=["patient", "impatient"])
def test_a_restart_in_the_middle_of_load_loses_nothing_that_was_answered(
        new_gateway, tmp_path, grace):
    gateway = new_gateway(**session_options(
        tmp_path, drain_grace_secs=grace, kill_grace_ms=200, cancel_grace_ms=200,
        max_live_sessions=20, max_runs=4))
    gateway.listen = f"127.0.0.1:{gateway.port}"
    talker, runner = Talker(gateway, "talker"), App(gateway, "runner")
    sessions = [talker.session() for _ in range(3)]
    load = Load(gateway)
    talking = [Talking(load, session) for session in sessions]
    readers = [Reader(load, session) for session in sessions]
    runners = [Runner(load, runner) for _ in range(3)]
    bringer, minter = Bringer(load, talker), Minter(load, gateway)
    callers = [*talking, *readers, *runners, bringer, minter]
    for caller in callers:
        caller.start()
    try:
        for _ in range(RESTARTS):
            wait_for_work(callers)
            assert gateway.stop() == 0
            gateway.start()
        wait_for_work(callers)
    finally:
        load.end(callers)
    assert [caller.failure for caller in callers if caller.failure] == []
    assert_kept(gateway, talking, readers, runners)
    assert all(gateway.whoami(token) == 200 for token in minter.kept)
    for token in bringer.kept[:3] + bringer.kept[-3:]:
        assert runner_sees(talker, token)
    for session in sessions:
        session.close()
    assert_nothing_left(gateway)
    assert_no_process_left(gateway)


def wait_for_work(callers):
    """Each has done something more, so that the next restart meets all of them at work."""
    goals = [(caller, len(caller.kept) + WORK) for caller in callers]
    for caller, goal in goals:
        wait_until(lambda caller=caller, goal=goal: len(caller.kept) >= goal or caller.failure,
                   f"{type(caller).__name__} goes on")


def runner_sees(app, token):
    contents = app.run({"report": True}, files=[token]).json()["result"]["contents"]
    return list(contents.values()) == ["brought"]


def assert_kept(gateway, talking, readers, runners):
    states = {row["run_id"]: row["state"] for row in rows(gateway)}
    for caller in runners:
        assert {states.get(run_id) for run_id in caller.kept} == {"succeeded"}
    assert "running" not in states.values()
    for caller, reader in zip(talking, readers):
        events = journal(gateway, caller.session)
        closings = collections.Counter(
            event["turn_index"] for event in events if event["event"] in ("done", "failed"))
        turns = {row["turn_index"]: row for row in turn_rows(gateway, caller.session)}
        assert set(closings.values()) == {1}, "each turn is closed once"
        assert set(closings) == set(turns) and all(row["ended_at"] for row in turns.values())
        for index, _ in caller.kept:
            assert turns[index]["state"] == "done"
        told = [json.dumps(event["data"]) for event in events[:len(reader.kept)]]
        assert [json.dumps(json.loads(text)) for text in reader.kept] == told
        assert reader.refused["shutdown"] >= 1, "it was told of a restart"
    # The gateway forgets the processes of ended runs together, about once a second.
    marked = "SELECT process_pid FROM runs WHERE process_pid IS NOT NULL"
    wait_until(lambda: not query(gateway, marked), "the marks of ended processes are gone")
