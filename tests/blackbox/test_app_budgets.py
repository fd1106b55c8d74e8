"""Budgets, rates and expiry of apps: they hold under concurrency, over restarts, and for runs and
turns alike."""
import concurrent.futures
import json
import re
import sqlite3
import time

import pytest

from agents import App, fake_env, waiting
from answers import assert_error
from faults import new_faulty, shim
from gateway import run_program, wait_until
from ledgers import assert_sound
from test_usage import keys, ledger_sums, usage

__all__ = ["new_faulty", "shim"]  # fixtures

ASKS = {"window": "day", "unit": "asks", "limit": 10}


@pytest.fixture
def claude(new_gateway):
    return new_gateway(env=fake_env(max_runs=8, max_queued_runs=200))


def budget(window, unit, limit):
    return {"window": window, "unit": unit, "limit": limit}


def reserved(gateway):
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
    count = ledger.execute("SELECT COUNT(*) FROM reservations").fetchone()[0]
    ledger.close()
    return count


def assert_nothing_reserved(gateway):
    wait_until(lambda: reserved(gateway) == 0, "all reservations are given back")


def refused(answer, window, unit, scope="app"):
    assert_error_code(answer, 429, "budget_exhausted")
    limit = answer.json()["limit"]
    assert (limit["window"], limit["unit"], limit["scope"]) == (window, unit, scope)
    return limit


def assert_error_code(answer, status, code):
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_of_64_callers_on_a_budget_of_10_exactly_10_are_admitted(claude):
    app = App(claude, "mine", budgets=[ASKS])
    app.client()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda number: app.run(f"ask {number}"), range(64)))
    codes = [answer.status_code for answer in answers]
    assert (codes.count(200), codes.count(429)) == (10, 54), codes
    for answer in answers:
        if answer.status_code == 429:
            limit = refused(answer, "day", "asks")
            assert limit["limit"] == 10 and limit["used"] + limit["reserved"] == 10
            assert 0 < int(answer.headers["Retry-After"]) <= 86400
            assert limit["resets_at"] % 86400 == 0
    assert usage(app.client())["totals"]["asks"] == 10
    assert_nothing_reserved(claude)
    claude.restart()
    refused(app.run("one more"), "day", "asks")
    assert_sound(claude)


def test_money_is_counted_and_the_rest_is_told_to_the_command_line(claude):
    app = App(claude, "mine", budgets=[budget("day", "usd", 1)])
    first = app.run({"report": True, "keys": keys(0.4, 10)})
    argv = first.json()["result"]["argv"]
    assert float(argv[argv.index("--max-budget-usd") + 1]) == 1
    argv = app.run({"report": True, "keys": keys(0.4, 10)}).json()["result"]["argv"]
    assert float(argv[argv.index("--max-budget-usd") + 1]) == pytest.approx(0.6)
    limit = refused(app.run("x"), "day", "usd")
    assert limit["used"] == pytest.approx(0.8) and limit["reserved"] == 0
    assert limit["limit"] == 1
    plain = App(claude, "plain")
    assert "--max-budget-usd" not in plain.report()["argv"]


def test_tokens_and_time_are_counted(claude):
    app = App(claude, "mine", budgets=[budget("hour", "tokens", 3_000)])
    assert app.run({"keys": keys(0, 900)}).status_code == 200
    refused(app.run("x"), "hour", "tokens")
    slow = App(claude, "slow", budgets=[budget("total", "agent_seconds", 0.2)])
    assert slow.run({"sleep": 0.3}).status_code == 200
    answer = slow.run("x")
    limit = refused(answer, "total", "agent_seconds")
    assert limit["used"] >= 0.3 and limit["resets_at"] is None
    assert "Retry-After" not in answer.headers


def test_what_was_used_before_a_budget_was_set_counts(claude):
    app = App(claude, "mine")
    for _ in range(3):
        app.run("x")
    patched = claude.admin.patch("/admin/tokens/mine", json={"budgets": [budget("week", "asks", 4)]})
    assert patched.status_code == 200, patched.text
    assert patched.json()["budgets"] == [budget("week", "asks", 4)]
    assert app.client().get("/whoami").json()["budgets"] == [budget("week", "asks", 4)]
    assert app.run("x").status_code == 200
    refused(app.run("x"), "week", "asks")
    claude.admin.patch("/admin/tokens/mine", json={"budgets": None})
    assert app.run("x").status_code == 200


def test_turns_and_runs_share_a_budget(claude):
    app = App(claude, "mine", budgets=[budget("month", "asks", 3)])
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    turn = app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi"})
    assert turn.status_code == 200 and turn.json()["turn_index"] == 1
    assert 'r=2' in turn.headers["RateLimit"]
    assert app.run("x").status_code == 200
    stream = app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi", "stream": True})
    assert stream.status_code == 200 and "event: done" in stream.text
    assert '"month-asks";r=0' in stream.headers["RateLimit"]
    refused(app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi"}), "month", "asks")
    refused(app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi", "stream": True}),
            "month", "asks")
    state = app.client().get(f"/sessions/{session}").json()
    assert state["turn_count"] == 2, "a refused turn has no number"
    counted, kept = ledger_sums(claude)
    assert counted == kept and counted[0] == 3
    assert_nothing_reserved(claude)
    assert_sound(claude)


def test_what_never_started_gives_everything_back(new_gateway):
    gateway = new_gateway(env=fake_env(claude_bin="/nowhere/claude"))
    app = App(gateway, "mine", budgets=[budget("total", "asks", 1)])
    for _ in range(3):
        assert_failure_or_missing(app.run("x"))
    assert_nothing_reserved(gateway)
    assert usage(app.client())["totals"]["asks"] == 0


def assert_failure_or_missing(answer):
    assert answer.status_code == 503, answer.text


def test_a_crash_gives_reservations_back_and_counts_what_ran(claude, tmp_path):
    app = App(claude, "mine", budgets=[budget("total", "asks", 2)])
    held = app.hold(tmp_path).begun()
    wait_until(lambda: app.client().get("/runs").json()["count"] == 1, "the run's row is there")
    assert reserved(claude) == 1
    claude.kill()
    held.let_go()
    claude.start()
    assert reserved(claude) == 0
    assert usage(app.client())["totals"]["asks"] == 1
    assert app.run("x").status_code == 200
    refused(app.run("x"), "total", "asks")
    assert_sound(claude)


def test_all_apps_together_have_budgets(new_gateway):
    gateway = new_gateway(env=fake_env(budgets="day:asks:3, total:usd:100"))
    apps = [App(gateway, name) for name in ("one", "two", "three", "four")]
    for app in apps[:3]:
        assert app.run("x").status_code == 200
    refused(apps[3].run("x"), "day", "asks", scope="gateway")
    totals = usage(gateway.admin, "/admin/usage")["totals"]
    assert totals["asks"] == 3


def test_asks_a_minute_are_a_bucket(claude):
    app = App(claude, "mine", asks_per_minute=2)
    assert [app.run("x").status_code for _ in range(2)] == [200, 200]
    answer = app.run("x")
    assert_error_code(answer, 429, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 30
    assert answer.json()["limit"]["window"] == "minute"
    assert app.run("x").headers.get("Retry-After")
    other = App(claude, "other", asks_per_minute=60)
    assert '"minute-asks";r=59' in other.run("x").headers["RateLimit"]
    assert '"minute-asks";q=60' in other.run("x").headers["RateLimit-Policy"]
    assert "RateLimit" not in App(claude, "plain").run("x").headers


def test_a_token_expires(claude):
    app = App(claude, "mine")
    assert app.run("x").status_code == 200
    claude.admin.patch("/admin/tokens/mine", json={"expires_at": int(time.time()) - 1})
    unknown = claude.client("cf_" + "x" * 43).get("/whoami")
    expired = app.client().get("/whoami")
    assert_error(expired, 401, "unauthorized")
    assert unknown.json()["detail"] == expired.json()["detail"]
    claude.admin.patch("/admin/tokens/mine", json={"expires_at": int(time.time()) + 1000})
    assert app.run("x").status_code == 200


def test_limits_are_checked_and_shown(claude):
    for fields in ({"weight": 0}, {"weight": 101}, {"asks_per_minute": 0}, {"expires_at": -1},
                   {"budgets": [{"window": "year", "unit": "usd", "limit": 1}]},
                   {"budgets": [ASKS, ASKS]}, {"upload_bytes_max": -1}):
        answer = claude.admin.post("/admin/tokens", json={"name": "x", **fields})
        assert_error(answer, 422, "validation_failed")
        assert answer.json()["errors"][0]["field"] == next(iter(fields))
    fields = {"weight": 7, "asks_per_minute": 60, "budgets": [ASKS], "upload_bytes_max": 1000,
              "expires_at": int(time.time()) + 100}
    app = App(claude, "mine", **fields)
    (shown,) = claude.admin.get("/admin/tokens").json()["tokens"]
    own = app.client().get("/whoami").json()
    assert {name: shown[name] for name in fields} == fields
    assert {name: own[name] for name in fields} == fields


def assert_full(answer, unit, limit, is_used):
    told = dict(answer.json()["limit"])
    assert is_used(told.pop("used"))
    assert told == {"scope": "app", "window": None, "unit": unit, "limit": limit, "reserved": 0,
                    "resets_at": None}


def test_a_refusal_by_what_an_app_has_at_once_names_its_limit(claude, tmp_path):
    app = App(claude, "mine", max_runs=1, max_sessions=1)
    held = app.hold(tmp_path).begun()
    assert_full(app.run("x"), "runs", 1, lambda used: used == 1)
    held.end()
    client = app.client()
    assert client.post("/sessions", json={"agent": "demo"}).status_code == 200
    refused = client.post("/sessions", json={"agent": "demo"})
    assert_error(refused, 429, "too_many_sessions")
    assert_full(refused, "sessions", 1, lambda used: used == 1)


def test_uploads_have_a_limit_of_the_apps_own(claude):
    app = App(claude, "mine", upload_bytes_max=10_000)
    assert app.client().post("/files", files={"file": ("a", b"x" * 5_000)}).status_code == 200
    answer = app.client().post("/files", files={"file": ("a", b"x" * 200)})
    assert_error(answer, 429, "uploads_full")
    assert_full(answer, "bytes", 10_000, lambda used: 5_000 < used <= 10_000)


def test_a_caller_that_would_rather_wait_is_parked(claude, tmp_path):
    app = App(claude, "mine", asks_per_minute=30, max_runs=1)
    held = app.hold(tmp_path).begun()
    assert_error_code(app.run("x"), 429, "too_many_runs")
    waiting = app.send("patient", wait=True)
    held.end()
    assert waiting.read().json()["result"] == "echo: patient"
    hurried = App(claude, "hurried", asks_per_minute=60)
    for _ in range(60):
        hurried.run("x", agent="demo")
    answers = [hurried.run("x", agent="demo", wait=True, timeout_secs=30) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    broke = App(claude, "broke", budgets=[budget("total", "asks", 1)])
    broke.run("x")
    refused(broke.run("x", wait=True), "total", "asks")


def limit_entries(answer):
    """The names of the limits that an answer tells of, the same in both headers."""
    names = [re.findall(r'"([a-z-]+)";[qr]=', answer.headers[name])
             for name in ("RateLimit-Policy", "RateLimit")]
    assert names[0] == names[1] and names[0], answer.headers
    return names[0]


def test_what_is_left_is_told_with_every_answer_also_with_refusals(claude, tmp_path):
    app = App(claude, "mine", asks_per_minute=4, max_runs=1,
              budgets=[budget("total", "asks", 3), budget("day", "usd", 9)])
    every = ["total-asks", "day-usd", "minute-asks"]
    answer = app.run("x")
    assert answer.status_code == 200 and limit_entries(answer) == every
    assert limit_entries(app.run({"error": "no"})) == every, "a failed run is an ask too"
    held = app.hold(tmp_path).begun()
    busy = app.run("x")
    assert_error(busy, 429, "too_many_runs")
    assert limit_entries(busy) == ["minute-asks"], "what is known without the ledger"
    assert '"minute-asks";r=1;' in busy.headers["RateLimit"], "what is refused is not counted"
    held.end()
    spent = app.run("x")
    assert refused(spent, "total", "asks") == {
        "scope": "app", "window": "total", "unit": "asks", "limit": 3, "used": 3, "reserved": 0,
        "resets_at": None}
    assert limit_entries(spent) == every and '"total-asks";r=0' in spent.headers["RateLimit"]
    plain = App(claude, "plain").run("x")
    assert plain.status_code == 200 and "RateLimit" not in plain.headers


def test_what_is_left_is_told_with_turns_too(claude):
    app = App(claude, "mine", asks_per_minute=2, budgets=[budget("total", "asks", 9)])
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]

    def turn(**fields):
        return app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi", **fields})
    for answer in (turn(), turn(stream=True)):
        assert answer.status_code == 200 and limit_entries(answer) == ["total-asks", "minute-asks"]
    over = turn()
    assert_error_code(over, 429, "rate_limited")
    assert limit_entries(over) == ["minute-asks"]
    assert over.json()["limit"]["window"] == "minute"
    wait = int(over.headers["Retry-After"])
    assert f'"minute-asks";r=0;t={wait}' in over.headers["RateLimit"] and 1 <= wait <= 30


def test_an_ask_that_its_budget_refuses_is_not_counted_in_its_minute(claude):
    app = App(claude, "mine", asks_per_minute=3, budgets=[budget("total", "asks", 1)])
    assert app.run("x", agent="demo").status_code == 200
    for _ in range(5):
        refused(app.run("x", agent="demo"), "total", "asks")


def test_a_caller_waits_for_a_budget_that_begins_again_in_time(new_faulty):
    gateway, faults = new_faulty()
    hour_begins = int(time.time()) // 3600 * 3600

    def set_clock(seconds):
        """So many after the beginning of this hour."""
        faults.clock_seconds = hour_begins + seconds - int(time.time())
    set_clock(1800)
    app = App(gateway, "mine", budgets=[budget("hour", "asks", 1)])
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    assert app.run("first", agent="demo").status_code == 200
    late = app.run("second", agent="demo", wait=True, timeout_secs=60)
    refused(late, "hour", "asks")
    assert 1000 < int(late.headers["Retry-After"]) <= 1800, "what would not end in time is refused"
    set_clock(3600 - 3)
    answer = app.run("second", agent="demo", wait=True, timeout_secs=60)
    assert answer.status_code == 200, answer.text
    refused(app.run("third", agent="demo"), "hour", "asks")
    set_clock(2 * 3600 - 3)
    turn = app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi", "wait": True})
    assert turn.status_code == 200, turn.text
    faults.clock_seconds = 0


def test_a_turn_waits_too(claude):
    app = App(claude, "mine", asks_per_minute=60)
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    for _ in range(60):
        app.run("x", agent="demo")
    answers = [app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi", "wait": True})
               for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3


def test_what_asks_used_is_in_the_metrics(claude):
    app = App(claude, "mine", budgets=[budget("total", "asks", 1)])
    app.run({"keys": keys(0.25, 10)})
    refused(app.run("x"), "total", "asks")
    metrics = claude.admin.get("/metrics").text
    assert 'clawdforge_asks_total{agent="claude",app="mine",model="sonnet"} 1' in metrics
    assert 'clawdforge_ask_cost_microusd_total{agent="claude",app="mine",model="sonnet"} 250000' in metrics
    assert ('clawdforge_asks_refused_total{agent="claude",app="mine",code="budget_exhausted",'
            'model="sonnet"} 1') in metrics


def test_the_command_line_sets_limits_and_shows_usage(claude):
    app = App(claude, "mine")
    env = {"CLAWDFORGE_URL": claude.url, "CLAWDFORGE_ADMIN_TOKEN": claude.admin_token,
           "CLAWDFORGE_TOKEN": app.token}
    done = run_program("token", "set", "mine", "--budgets", "day:usd:2.5,total:asks:7", "--weight",
                       "3", "--asks-per-minute", "9", "--json", home=claude.root, env=env)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["budgets"] == [budget("day", "usd", 2.5), budget("total", "asks", 7)]
    assert (shown["weight"], shown["asks_per_minute"]) == (3, 9)
    wrong = run_program("token", "set", "mine", "--budgets", "year:usd:1", home=claude.root, env=env)
    assert wrong.returncode != 0 and "window" in wrong.stderr
    app.run({"keys": keys(0.25, 10)})
    for arguments in (["--by", "app,model"], ["--all", "--by", "app,model", "--since", "2h"]):
        done = run_program("usage", *arguments, home=claude.root, env=env)
        assert done.returncode == 0, done.stderr
        heading, row = done.stdout.splitlines()
        assert heading.split("\t")[:3] == ["APP", "MODEL", "ASKS"]
        assert row.split("\t")[:3] == ["mine", "sonnet", "1"] and "0.2500" in row
    assert run_program("usage", "--since", "soon", home=claude.root, env=env).returncode == 2


def test_the_demo_agent_takes_a_budget(claude):
    app = App(claude, "mine", budgets=[budget("day", "usd", 1)])
    assert app.run("x", agent="demo").status_code == 200


def test_windows_go_with_their_app_and_what_was_used_stays(claude):
    fields = {"budgets": [budget("total", "asks", 2)]}
    App(claude, "mine", **fields).run("x", agent="demo")
    assert claude.admin.delete("/admin/tokens/mine").status_code == 200
    assert claude.admin.post("/admin/sweep").status_code == 200
    ledger = sqlite3.connect(claude.data_dir / "clawdforge.db", timeout=10)
    assert ledger.execute("SELECT COUNT(*) FROM budget_windows").fetchone() == (0,)
    ledger.close()
    again = App(claude, "mine", **fields)
    assert again.run("x", agent="demo").status_code == 200
    refused(again.run("x", agent="demo"), "total", "asks")


def test_places_go_to_apps_by_their_weights(new_gateway, tmp_path):
    """All asks wait before the first place is given back; then shares follow the weights."""
    gateway = new_gateway(env=fake_env(max_runs=1, max_queued_runs=200))
    weights = {"one": 1, "two": 2, "four": 4}
    apps = {name: App(gateway, name, weight=weight) for name, weight in weights.items()}
    held = App(gateway, "holder").hold(tmp_path).begun()
    wires = [app.send("x", agent="demo") for app in apps.values() for _ in range(14)]
    wait_until(lambda: waiting(gateway) == len(wires), "all of them wait")
    held.end()
    assert all(wire.read().status == 200 for wire in wires)
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
    order = [row[0] for row in ledger.execute(
        "SELECT app_name FROM runs WHERE app_name <> 'holder' ORDER BY run_id")]
    ledger.close()
    first = order[:21]
    for name, weight in weights.items():
        assert abs(first.count(name) - 3 * weight) <= 1, order


def test_callers_that_wait_get_through_when_the_accounts_limit_ends(claude):
    app, other = App(claude, "mine"), App(claude, "other")
    limited = app.run({"known": "usage_limit", "reset_in": 4})
    assert_error_code(limited, 429, "account_limit")
    assert 1 <= int(limited.headers["Retry-After"]) <= 5
    assert_error_code(other.run("x"), 429, "account_limit")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda who: who.run("x", wait=True), [app, other] * 3))
    assert [answer.status_code for answer in answers] == [200] * 6
