"""A gateway's ledger as its operator sees it: `clawdforge verify`, `clawdforge backup`, and a load
of everything that ends up in it."""
import contextlib
import itertools
import sqlite3
import threading

import httpx

from agents import NUMBERS
from gateway import NO_TLS, SECONDS_MAX, run_program, wait_until


def verify(gateway, *arguments):
    """Runs `verify` on the gateway's data directory, or on what is given."""
    return run_program("verify", *(arguments or ("--data-dir", gateway.data_dir)),
                       home=gateway.root)


def assert_sound(gateway, *arguments):
    done = verify(gateway, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1 and lines[0].endswith(" checks, 0 findings"), done.stdout


def findings(gateway, *arguments):
    """The names of what it finds; there must be something."""
    done = verify(gateway, *arguments)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout + done.stderr
    *lines, last = done.stdout.splitlines()
    assert last.startswith("verify: ") and last.endswith(f" checks, {len(lines)} findings")
    assert all(line.startswith("finding ") for line in lines)
    return sorted(line.split()[1].removesuffix(":") for line in lines)


def backup(gateway, file, **options):
    return run_program("backup", file, "--data-dir", gateway.data_dir, home=gateway.root, **options)


def change(gateway, sql):
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db")) as ledger:
        ledger.executescript(sql)


class Load:
    """Apps that mint, run, talk, upload and close until they are told to stop, and what each of
    them was told: that must be in every state of the ledger from then on."""
    PROMPTS = ["hello", "think plan tool", "long 50", "fail", "permission read", "crash"]

    def __init__(self, gateway, workers=3):
        self.gateway = gateway
        self.number = next(NUMBERS)
        self.answers = {"apps": {}, "sessions": {}, "turns": set(), "uploads": set(), "runs": 0}
        self.lock = threading.Lock()
        self.is_over = False
        self.errors = []
        self.threads = [threading.Thread(target=self._work, args=(number,))
                        for number in range(workers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors

    def acknowledged(self):
        """What has been answered so far."""
        with self.lock:
            return {"apps": dict(self.answers["apps"]), "sessions": dict(self.answers["sessions"]),
                    "turns": set(self.answers["turns"]), "uploads": set(self.answers["uploads"]),
                    "runs": self.answers["runs"]}

    def wait_for(self, turns):
        wait_until(lambda: self.errors or len(self.answers["turns"]) >= turns, f"{turns} turns",
                   3 * SECONDS_MAX)
        assert not self.errors, self.errors

    def _work(self, number):
        try:
            for round_number in itertools.count():
                if self.is_over:
                    return
                self._round(f"app-{self.number}-{number}-{round_number}")
        except httpx.TransportError:
            pass  # the gateway was killed
        except Exception as error:  # told by stop()
            self.errors.append(repr(error))

    def _round(self, name):
        token = self.gateway.mint(name)["token"]
        with self.lock:
            self.answers["apps"][name] = token
        with httpx.Client(base_url=self.gateway.url, timeout=2 * SECONDS_MAX, trust_env=False,
                          verify=NO_TLS, headers={"Authorization": f"Bearer {token}"}) as client:
            made = client.post("/sessions", json={"agent": "demo"})
            assert made.status_code == 200, made.text
            session = made.json()["session_id"]
            with self.lock:
                self.answers["sessions"][session] = name
            for prompt in self.PROMPTS:
                if self.is_over:
                    return
                turn = client.post(f"/sessions/{session}/turn", json={"prompt": prompt})
                with self.lock:
                    self.answers["turns"].add((session, turn.json()["turn_index"]))
            upload = client.post("/files", files={"file": ("a.txt", b"abc")})
            assert upload.status_code == 200, upload.text
            run = client.post("/run", json={"agent": "demo", "prompt": "hello"})
            assert run.status_code == 200, run.text
            with self.lock:
                self.answers["uploads"].add(upload.json()["file_token"])
                self.answers["runs"] += 1
            if name.endswith("1"):
                assert client.delete(f"/sessions/{session}").status_code == 200
