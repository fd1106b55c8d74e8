"""GET /usage and /admin/usage: what asks used, exactly, in rows and in series."""
import csv
import io
import sqlite3
import time

import pytest

from agents import App, fake_env
from answers import assert_error
from gateway import wait_until
from ledgers import assert_sound, change, findings

SUMS = {"asks", "failed", "input_tokens", "output_tokens", "cache_read_tokens",
        "cache_write_tokens", "cost_usd", "agent_ms"}


def keys(cost, tokens):
    """What the stand-in's result line says that it used."""
    return {"total_cost_usd": cost, "usage": {"input_tokens": tokens, "output_tokens": 2 * tokens,
                                              "cache_read_input_tokens": 3,
                                              "cache_creation_input_tokens": 4}}


@pytest.fixture
def claude(new_gateway):
    return new_gateway(env=fake_env())


def usage(client, path="/usage", **parameters):
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ledger_sums(gateway):
    """Of all usage rows, and of all rows of asks: they must be equal at every instant."""
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
    counted = ledger.execute(
        "SELECT SUM(asks), SUM(input_tokens), SUM(nano_usd), SUM(agent_ms) FROM (SELECT * FROM "
        "usage_minutes UNION ALL SELECT * FROM usage_hours)").fetchone()
    kept = ledger.execute(
        "SELECT COUNT(*), SUM(input_tokens), CAST(ROUND(SUM(cost_usd) * 1e9) AS INT), SUM(agent_ms)"
        " FROM (SELECT input_tokens, cost_usd, agent_ms FROM runs UNION ALL SELECT input_tokens, "
        "cost_usd, agent_ms FROM turns) WHERE agent_ms IS NOT NULL").fetchone()
    ledger.close()
    return [[value or 0 for value in row] for row in (counted, kept)]


def test_runs_and_turns_are_counted_with_what_they_used(claude):
    app, other = App(claude, "mine"), App(claude, "other")
    app.run({"keys": keys(0.1, 10)})
    app.run({"keys": keys(0.2, 20)}, model="opus")
    app.run({"error": "No luck."})
    other.run({"keys": keys(0.5, 1)})
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    assert app.client().post(f"/sessions/{session}/turn", json={"prompt": "hi"}).status_code == 200

    body = usage(app.client(), by="agent,model,kind")
    assert set(body) == {"from", "to", "by", "rows", "totals"}
    assert body["by"] == ["agent", "model", "kind"]
    rows = {(row["agent"], row["model"], row["kind"]): row for row in body["rows"]}
    assert all(set(row) == SUMS | {"agent", "model", "kind"} for row in body["rows"])
    opus = rows["claude", "opus", "run"]
    assert (opus["asks"], opus["input_tokens"], opus["output_tokens"]) == (1, 20, 40)
    assert (opus["cache_read_tokens"], opus["cache_write_tokens"], opus["cost_usd"]) == (3, 4, 0.2)
    assert [row["asks"] for key, row in rows.items() if key[2] == "turn"] == [1]
    assert rows["claude", "sonnet", "run"]["failed"] == 1
    assert body["totals"]["asks"] == 4 and body["totals"]["failed"] == 1

    everything = usage(claude.admin, "/admin/usage", by="app,day")
    assert {row["app"]: row["asks"] for row in everything["rows"]} == {"mine": 4, "other": 1}
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert everything["rows"][0]["day"] <= today
    assert usage(claude.admin, "/admin/usage", app="other")["totals"]["cost_usd"] == 0.5
    counted, kept = ledger_sums(claude)
    assert counted == kept and counted[0] == 5
    assert_sound(claude)


def test_an_app_sees_only_its_own_usage(claude):
    app, other = App(claude, "mine"), App(claude, "other")
    other.run("x")
    assert usage(app.client(), app="other", by="app")["rows"] == []
    assert_error(app.client().get("/admin/usage"), 403, "wrong_token_kind")
    assert_error(app.client().get("/usage?by=colour"), 422, "validation_failed")
    assert_error(app.client().get("/usage?step=7"), 422, "validation_failed")
    assert_error(app.client().get("/usage?step=60&from=0&to=900000"), 422, "validation_failed")


def test_rows_come_as_csv(claude):
    app = App(claude, "mine")
    app.run({"keys": keys(0.25, 10)})
    answer = app.client().get("/usage?by=app,agent", headers={"Accept": "text/csv"})
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert set(rows[0]) == SUMS | {"app", "agent"}
    assert (rows[0]["app"], rows[0]["asks"], rows[0]["cost_usd"]) == ("mine", "1", "0.25")


def test_series_have_a_value_for_each_step(claude):
    app = App(claude, "mine")
    app.run({"keys": keys(0.25, 10)})
    app.run({"error": "No luck."})
    now = int(time.time())
    body = usage(app.client(), by="agent", step=60, **{"from": now - 600, "to": now + 60})
    assert body["step"] == 60 and 10 <= len(body["times"]) <= 13
    (series,) = body["series"]
    assert series["key"] == {"agent": "claude"}
    assert all(len(series[name]) == len(body["times"]) for name in SUMS | {"p50_ms", "p99_ms"})
    assert sum(series["asks"]) == 2 and sum(series["failed"]) == 1
    assert len([time for time in series["p50_ms"] if time is not None]) == 1


def test_what_was_cut_off_is_counted_with_what_is_known(claude, tmp_path):
    app = App(claude, "mine")
    held = app.hold(tmp_path).begun()
    wait_until(lambda: app.client().get("/runs").json()["count"] == 1, "the run's row is there")
    claude.kill()
    held.let_go()
    claude.start()
    totals = usage(app.client())["totals"]
    assert (totals["asks"], totals["failed"], totals["cost_usd"]) == (1, 1, 0)
    counted, kept = ledger_sums(claude)
    assert counted == kept
    assert_sound(claude)


def test_minutes_become_hours_and_old_hours_go(claude):
    app = App(claude, "mine")
    app.run({"keys": keys(0.25, 10)})
    old = int(time.time()) - 49 * 3600
    change(claude, f"UPDATE usage_minutes SET at = {old // 60 * 60}")
    change(claude, "INSERT INTO usage_hours (at, app_name, agent, model, kind, asks) VALUES "
                   f"({(int(time.time()) - 401 * 86400) // 3600 * 3600}, 'x', 'y', 'z', 'run', 7)")
    before = usage(app.client())["totals"]
    assert claude.admin.post("/admin/sweep").status_code == 200
    assert usage(app.client())["totals"] == before
    ledger = sqlite3.connect(claude.data_dir / "clawdforge.db", timeout=10)
    assert ledger.execute("SELECT COUNT(*) FROM usage_minutes").fetchone() == (0,)
    assert ledger.execute("SELECT at, asks FROM usage_hours").fetchall() == [(old // 3600 * 3600, 1)]
    ledger.close()


def test_verify_finds_usage_that_is_too_low(claude):
    app = App(claude, "mine")
    app.run({"keys": keys(0.25, 10)})
    claude.stop()
    change(claude, "UPDATE usage_minutes SET input_tokens = input_tokens - 1")
    assert any("usage-rows" in line for line in findings(claude))
