"""The mixed load for a long time, with agents killed now and then: nothing grows that should not.

SOAK_SECONDS says how long (600). The table that it prints is the one in docs/performance.md.
"""
import os
import pathlib
import random
import statistics
import time

import pytest

from agents import descriptors
from census import is_below, kill_one_agent, kill_one_launcher, ledger_of, ours, unowned
from gateway import PROGRAM, Gateway, run_program, wait_until
from load import Worker
from record import Figures
from sessions import session_options

SECONDS = max(60, int(os.environ.get("SOAK_SECONDS", "600")))  # in less nothing settles
WORKERS = 5
SAMPLE_SECONDS = 2.0
OWNERLESS_SECONDS_MAX = 3.0
KILL_SECONDS = 3.0
TURNS_MAX = 25
RETENTION_SECS = max(10, SECONDS // 20)
SESSION_SECONDS = RETENTION_SECS / 2  # then it is closed, before its first events are old enough to go
UPLOAD_SECS = 60  # the shortest that there is
SETTINGS = {"max_live_sessions": 500, "max_agents": 12, "max_runs": 6, "kill_grace_ms": 300,
            "cancel_grace_ms": 500, "log_level": "warn", "sweep_interval_secs": 1,
            "session_hard_ttl_secs": RETENTION_SECS, "audit_max_age_secs": RETENTION_SECS,
            "idempotency_secs": RETENTION_SECS, "job_ttl_secs": RETENTION_SECS}
TABLES = ("sessions", "turns", "journal", "uploads", "runs", "session_events",
          "idempotency_keys")

# How much more the median of the last fifth may be than that of the second: a share, and what
# may be added to it.
TOLERANCES = {
    # The allocator keeps what a burst has needed; 8 MiB are some hundred bytes for each request.
    "rss_kib": (0.10, 8 * 1024),
    # Those of the moment: a worker has up to three connections, an agent five pipes.
    "descriptors": (0.10, 15),
    "processes": (0.10, 10),
    # What retention removes; how much there is hangs on how fast the machine was just then.
    "sessions": (0.50, 20), "turns": (0.50, 100), "journal": (0.50, 200), "uploads": (0.50, 50),
    "runs": (0.50, 100), "session_events": (0.50, 200), "idempotency_keys": (0.50, 100),
    "ledger_used_kib": (0.50, 512),
}


class SoakWorker(Worker):
    """Forgets what is over, so that it can go on for ever."""
    apps_max = 3
    sessions_max = 2
    upload_secs = UPLOAD_SECS

    def session(self, mode=None):
        found = super().session(mode)
        is_old = time.monotonic() > found.made_at + SESSION_SECONDS
        if found.turns < TURNS_MAX and not is_old:
            return found
        self.close(found)
        return self.session(mode)

    def app(self):
        self.apps = [app for app in self.apps if not app.is_gone]
        found = super().app()
        for app in self.apps:
            app.sessions = [session for session in app.sessions if not session.is_closed]
            app.dead_tokens = []
        recent = time.monotonic() - UPLOAD_SECS / 2
        found.uploads = [upload for upload in found.uploads if upload.made_at > recent]
        self.runs = []
        return found

    def close_all(self):
        for app in self.apps:
            for session in app.open_sessions():
                self.close(session)


def status_number(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1])


def sample(gateway, workers, begin):
    pid = gateway.process.pid
    found = {"seconds": time.monotonic() - begin,
             "work": sum(count for worker in workers for name, count in worker.figures.items()
                         if name.startswith("answered: ")),
             "rss_kib": status_number(pid, "VmRSS:"), "descriptors": descriptors(gateway),
             "processes": len([one for one in ours(gateway) if is_below(one, pid)]) - 1}
    with ledger_of(gateway) as ledger:
        def number(statement):
            return ledger.execute(statement).fetchone()[0]
        size = number("PRAGMA page_size")
        pages = number("PRAGMA page_count")
        found["ledger_kib"] = size * pages / 1024
        found["ledger_used_kib"] = size * (pages - number("PRAGMA freelist_count")) / 1024
        for table in TABLES:
            found[table] = number(f"SELECT count(*) FROM {table}")
    return found


def fifths(samples):
    """The medians of each fifth."""
    size = len(samples) // 5
    parts = [samples[part * size:(part + 1) * size] for part in range(5)]
    return [{name: statistics.median(one[name] for one in part) for name in samples[0]}
            for part in parts]


def table_of(medians):
    names = ["seconds", "work", "rss_kib", "descriptors", "processes", "ledger_kib",
             "ledger_used_kib", *TABLES]
    lines = ["| median of each fifth of the time | 1 | 2 | 3 | 4 | 5 |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {name.replace('_', ' ')} | "
              + " | ".join(f"{median[name]:,.0f}" for median in medians) + " |" for name in names]
    return "\n".join(lines)


def play(gateway, workers):
    """Samples of all the time."""
    choice = random.Random(1)
    begin = time.monotonic()
    end = begin + SECONDS
    for worker in workers:
        worker.start(gateway, "soak", True, lambda: time.monotonic() > end)
    samples = []
    kills = 0
    next_kill = begin
    strays = {}
    while time.monotonic() < end:
        samples.append(sample(gateway, workers, begin))
        strays = {pid: strays.get(pid, time.monotonic()) for pid in unowned(gateway)}
        overdue = [pid for pid, seen in strays.items()
                   if time.monotonic() > seen + OWNERLESS_SECONDS_MAX]
        workers[0].findings.check(not overdue, f"processes without an owner: {overdue}")
        if time.monotonic() > next_kill:
            kill = choice.choice([kill_one_agent, kill_one_launcher])
            kills += kill(gateway, choice)
            next_kill = time.monotonic() + KILL_SECONDS
        time.sleep(SAMPLE_SECONDS)
    for worker in workers:
        worker.join(60)
    return samples, kills


@pytest.mark.timeout(SECONDS + 300)
def test_nothing_grows(tmp_path, capsys):
    gateway = Gateway(tmp_path / "gateway", **session_options(tmp_path, **SETTINGS)).start()
    workers = [SoakWorker(number, "soak") for number in range(WORKERS)]
    try:
        wait_until(lambda: not ours(gateway) - {gateway.process.pid}, "it has looked around")
        idle = descriptors(gateway)
        samples, kills = play(gateway, workers)
        findings = [finding for worker in workers for finding in worker.findings.all]
        for worker in workers:
            worker.close_all()
        wait_until(lambda: not ours(gateway) - {gateway.process.pid}, "all agents are gone")
        wait_until(lambda: descriptors(gateway) <= idle + 3, "descriptors are given back")
        findings += checked(fifths(samples))
        with capsys.disabled():
            report(samples, kills, workers)
        assert gateway.stop() == 0
        wait_until(lambda: not unowned(gateway), "all processes are gone")
        done = run_program("verify", "--data-dir", gateway.data_dir, home=gateway.root)
        assert done.returncode == 0, done.stdout
        assert not findings, "\n".join(dict.fromkeys(findings))
    finally:
        if gateway.process is not None:
            gateway.kill()


def checked(medians):
    early, late = medians[1], medians[4]
    found = []
    for name, (share, more) in TOLERANCES.items():
        if late[name] > early[name] * (1 + share) + more:
            found.append(f"{name} has grown from {early[name]} to {late[name]}")
    return found


def report(samples, kills, workers):
    total = Figures()
    for worker in workers:
        total.update(worker.figures)
    print(f"\n{PROGRAM}: {SECONDS} s, {len(samples)} samples, {kills} agents and launchers killed")
    print(table_of(fifths(samples)))
    for name in sorted(total):
        print(f"{name:36} {total[name]:>10}")
