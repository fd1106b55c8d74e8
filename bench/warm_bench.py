"""What spare agents save, with the real Claude command line and a stand-in for its model's API on
loopback. In turns, on one gateway: the first answer in a new session, from POST /sessions on, of an agent with
spares and of the same agent without; and POST /run with a spare, against `claude -p` itself.

  CLAWDFORGE_BIN=build/bench/clawdforge bench/warm_bench.py [rounds]

CLAWDFORGE_REAL_CLAUDE names the command line; `./test real` installs it.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[1]
for folder in ("tests/blackbox", "tests/real"):
    sys.path.insert(0, str(REPO / folder))

from gateway import Gateway, wait_until  # noqa: E402
from model_api import ModelApi  # noqa: E402

CLAUDE = REPO / os.environ.get("CLAWDFORGE_REAL_CLAUDE", "build/real/node_modules/.bin/claude")
ROUNDS = 15
CONFIG = """[agents.cold]
protocol = "claude"
command = ["{program}"]
[agents.warm]
protocol = "claude"
command = ["{program}"]
warm = 1
"""


def agents_of(gateway):
    return {agent["name"]: agent for agent in gateway.admin.get("/agents").json()["agents"]}


def first_answer(client, agent):
    """Milliseconds until the session is made, and until its first turn is answered."""
    begun = time.monotonic()
    made = client.post("/sessions", json={"agent": agent})
    assert made.status_code == 200, made.text
    created = time.monotonic()
    path = f"/sessions/{made.json()['session_id']}"
    answer = client.post(path + "/turn", json={"prompt": "hello"})
    assert answer.status_code == 200, answer.text
    ended = time.monotonic()
    client.delete(path)
    return 1e3 * (created - begun), 1e3 * (ended - begun)


def run_time(client):
    begun = time.monotonic()
    answer = client.post("/run", json={"prompt": "hello"})
    assert answer.status_code == 200, answer.text
    return 1e3 * (time.monotonic() - begun)


def print_time(place, environment):
    """Of the command line, as the gateway calls it for a run."""
    begun = time.monotonic()
    done = subprocess.run(
        [os.path.realpath(CLAUDE), "-p", "--output-format", "json", "--model", "sonnet",
         "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence",
         "--permission-mode", "manual"],
        input=b"hello", env=environment, cwd=place, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return 1e3 * (time.monotonic() - begun)


def measure(gateway, place, environment, rounds):
    client = gateway.client(gateway.mint("app")["token"])
    client.timeout = 60

    def settle():
        """What is measured is a spare that is ready, on a machine that is not starting another."""
        wait_until(lambda: agents_of(gateway)["warm"]["spares"] == 1 and
                   agents_of(gateway)["claude"]["spares"] >= 1, "spares are ready")
        time.sleep(0.5)

    run_time(client)
    times = {"cold": [], "warm": [], "print": [], "run": []}
    for number in range(rounds + 1):
        for name, taken in times.items():
            settle()
            if name in ("cold", "warm"):
                one = first_answer(client, name)
            else:
                one = run_time(client) if name == "run" else print_time(place, environment)
            if number > 0:  # the first fills the disk's cache
                taken.append(one)
    return times


def tell(times, rounds, spare_bytes):
    medians = {name: statistics.median(answer[1] if isinstance(answer, tuple) else answer
                                       for answer in taken) for name, taken in times.items()}
    print(f"with the real claude, {rounds} rounds, medians in ms")
    for name, what in (("cold", "first answer in a new session, no spare"),
                       ("warm", "the same with a spare"),
                       ("print", "claude -p"), ("run", "POST /run with a spare")):
        print(f"{what:42} {medians[name]:6.0f}")
    print(f"session, with a spare / without: {medians['warm'] / medians['cold']:.2f}")
    print(f"run with a spare / claude -p:    {medians['run'] / medians['print']:.2f}")
    print(f"a spare takes {spare_bytes / 2**20:.0f} MiB")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        config = place / "bench.toml"
        program = os.path.realpath(CLAUDE)
        config.write_text(CONFIG.format(program=program))
        api_place = place / "api"
        api_place.mkdir()
        api = ModelApi(api_place).start()
        keys = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-ant-not-a-key"}
        gateway = Gateway(place / "house", flags=["--config", str(config)],
                          env={**keys, "CLAWDFORGE_CLAUDE_BIN": program}).start()
        environment = {**keys, "PATH": os.environ["PATH"], "HOME": str(gateway.root),
                       "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                       "DISABLE_AUTOUPDATER": "1"}
        try:
            times = measure(gateway, place, environment, rounds)
            listed = agents_of(gateway)["warm"]
        finally:
            gateway.finish()
            api.stop()
    tell(times, rounds, listed["memory_bytes"] / max(1, listed["spares"]))


if __name__ == "__main__":
    main()
