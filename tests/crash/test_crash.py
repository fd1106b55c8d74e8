"""The gateway is killed at random instants of a mixed load, and started again on the same data:
all that was answered is there, and nothing is left without an owner.

CRASH_ROUNDS says how often (20), CRASH_SEED by which seed. A life is a data directory with up to
ten rounds; its seed gives all choices of the load and all instants of the kills. What the kernel
does with them is not in its hands, so a repeated seed repeats the plan and not every interleaving.
"""
import os
import random
import time

import pytest

from after import Check
from census import check_file, kill_one_agent, kill_one_launcher, orphans, unowned
from deliveries import Receiver
from gateway import SANITIZED, SECONDS_MAX, Gateway, run_program, wait_until
from load import AGENTS, Worker
from record import Figures, Findings
from sessions import agent_table, session_options

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "20"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
ROUNDS_PER_LIFE = 10
WORKERS = 5
ACPX_WORKERS = 2  # that have a session through acpx from the beginning
LOAD_SECONDS = (0.005, 0.4)
START_SECONDS = (0.0, 0.12)  # a start takes longer than this, so that most kills hit one
OWNERLESS_SECONDS_MAX = 3.0
SLOWNESS = 5 if SANITIZED else 1
SETTINGS = {"max_live_sessions": 500, "max_agents": 12, "max_runs": 6, "kill_grace_ms": 300,
            "cancel_grace_ms": 500, "log_level": "warn", "webhook_max_pause_secs": 1}


class Life:
    """One data directory, and all that has happened to it."""

    def __init__(self, place, seed):
        self.seed = seed
        # Every fourth life does without namespaces, where the kernel does not help.
        namespace = "off" if seed % 4 == 3 else "auto"
        options = session_options(place, more=agent_table("acpx", [], kind="acpx"),
                                  pid_namespace=namespace, **SETTINGS)
        self.gateway = Gateway(place / "gateway", **options)
        self.receiver = Receiver()
        self.workers = [Worker(number, "crash", (*AGENTS, "acpx"), self.receiver)
                        for number in range(WORKERS)]
        self.findings = Findings()
        self.figures = Figures()
        self.round = 0

    def play(self, rounds):
        self.gateway.start()
        try:
            for worker in self.workers[:ACPX_WORKERS]:
                worker.begin_with(self.gateway, self.seed, "acpx")
            for self.round in range(1, rounds + 1):
                self.one_round()
                self.complain()
            self.end()
            self.complain()
        finally:
            if self.gateway.process is not None:
                self.gateway.kill()
            wait_until(lambda: not unowned(self.gateway), "all processes are gone")
            self.gateway.remove_sockets()
            self.receiver.close()

    def one_round(self):
        choice = random.Random(f"{self.seed}/{self.round}")
        are_agents_killed = choice.random() < 0.25
        self.load(choice, are_agents_killed)
        if choice.random() < 0.3:
            self.wait_for_orphans()
        while choice.random() < 0.3:
            self.kill_a_start(choice)
        self.gateway.start()
        self.figures["rounds"] += 1
        if choice.random() < 0.2:
            check_file(self.gateway, self.findings)
        self.verify()
        self.wait_for_orphans()
        Check(self.gateway, self.workers, self.findings, self.figures, choice).all()

    def load(self, choice, are_agents_killed):
        end = time.monotonic() + choice.uniform(*LOAD_SECONDS) * SLOWNESS
        for worker in self.workers:
            worker.start(self.gateway, f"{self.seed}/{self.round}", are_agents_killed)
        if are_agents_killed:
            for _ in range(choice.randint(1, 4)):
                time.sleep(max(0.0, end - time.monotonic()) * choice.random() * 0.7)
                self.disturb(choice)
        time.sleep(max(0.0, end - time.monotonic()))
        self.gateway.kill()
        self.figures["kills under load"] += 1
        for worker in self.workers:
            worker.join(2 * SECONDS_MAX)
            self.findings.all += worker.findings.all
            worker.findings.all = []
            self.figures.update(worker.figures)
            worker.figures.clear()

    def disturb(self, choice):
        if choice.random() < 0.5:
            self.figures["agents killed"] += kill_one_agent(self.gateway, choice)
        elif kill_one_launcher(self.gateway, choice):
            self.figures["launchers killed"] += 1
            # Before the gateway is killed as well: no later gateway could find them.
            self.wait_for(orphans, "that a killed launcher has left")

    def kill_a_start(self, choice):
        self.gateway.spawn()
        time.sleep(choice.uniform(*START_SECONDS) * SLOWNESS)
        is_ready = b"listening" in self.printed()
        self.gateway.kill()
        self.figures["kills after a start" if is_ready else "kills during a start"] += 1

    def printed(self):
        """What the gateway has printed, without waiting for more."""
        os.set_blocking(self.gateway.process.stdout.fileno(), False)
        return self.gateway.process.stdout.read() or b""

    def wait_for_orphans(self):
        """Nothing of an earlier process of the gateway lives on."""
        self.wait_for(unowned, "without an owner")

    def wait_for(self, those, what):
        end = time.monotonic() + OWNERLESS_SECONDS_MAX * SLOWNESS
        while left := those(self.gateway):
            if time.monotonic() > end:
                self.findings.add(f"processes {what}: {sorted(left)}")
                return
            time.sleep(0.01)

    def verify(self):
        done = run_program("verify", "--data-dir", self.gateway.data_dir, home=self.gateway.root)
        self.findings.check(done.returncode == 0,
                            f"verify: {done.returncode}\n{done.stdout}{done.stderr}")

    def end(self):
        """A clean end leaves nothing at all, and the ledger in order."""
        code = self.gateway.stop()
        self.findings.check(code == 0, f"the end: {code}")
        self.wait_for_orphans()
        self.verify()

    def complain(self):
        if self.findings.all:
            found = "\n".join(dict.fromkeys(self.findings.all))
            pytest.fail(f"CRASH_SEED={self.seed} CRASH_ROUNDS={self.round} ./test crash\n{found}",
                        pytrace=False)


def lives():
    """(seed, rounds) of each."""
    return [(SEED + number, min(ROUNDS_PER_LIFE, ROUNDS - first))
            for number, first in enumerate(range(0, ROUNDS, ROUNDS_PER_LIFE))]


@pytest.mark.timeout(60 * ROUNDS_PER_LIFE * SLOWNESS)
@pytest.mark.parametrize("seed, rounds", lives())
def test_what_was_answered_outlives_every_kill(tmp_path, record_property, seed, rounds):
    life = Life(tmp_path, seed)
    begin = time.monotonic()
    try:
        life.play(rounds)
    finally:
        for name, count in life.figures.items():
            record_property(name, count)
        record_property("seconds, of all lives together", time.monotonic() - begin)
