"""What limits and idempotency keys cost: runs of an app with three budgets and a rate, with and
without a key, against those of one without any, in turns, on one gateway; and how the cost grows with the number of apps and of usage rows.

  CLAWDFORGE_BIN=build/bench/clawdforge bench/limits_bench.py [rounds]
"""
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

BUDGETS = [{"window": "day", "unit": "asks", "limit": 10**9},
           {"window": "month", "unit": "usd", "limit": 10**6},
           {"window": "total", "unit": "tokens", "limit": 10**12}]


def call(url, token, path, body=None, key=None):
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"},
                                     data=None if body is None else json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    if key is not None:
        request.add_header("Idempotency-Key", key)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def start(data_dir):
    env = {**os.environ, "CLAWDFORGE_ADMIN_TOKEN": "x" * 32, "HOME": str(data_dir)}
    process = subprocess.Popen(
        [os.environ["CLAWDFORGE_BIN"], "serve", "--listen", "127.0.0.1:0", "--data-dir",
         str(data_dir), "--log-level", "error"], env=env, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    return process, process.stdout.readline().split()[-1]


def cpu_ms(process):
    """What all threads of the gateway have computed. Other programs take time from an ask, but add
    nothing to this."""
    total = 0
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has just ended
    return total / 1e6


def measure(process, url, tokens, rounds):
    """For each app, milliseconds of a run and of the gateway's computing for it. The apps take
    turns, in another order each time, so that all see the same machine."""
    times = {name: [] for name in tokens}
    for number in range(rounds + 10):
        names = list(tokens)
        random.shuffle(names)
        for name in names:
            computed, begun = cpu_ms(process), time.perf_counter()
            call(url, tokens[name], "/run", {"agent": "demo", "prompt": "hi"},
                 str(uuid.uuid4()) if name == "keyed" else None)
            took = 1000 * (time.perf_counter() - begun)
            if number >= 10:
                times[name].append((took, cpu_ms(process) - computed))
    return times


def ratio(times, name, part):
    """The median of the ratios of runs that came one after the other: what disturbs both counts
    once, and what disturbs one of them is an outlier."""
    return statistics.median(with_limits[part] / without[part] for with_limits, without
                             in zip(times[name], times["plain"]) if without[part] > 0)


def median(times, name, part):
    return statistics.median(one[part] for one in times[name])


def fill(data_dir, apps, rows):
    """Apps and rows of usage of theirs, as if they had been there for long."""
    ledger = sqlite3.connect(data_dir / "clawdforge.db", timeout=30)
    hour = int(time.time()) // 3600 * 3600
    with ledger:
        ledger.executemany("INSERT INTO tokens (name, token_sha256) VALUES (?, ?)",
                           ((f"app{n}", f"{n:064x}") for n in range(apps)))
        ledger.executemany(
            "INSERT INTO usage_hours (at, app_name, agent, model, kind, asks) "
            "VALUES (?, ?, 'demo', 'sonnet', 'run', 1)",
            ((hour - 3600 * (1 + n // apps), f"app{n % apps}") for n in range(rows)))
    ledger.close()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as root:
        data_dir = pathlib.Path(root) / "data"
        process, url = start(data_dir)
        try:
            tokens = {name: call(url, "x" * 32, "/admin/tokens", {"name": name, **fields})["token"]
                      for name, fields in {
                          "plain": {}, "limited": {"budgets": BUDGETS, "asks_per_minute": 10**6},
                          "keyed": {"budgets": BUDGETS, "asks_per_minute": 10**6}
                      }.items()}
            for label in ("3 apps, no usage", "10,000 apps, 1,000,000 rows of usage"):
                if label[0] == "1":
                    fill(data_dir, 9_990, 1_000_000)
                    time.sleep(2)  # the gateway reads the apps again
                times = measure(process, url, tokens, rounds)
                print(label + ":")
                for part, what in enumerate(("a run", "the gateway's computing for it")):
                    print(f"  {what}: plain {median(times, 'plain', part):.2f} ms; three budgets and "
                          f"a rate {median(times, 'limited', part):.2f} ms, ratio "
                          f"{ratio(times, 'limited', part):.3f}; with a key as well "
                          f"{median(times, 'keyed', part):.2f} ms, ratio "
                          f"{ratio(times, 'keyed', part):.3f}")
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
