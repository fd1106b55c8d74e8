"""The login of Claude is kept: agents read it, one keeper renews it, and no kill loses it.

The stand-ins deal with a login as the real program was seen to; the endpoint is a stand-in whose refresh
tokens are good for one use. CUSTODY_ROUNDS=200 kills 200 times."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest

from agents import (FAKE, REPO, UNPRIVILEGED, App, allows_namespaces, assert_failure, assert_success, fake_env,
                    gateway_of, gauge, loud_skip)
from gateway import SLACK_SECONDS, Gateway, run_program, wait_until
from logins import TokenService, tokens_in
from sessions import Talker, session_options

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"
ROUNDS = int(os.environ.get("CUSTODY_ROUNDS", "30"))
HOURS_8 = 8 * 3600
HINT = "clawdforge agent login claude"
SOON = 302  # seconds of a token: renewed three seconds later


def keyless(**settings):
    return {name: value for name, value in fake_env(**settings).items()
            if name != "ANTHROPIC_API_KEY"}


@pytest.fixture
def service():
    made = TokenService()
    yield made
    made.close()


@pytest.fixture
def new_keeper(new_gateway, service, tmp_path):
    """Makes gateways with a login that is kept."""
    def make(seconds=HOURS_8, *, env=None, more=None, **options):
        gateway = new_gateway(env={**keyless(), **(env or {})}, start=False, **options)
        if seconds is not None:
            service.log_in(login_dir(gateway), seconds, **(more or {}))
        return gateway.start()
    return make


def login_dir(gateway):
    return gateway.data_dir / "login" / "claude"


def health(gateway):
    with gateway.client() as client:
        return client.get("/healthz").json()["claude_login"]


def await_state(gateway, state):
    wait_until(lambda: health(gateway)["state"] == state, f"the login is {state}")


def events(gateway, prefix="login."):
    with gateway.admin as admin:
        found = admin.get("/admin/events").json()["events"]
    return [event["event"] for event in reversed(found) if event["event"].startswith(prefix)]


def await_event(gateway, *names):
    wait_until(lambda: events(gateway) == list(names), f"the audit has {names}")


# What agents see

def test_an_agent_reads_the_login_and_cannot_write_it(new_keeper, service):
    """Row 20: not replaced, not deleted, nothing put beside it; and what the keeper renews is seen."""
    gateway = new_keeper(env={"CLAWDFORGE_CLAUDE_BIN": str(INTRUDER)})
    place = str(login_dir(gateway))
    file = place + "/.credentials.json"
    listed, read, *changed = App(gateway).run({"do": [
        ["list", place], ["read", file], ["write", file], ["truncate", file], ["chmod", file],
        ["write", place + "/planted"], ["write", place + "/.oauth_refresh.lock"],
        ["list", str(gateway.data_dir / "login")], ["list", str(gateway.data_dir / "login" / "keeper")],
    ]}).json()["result"]
    assert listed == [".credentials.json"]
    assert service.access in read
    assert changed[:5] == ["EROFS"] * 5
    assert changed[5] == ["claude"], "of the login's place only the way to it"
    assert changed[6] == "ENOENT"


@pytest.mark.parametrize("user", [None, UNPRIVILEGED], ids=["root", "ordinary"])
def test_the_owners_home_is_in_no_jail(user, service):
    """Rows 4 and 20, where the login is that of the gateway's user: nothing of his shows but the login."""
    if not allows_namespaces(user):
        loud_skip("the kernel allows no namespaces")
    with gateway_of(user, "auto", stand_in=INTRUDER, jail="auto", jail_write="") as gateway:
        own = gateway.root / ".claude"
        service.log_in(own, owner=user)
        (own / "projects" / "-private").mkdir(parents=True)
        (own / "projects" / "-private" / "talk.jsonl").write_text("the owner's own words")
        (own / "history.jsonl").write_text("the owner's own prompts")
        (gateway.root / ".ssh").mkdir()
        (gateway.root / ".ssh" / "key").write_text("a key")
        for path in gateway.root.rglob("*"):
            if user is not None and not path.is_symlink():
                os.chown(path, user, -1)
        del gateway.env["ANTHROPIC_API_KEY"]
        gateway.restart()
        await_state(gateway, "ok")
        file = str(own / ".credentials.json")
        found = App(gateway).run({"do": [
            ["read", file], ["write", file], ["write", str(own / "planted")],
            ["list", str(own / "projects")], ["read", str(own / "history.jsonl")],
            ["read", str(gateway.root / ".ssh" / "key")], ["list", str(gateway.root)],
            ["write", str(own / "projects" / "planted")]]}).json()["result"]
        assert service.access in found[0]
        assert found[1:3] == ["EROFS", "EROFS"]
        assert found[3] == [] and found[4] == ""
        assert found[5] == "ENOENT" and ".ssh" not in found[6]
        assert found[7] == "EROFS"
        warned = wait_until(lambda: [line for line in gateway.log_lines()
                                     if "login of the gateway's user" in line["message"]], "it is told")
        assert HINT in warned[0]["message"]
        # A login of the agents' own is used as soon as it is there.
        service.log_in(login_dir(gateway), owner=user)
        wait_until(lambda: attempt(gateway, ["list", str(own)]) == "ENOENT", "the other one is not shown any more")


def attempt(gateway, what):
    return App(gateway, f"app-{time.monotonic_ns()}").run({"do": [what]}).json()["result"][0]


def test_a_foreign_conversation_cannot_be_resumed(new_gateway, tmp_path):
    """Row 4: the transcript of another session is not in this one's home."""
    gateway = new_gateway(**session_options(tmp_path, kind="claude"))
    app = Talker(gateway)
    other, own = app.session(), app.session()
    other.told("a secret of the other")
    transcript, = (gateway.data_dir / "sessions" / other.id / "home").rglob("*.jsonl")
    assert own.told({"env": "HOME"}) != str(transcript.parents[3])


def test_a_key_takes_the_place_of_a_login(new_gateway):
    gateway = new_gateway(env=fake_env())
    assert health(gateway) == {"state": "external", "expires_at": None, "sign_in_ends_at": None,
                               "ends_soon": False}
    env = App(gateway).report()["env"]
    assert "CLAUDE_SECURESTORAGE_CONFIG_DIR" not in env
    assert not list((gateway.data_dir / "login" / "keeper").iterdir()), "no keeper was started"


# The states

def test_a_login_that_is_about_to_end_is_renewed_while_work_goes_on(new_keeper, service):
    gateway = new_keeper(SOON)
    app = App(gateway)
    assert_success(app.run("before"))
    wait_until(lambda: service.refreshes == 1, "the keeper renews it")
    assert_success(app.run("after"))
    assert health(gateway)["expires_at"] > time.time() + 7 * 3600
    await_event(gateway, "login.renewed")
    assert gauge(gateway, 'clawdforge_login_state{agent="claude",state="ok"}') == 1
    assert gauge(gateway, 'clawdforge_login_renewals_total{outcome="renewed"}') == 1
    assert gauge(gateway, 'clawdforge_login_expires_seconds{agent="claude"}') > 7 * 3600


def test_work_waits_for_a_login_that_has_expired(new_keeper, service):
    """Of 20 that ask at once none fails, and one keeper renews it."""
    service.delay = lambda: 1
    gateway = new_keeper(-60, env={"CLAWDFORGE_MAX_CONCURRENT_RUNS": "20"})
    app = App(gateway)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for answer in pool.map(lambda number: app.run(f"run {number}"), range(20)):
            assert_success(answer)
    assert (service.refreshes, service.reuses, service.refused) == (1, 0, 0)


def test_an_endpoint_that_fails_is_told_and_tried_again(new_keeper, service):
    service.status = 500
    gateway = new_keeper(-60)
    await_state(gateway, "unreachable")
    answer = App(gateway).run("now")
    assert_failure(answer, 503, "login_unreachable")
    assert 1 <= int(answer.headers["Retry-After"]) <= 10
    assert gauge(gateway, 'clawdforge_login_renewals_total{outcome="failed"}') >= 1
    service.status = 200
    await_state(gateway, "ok")
    assert_success(App(gateway, "other").run("now"))


def test_a_held_caller_can_hang_up_and_is_refused_in_the_end(new_keeper, service):
    gate = threading.Event()
    service.delay = lambda: gate.wait(120) and 0
    gateway = new_keeper(-60)
    app = App(gateway)
    wire = app.send("never")
    wait_until(lambda: gauge(gateway, "clawdforge_login_held") == 1, "it is held")
    wire.socket.close()
    wait_until(lambda: gauge(gateway, "clawdforge_login_held") == 0, "it has gone")
    begun = time.monotonic()
    answer = app.run("late")
    assert_failure(answer, 503, "login_renewing")
    assert 15 < time.monotonic() - begun < 20 + SLACK_SECONDS
    assert answer.headers["Retry-After"] == "3"
    gate.set()
    await_state(gateway, "ok")


def test_a_lost_login_starts_nothing_and_comes_back(new_keeper, service, tmp_path):
    gateway = new_keeper(SOON, more={"is_revoked": True})
    await_state(gateway, "logged_out")
    app, log = App(gateway), tmp_path / "starts"
    for _ in range(3):
        answer = app.run({"log": str(log)})
        assert_failure(answer, 503, "agent_not_logged_in")
        assert HINT in answer.json()["error"]
        assert answer.headers["Retry-After"] == "60"
    assert not log.exists(), "no agent was started"
    wait_until(lambda: any(HINT in line["message"] and line["level"] == "error"
                           for line in gateway.log_lines()), "the log has it")
    service.log_in(login_dir(gateway))
    await_state(gateway, "ok")
    assert_success(app.run({"log": str(log)}))
    await_event(gateway, "login.lost", "login.back")


def test_a_refused_agent_has_the_login_renewed_at_once(new_keeper, service):
    gateway = new_keeper()
    await_state(gateway, "ok")
    service.is_refusing = True
    answer = App(gateway).run("refused")
    assert_failure(answer, 503, "agent_not_logged_in")
    assert_success(App(gateway, "other").run("after"))
    assert (service.refreshes, service.reuses) == (1, 0)


def test_without_a_login_the_program_has_the_word(new_keeper, service):
    gateway = new_keeper(None)
    await_state(gateway, "logged_out")
    answer = Talker(gateway).create("claude")
    assert answer.status_code == 503 and answer.json()["code"] == "agent_not_logged_in"
    with gateway.admin as admin:
        claude, = [agent for agent in admin.get("/agents").json()["agents"] if agent["name"] == "claude"]
    assert claude["login_state"] == "logged_out" and claude["login"] == "missing"
    assert claude["login_place"] == str(login_dir(gateway) / ".credentials.json")
    assert claude["login_environment"]["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == str(login_dir(gateway))
    doctor = run_program("doctor", "--data-dir", gateway.data_dir, home=gateway.root, env=gateway.env)
    assert "logged_out" in doctor.stdout and HINT in doctor.stdout


def test_a_sign_in_that_ends_soon_is_told(new_keeper):
    ends = int(time.time() + 3 * 86400)
    gateway = new_keeper(more={"refreshTokenExpiresAt": ends * 1000})
    wait_until(lambda: "login.ends_soon" in events(gateway), "the audit has it")
    told = health(gateway)
    assert told["ends_soon"] is True and told["sign_in_ends_at"] == ends
    wait_until(lambda: any("ends soon" in line["message"] for line in gateway.log_lines()), "the log has it")


def test_the_drain_waits_for_the_keeper(new_keeper, service):
    service.delay = lambda: 3
    gateway = new_keeper(-60)
    wait_until(lambda: service.refreshes == 1, "the keeper asks")
    assert gateway.stop() == 0
    assert tokens_in(login_dir(gateway))["accessToken"] == service.access
    assert not (login_dir(gateway) / ".oauth_refresh.lock").exists()
    gateway.start()
    assert_success(App(gateway).run("after"))


def test_the_login_command_is_the_programs_own_with_the_two_directories(new_gateway, tmp_path):
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo 2.1.325; exit; }\n'
                       'echo "$*|$CLAUDE_SECURESTORAGE_CONFIG_DIR|$CLAUDE_CONFIG_DIR"\n')
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    done = run_program("agent", "login", "claude", "--data-dir", tmp_path / "data", home=home,
                       env={"CLAWDFORGE_CLAUDE_BIN": str(program)})
    assert done.stdout.strip() == f"auth login|{tmp_path}/data/login/claude|{tmp_path}/data/login/keeper"
    assert (tmp_path / "data" / "login" / "claude").stat().st_mode & 0o777 == 0o700


def test_a_login_can_be_kept_elsewhere(new_gateway, service, tmp_path):
    chosen = tmp_path / "logins" / "claude"
    service.log_in(chosen)
    config = tmp_path / "login.toml"
    config.write_text(f'[agents.claude]\nlogin_dir = "{chosen}"\n')
    gateway = new_gateway(env=keyless(), flags=["--config", str(config)])
    env = App(gateway).report()["env"]
    assert env["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == str(chosen)


def test_without_a_jail_the_keeper_goes_first(new_gateway, service):
    gateway = new_gateway(env=keyless(jail="off"), start=False)
    service.log_in(gateway.root / ".claude", SOON)
    gateway.start()
    wait_until(lambda: service.refreshes == 1, "the keeper renews it")
    assert_success(App(gateway).run("after"))
    assert (service.refreshes, service.reuses) == (1, 0)


# Row 21

@pytest.mark.timeout(180)
def test_twenty_at_once_over_five_expiries(new_keeper, service):
    """5 refreshes, no failure, no logout."""
    service.lifetimes = [SOON] * 4
    gateway = new_keeper(SOON, env={"CLAWDFORGE_MAX_CONCURRENT_RUNS": "20"})
    app = App(gateway)
    app.client()
    is_over = threading.Event()
    answers = []

    def ask():
        rounds_after = 0
        while rounds_after < 2:
            rounds_after += is_over.is_set()
            answers.append(app.run("hello"))

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        asking = [pool.submit(ask) for _ in range(20)]
        try:
            wait_until(lambda: service.refreshes == 5, "five expiries", 120)
        finally:
            is_over.set()
        for one in asking:
            one.result()
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    assert (service.refreshes, service.reuses) == (5, 0)
    assert tokens_in(login_dir(gateway))["accessToken"] == service.access
    print(f"{len(answers)} runs, {service.refreshes} refreshes, {service.refused} times 401")


@pytest.mark.timeout(120 + 6 * ROUNDS)
def test_kills_at_any_instant_lose_no_login(new_keeper, service):
    """Callers hang up, agents are killed, and so is the gateway, while the login is renewed again and
    again by an endpoint that exchanges at once and answers late."""
    seed = int(os.environ.get("CUSTODY_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    service.delay = lambda: chance.choice((0, 0.1, 0.5, 1.5))
    service.default_lifetime = 300.2  # renewed again as soon as it is there
    gateway = new_keeper(300)
    app, kills = App(gateway), {"gateway": 0, "agent": 0, "caller": 0}
    for number in range(ROUNDS):
        wires = [app.send({"sleep": 0.2}) for _ in range(2)]
        time.sleep(chance.random() * 0.6)  # the instant is what is tried
        what = chance.choice(("gateway", "agent", "caller", "caller"))
        kills[what] += 1
        if what == "agent":
            for pid in agents_of(gateway):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        for wire in wires:
            wire.socket.close()
        if what == "gateway":
            gateway.kill()
            gateway.start()
        assert service.reuses == 0, f"lost in round {number} of seed {seed}, after {kills}"
        assert not service.is_revoked
    service.default_lifetime = HOURS_8
    service.delay = lambda: 0
    await_state(gateway, "ok")
    assert_success(app.run("after all"))
    assert service.reuses == 0
    print(f"seed {seed}: {ROUNDS} rounds, {kills}, {service.refreshes} refreshes")


def agents_of(gateway):
    """Processes of runs: their working directory shows it. A keeper's is not among them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(f"{gateway.data_dir}/runs/"):
                found.append(int(entry.name))
    return found


def test_the_control_without_custody_loses_it(service, tmp_path):
    """The same program, with a login that it may write: killed between the exchange and the save it
    has lost the login for all; and copies of one login spend its token twice."""
    shared = tmp_path / "shared"
    service.log_in(shared, 60)
    service.delay = lambda: 5

    def begin(place):
        return subprocess.Popen([str(FAKE), "auth", "status", "--json"], stdout=subprocess.DEVNULL,
                                env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path),
                                     "CLAUDE_SECURESTORAGE_CONFIG_DIR": str(place)})

    killed = begin(shared)
    wait_until(lambda: service.refreshes == 1, "it asks")
    killed.kill()
    killed.wait()
    lock = shared / ".oauth_refresh.lock"
    assert lock.exists()
    os.utime(lock, (0, 0))  # a minute later
    begin(shared).wait()
    assert service.reuses == 1 and tokens_in(shared)["accessToken"] == ""

    service.delay = lambda: 0
    copies = [tmp_path / name for name in ("one", "two")]
    service.log_in(copies[0], 60)
    copies[1].mkdir()
    (copies[1] / ".credentials.json").write_bytes((copies[0] / ".credentials.json").read_bytes())
    for place in copies:
        begin(place).wait()
    assert service.reuses == 2 and tokens_in(copies[1])["accessToken"] == ""
