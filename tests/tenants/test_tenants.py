"""A hostile app beside a well-behaved one. The well-behaved app asks the demo agent one prompt after
another; it must be answered each time, and nearly as quickly as when it is alone.

The bound is a ratio of two figures of the same run: the app's 99th percentile during the attack
against that of the quiet times before and after it."""
import contextlib
import json
import pathlib
import time

import pytest

import attacks
from agents import App
from gateway import SANITIZED, wait_until
from sessions import session_gateway

RATIO_MAX = 5.0
RESIDENT_MAX = 256 * attacks.MIB
QUIET_RUNS = 100
ATTACKED_RUNS = 150
WARM_UP_SECONDS = 1.0  # until an attack is under way
TRIES = 3  # other programs share this machine: a try that they disturbed is not counted

pytestmark = pytest.mark.timeout(300)


class WellBehaved(App):
    def __init__(self, gateway):
        super().__init__(gateway, "well-behaved")

    def times_of(self, count):
        """How long each of so many runs took; each must be answered well."""
        times = []
        for number in range(count):
            begun = time.monotonic()
            answer = self.run(f"number {number}", agent="demo")
            times.append(time.monotonic() - begun)
            assert answer.status_code == 200, answer.text
            assert f"number {number}" in json.dumps(answer.json()["result"])
        return sorted(times)


def at(times, part):
    return times[min(len(times) - 1, int(part * len(times)))]


def resident_most(gateway):
    """The largest size that the gateway has had."""
    for line in pathlib.Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.fixture
def gateway(tmp_path):
    with session_gateway(tmp_path, max_live_sessions=16, max_runs=8) as gateway:
        yield gateway


def measured(app, attackers):
    """Quiet times, and times under attack by these pairs of a token and an attack."""
    quiet = app.times_of(QUIET_RUNS)
    with contextlib.ExitStack() as stack:
        for token, function in attackers:
            stack.enter_context(attacks.Attack(app.gateway, token, function))
        time.sleep(WARM_UP_SECONDS)
        attacked = app.times_of(ATTACKED_RUNS)
    return quiet, attacked


def row_of(name, quiet, attacked, gateway):
    def pair(part):
        return f"{1e3 * at(attacked, part):.1f} ms ({at(attacked, part) / at(quiet, part):.1f} ×)"
    return (f"| {name} | {pair(0.5)} | {pair(0.99)} | "
            f"{resident_most(gateway) / attacks.MIB:.0f} MiB |")


@pytest.mark.parametrize("attack", attacks.ALL, ids=lambda attack: attack.__name__)
def test_a_hostile_app_hurts_only_itself(gateway, attack, record_property):
    app = WellBehaved(gateway)
    token = gateway.mint("hostile")["token"]
    app.times_of(20)
    best = None
    for _ in range(TRIES):
        quiet, attacked = measured(app, [(token, attack)])
        ratio = at(attacked, 0.99) / at(quiet, 0.99)
        if best is None or ratio < best[0]:
            best = ratio, row_of(attack.__name__, quiet, attacked, gateway)
        if ratio < RATIO_MAX:
            break
    record_property("row", best[1])
    assert SANITIZED or best[0] < RATIO_MAX, best[1]
    assert SANITIZED or resident_most(gateway) < RESIDENT_MAX, best[1]


@pytest.mark.parametrize("name, apps", [("all together", 1), ("by twenty apps", len(attacks.ALL))])
def test_all_attacks_together(gateway, name, apps, record_property):
    """The memory is bounded, the well-behaved app loses nothing, and afterwards all is as before."""
    app = WellBehaved(gateway)
    tokens = [gateway.mint(f"hostile-{number}")["token"] for number in range(apps)]
    attackers = [(tokens[number % apps], attack) for number, attack in enumerate(attacks.ALL)]
    quiet, attacked = measured(app, attackers)
    record_property("row", row_of(name, quiet, attacked, gateway))
    assert SANITIZED or resident_most(gateway) < RESIDENT_MAX
    with gateway.admin as admin:
        for number in range(apps):
            assert admin.delete(f"/admin/tokens/hostile-{number}").status_code == 200
    wait_until(lambda: app.run("afterwards", agent="demo").status_code == 200, "all is as before")
