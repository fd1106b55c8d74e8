"""Clients of a gateway that is replaced under them: upgrade_load.py URL, with CLAWDFORGE_TOKEN. Works until its input ends.

Says "ready" when each kind of work was done once, and for each line of input how much was done; the line "long" also begins a long turn. At
the end it says what went wrong, and what of all that was acknowledged is not there. Each request has a connection of its own, so that
every moment of the upgrade is met by new connections.
"""
import collections
import http.client
import io
import json
import os
import pathlib
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/python"))

import clawdforge  # noqa: E402

CALLERS = 3
STREAMERS = 2
ANSWER_SECS_MAX = 120.0
LONG_PARTS = 12  # of the answer that is being streamed while the package is replaced


class Load:
    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)
        self.token = os.environ["CLAWDFORGE_TOKEN"]
        # Nothing is tried again in secret: what a plain script would see is what counts.
        self.forge = clawdforge.Client(url, self.token, retries=0)
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.wrong = []
        self.jobs = []
        self.files = {}
        self.sessions = []
        self.turns = collections.Counter()
        self.longest_secs = 0.0

    def guarded(self, what, work):
        """One piece of work; how it fails is kept."""
        begun = time.monotonic()
        try:
            work()
        except Exception as error:  # whatever it is, the caller had it
            with self.lock:
                self.wrong.append(f"{what}: {type(error).__name__}: {error}")
        else:
            with self.lock:
                self.counts[what] += 1
                self.longest_secs = max(self.longest_secs, time.monotonic() - begun)

    def repeat(self, what, work):
        while not self.is_over.is_set():
            self.guarded(what, work)
            self.is_over.wait(0.05)

    # Kinds of work

    def call(self):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=ANSWER_SECS_MAX)
        try:
            connection.request("POST", "/run", json.dumps({"prompt": "Hello", "agent": "demo"}),
                               {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200 and json.loads(body)["result"] == "You said: Hello", (answer.status, body)
        finally:
            connection.close()

    def stream(self, session, parts):
        def work():
            text = "".join(event.text for event in session.stream(f"slow {parts}"))
            assert f"Slowly {parts} of {parts}" in text, text
            with self.lock:
                self.turns[session.id] += 1
        return work

    def submit(self):
        job_id = self.forge.submit_job(run={"prompt": "Hello", "agent": "demo"})
        with self.lock:
            self.jobs.append(job_id)

    def keep_file(self, session):
        def work():
            with self.lock:
                name = f"kept-{len(self.files)}.txt"
            content = os.urandom(512)
            session.put_file(name, content)
            with self.lock:
                self.files[session.id, name] = content
        return work

    # All of it

    def run(self):
        for _ in range(STREAMERS + 2):
            self.sessions.append(self.forge.create_session(agent="demo"))
        held, long, *streamed = self.sessions
        kinds = [("run", self.call)] * CALLERS + [("job", self.submit), ("file", self.keep_file(held))]
        kinds += [("stream", self.stream(session, 2)) for session in streamed]
        threads = [threading.Thread(target=self.repeat, args=kind) for kind in kinds]
        for thread in threads:
            thread.start()
        while {what for what, _ in kinds} - set(self.counts) and not self.wrong:
            time.sleep(0.05)
        print(f"not ready: {self.wrong}" if self.wrong else "ready", flush=True)
        for line in sys.stdin:
            if line == "long\n":  # a turn that is still going on when the service is asked to stop
                first = threading.Event()
                threads.append(threading.Thread(target=self.guarded, args=("long stream", lambda: self.long_turn(long, first))))
                threads[-1].start()
                first.wait(ANSWER_SECS_MAX)
            print(json.dumps(self.counts), flush=True)
        self.is_over.set()
        for thread in threads:
            thread.join(ANSWER_SECS_MAX)
        self.turn_of_each()
        lost = self.lost_jobs() + self.lost_files() + self.lost_turns()
        print(json.dumps({"counts": self.counts, "wrong": self.wrong, "lost": lost, "longest_secs": self.longest_secs}), flush=True)

    def long_turn(self, session, first):
        text = ""
        for event in session.stream(f"slow {LONG_PARTS}"):
            text += event.text
            if text:
                first.set()
        assert f"Slowly {LONG_PARTS} of {LONG_PARTS}" in text, text
        with self.lock:
            self.turns[session.id] += 1

    # What was acknowledged

    def turn_of_each(self):
        """A session that was there before goes on."""
        for session in self.sessions:
            self.guarded("turn afterwards", self.stream(session, 1))

    def lost_jobs(self):
        lost = []
        for job_id in self.jobs:
            job = self.forge.wait_for_job(job_id, timeout=ANSWER_SECS_MAX)
            if job["state"] != "succeeded":
                lost.append(f"job {job_id}: {job['state']}")
        return lost

    def lost_files(self):
        by_id = {session.id: session for session in self.sessions}
        lost = []
        for (session_id, name), content in self.files.items():
            there = io.BytesIO()
            by_id[session_id].download(name, there)
            if there.getvalue() != content:
                lost.append(f"file {name}")
        return lost

    def lost_turns(self):
        return [f"turns of {session.id}: {len(list(session.turns()))}, not {self.turns[session.id]}" for session in self.sessions
                if len(list(session.turns())) != self.turns[session.id]]


Load(sys.argv[1]).run()
