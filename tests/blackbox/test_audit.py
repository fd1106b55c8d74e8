"""GET /admin/runs: the audit of runs, with filters and pages."""
import sqlite3

import pytest

from answers import assert_error
from gateway import wait_until
from wire import Wire, bearer, request

KEYS = {"run_id", "app_name", "agent", "model", "state", "started_at", "ended_at", "prompt_bytes",
        "result_bytes", "duration_ms", "outcome", "stop_reason", "exit_code", "exit_signal",
        "cost_usd", "usage", "instance_id"}
USAGE_KEYS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}
LONG_AGO = 1_000_000_000  # rows of another program; no run of ours is as old


def open_ledger(gateway):
    return sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10, isolation_level=None)


def insert_runs(gateway, rows):
    """Each row is a dictionary of columns; what it leaves out has a value that will do."""
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    for row in rows:
        row = {"agent": "claude", "state": "succeeded", "outcome": "ok", **row}
        ledger.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                       list(row.values()))
    ledger.execute("COMMIT")
    ledger.close()


def page(gateway, **parameters):
    """One page, in the promised shape."""
    with gateway.admin as admin:
        answer = admin.get("/admin/runs", params=parameters)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"runs", "count", "next_cursor"}
    assert body["count"] == len(body["runs"])
    assert all(set(run) == KEYS for run in body["runs"])
    return body


def asked(gateway, query):
    """The answer to a query that is sent as it stands here: a client would mend it."""
    with Wire(gateway) as wire:
        return wire.ask(request(f"GET /admin/runs?{query}", bearer(gateway.admin_token)))


def all_ids(gateway, **parameters):
    """The ids of all pages, and how many pages there were."""
    ids, pages = [], 0
    cursor = {}
    while True:
        body = page(gateway, **parameters, **cursor)
        ids += [run["run_id"] for run in body["runs"]]
        pages += 1
        if body["next_cursor"] is None:
            return ids, pages
        assert pages < 1000, "the pages do not end"
        cursor = {"cursor": body["next_cursor"]}


@pytest.fixture(scope="module")
def archive(shared):
    """A gateway with 250 runs of two apps, three in each second; gives it and the ids, newest
    first."""
    rows = [{"run_id": f"run-{i:04}", "app_name": "even" if i % 2 == 0 else "odd",
             "started_at": LONG_AGO + i // 3, "ended_at": LONG_AGO + i // 3 + 1}
            for i in range(250)]
    insert_runs(shared, rows)
    return shared, [row["run_id"] for row in reversed(rows)]


def test_without_runs_the_list_is_empty(gateway):
    assert page(gateway) == {"runs": [], "count": 0, "next_cursor": None}


def test_a_page_has_a_hundred_unless_it_is_asked_otherwise(archive):
    gateway, ids = archive
    body = page(gateway)
    assert [run["run_id"] for run in body["runs"]] == ids[:100]
    assert body["next_cursor"]
    assert page(gateway, limit=1000)["count"] == 250
    assert page(gateway, limit=1)["runs"][0]["run_id"] == ids[0]


@pytest.mark.parametrize("limit", [7, 50, 100, 125, 249, 250, 251, 1000])
def test_the_pages_hold_every_run_once_and_newest_first(archive, limit):
    gateway, ids = archive
    found, pages = all_ids(gateway, limit=limit)
    assert found == ids
    assert pages == -(-250 // limit), "no empty page at the end"


def test_the_filters_narrow_every_page(archive):
    gateway, ids = archive
    odd = [i for i in ids if int(i[-4:]) % 2]
    assert all_ids(gateway, app="odd", limit=30) == (odd, 5)
    since, until = LONG_AGO + 10, LONG_AGO + 20
    within = [i for i in ids if 10 <= int(i[-4:]) // 3 <= 20]
    assert len(within) == 33
    assert all_ids(gateway, since=since, until=until, limit=10) == (within, 4)
    both = [i for i in within if i in odd]
    assert all_ids(gateway, app="odd", since=since, until=until, limit=5)[0] == both
    assert all_ids(gateway, since=until, until=since) == ([], 1)


def test_an_unknown_app_has_no_runs(archive):
    gateway, _ = archive
    for app in ["nobody", "", "not a name", "'; DROP TABLE runs; --", "%", "ödd"]:
        assert page(gateway, app=app)["runs"] == []
    assert page(gateway, limit=1)["count"] == 1


def test_unknown_parameters_are_ignored(archive):
    gateway, ids = archive
    answer = asked(gateway, "limit=1&color=blue&%zz&&x=%&limits=0")
    assert [run["run_id"] for run in answer.json()["runs"]] == ids[:1]


def test_a_parameter_may_be_percent_encoded(archive):
    gateway, _ = archive
    answer = asked(gateway, "%6Cimit=%32&app=%6f%64%64")
    assert [run["app_name"] for run in answer.json()["runs"]] == ["odd", "odd"]


@pytest.mark.parametrize("query, fields", [
    ("limit=0", ["limit"]), ("limit=1001", ["limit"]), ("limit=-1", ["limit"]),
    ("limit=ten", ["limit"]), ("limit=1.5", ["limit"]), ("limit=", ["limit"]), ("limit", ["limit"]),
    ("limit=5&limit=5", ["limit"]), ("limit=99999999999999999999", ["limit"]),
    ("since=yesterday", ["since"]), ("since=-1", ["since"]), ("until=1e9", ["until"]),
    ("until=999999999999999", ["until"]), ("app=%zz", ["app"]), ("app=%", ["app"]),
    ("app=a%00b", ["app"]), ("cursor=nonsense", ["cursor"]), ("cursor=", ["cursor"]),
    ("limit=0&since=x&until=y", ["since", "until", "limit"])])
def test_a_bad_value_is_422_and_names_its_field(shared, query, fields):
    body = assert_error(asked(shared, query), 422, "validation_failed")
    assert sorted(error["field"] for error in body["errors"]) == sorted(fields)


def test_a_cursor_keeps_its_place_when_new_runs_begin(gateway):
    insert_runs(gateway, [{"run_id": f"r{i}", "app_name": "a", "started_at": LONG_AGO + i}
                          for i in range(4)])
    first = page(gateway, limit=2)
    insert_runs(gateway, [{"run_id": "r9", "app_name": "a", "started_at": LONG_AGO + 9}])
    rest = page(gateway, limit=2, cursor=first["next_cursor"])
    assert [run["run_id"] for run in rest["runs"]] == ["r1", "r0"]
    assert rest["next_cursor"] is None


def test_a_row_shows_all_that_was_kept(gateway):
    insert_runs(gateway, [{
        "run_id": "r1", "app_name": "a", "agent": "claude", "model": "opus", "state": "failed",
        "started_at": LONG_AGO, "ended_at": LONG_AGO + 3, "prompt_bytes": 12, "result_bytes": 0,
        "duration_ms": 2500, "outcome": "agent_failed", "stop_reason": "error", "exit_code": 1,
        "exit_signal": None, "cost_usd": 0.0125, "input_tokens": 1, "output_tokens": 2,
        "cache_read_tokens": 3, "cache_write_tokens": 4, "instance_id": "another-life"}])
    assert page(gateway)["runs"] == [{
        "run_id": "r1", "app_name": "a", "agent": "claude", "model": "opus", "state": "failed",
        "started_at": LONG_AGO, "ended_at": LONG_AGO + 3, "prompt_bytes": 12, "result_bytes": 0,
        "duration_ms": 2500, "outcome": "agent_failed", "stop_reason": "error", "exit_code": 1,
        "exit_signal": None, "cost_usd": 0.0125, "instance_id": "another-life",
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3,
                  "cache_write_tokens": 4}}]


def test_odd_rows_of_another_program_break_no_page(gateway):
    odd = [{"prompt_bytes": "many"}, {"ended_at": "yesterday"}, {"cost_usd": "dear"},
           {"exit_code": 10**15}, {"input_tokens": b"\xff\xfe"}, {"app_name": "\x01\"\\"},
           {"outcome": b"\xff"}, {"model": None}, {"state": "odd"}]
    insert_runs(gateway, [{"run_id": f"r{i}", "app_name": "a", "started_at": LONG_AGO + i,
                           "ended_at": LONG_AGO + i, **row} for i, row in enumerate(odd)])
    found, _ = all_ids(gateway, limit=2)
    assert found == [f"r{i}" for i in reversed(range(len(odd)))]


def test_only_the_admin_reads_the_audit(shared, shared_app):
    assert_error(shared.client().get("/admin/runs"), 401, "unauthorized")
    assert_error(shared.client(shared_app).get("/admin/runs"), 403, "wrong_token_kind")
    with shared.admin as admin:
        answer = admin.post("/admin/runs")
        assert_error(answer, 405, "method_not_allowed")
        assert answer.headers["Allow"] == "GET, HEAD"
        assert admin.get("/admin/runs/").status_code == 404


# Real runs, of the built-in agent.

def run_demo(client, prompt):
    answer = client.post("/run", json={"agent": "demo", "prompt": prompt})
    assert answer.status_code == 200, answer.text
    return answer


def test_a_run_is_in_the_audit_when_its_answer_is_there(gateway):
    client = gateway.client(gateway.mint("caller")["token"])
    answer = run_demo(client, "Guten Tag, wie geht es?")
    body = page(gateway)
    assert body["count"] == 1
    run = body["runs"][0]
    assert run["run_id"] == answer.headers["X-Clawdforge-Run-Id"]
    assert (run["app_name"], run["agent"]) == ("caller", "demo")
    assert (run["state"], run["outcome"]) == ("succeeded", "ok")
    assert run["prompt_bytes"] == len("Guten Tag, wie geht es?")
    assert run["result_bytes"] > 0
    assert run["stop_reason"] == answer.json()["stop_reason"]
    assert run["duration_ms"] == answer.json()["duration_ms"]
    assert abs(run["ended_at"] - run["started_at"]) <= 60
    assert run["usage"] is None or set(run["usage"]) == USAGE_KEYS
    assert run["instance_id"]


def test_runs_of_two_apps_are_told_apart_and_paged(gateway):
    apps = {name: gateway.client(gateway.mint(name)["token"]) for name in ("one", "two")}
    ids = [run_demo(apps["one" if i % 3 else "two"], f"prompt {i}").headers["X-Clawdforge-Run-Id"]
           for i in range(7)]
    assert all_ids(gateway, limit=2) == (ids[::-1], 4)
    assert all_ids(gateway, app="two", limit=2) == (ids[::-3], 2)


def test_no_prompt_and_no_answer_is_in_the_ledger(gateway):
    client = gateway.client(gateway.mint("caller")["token"])
    secret = "the-launch-code-is-4711"
    answer = run_demo(client, f"Keep this to yourself: {secret}")
    run_id = answer.headers["X-Clawdforge-Run-Id"]
    assert page(gateway)["count"] == 1
    kept = [path.read_bytes() for path in gateway.data_dir.glob("clawdforge.db*")]
    assert any(run_id.encode() in content for content in kept), "this is where it would be"
    assert not any(secret.encode() in content for content in kept)
    assert secret not in gateway.stderr()
    wait_until(lambda: not list((gateway.data_dir / "runs").iterdir()), "the run leaves no file")
    gateway.stop()
    for path in gateway.data_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_a_run_that_was_cut_off_shows_as_interrupted_after_a_restart(gateway):
    insert_runs(gateway, [{"run_id": "r1", "app_name": "a", "started_at": LONG_AGO,
                           "state": "running", "outcome": None, "instance_id": "an-earlier-life"}])
    assert page(gateway)["runs"][0]["state"] == "running"
    assert page(gateway)["runs"][0]["ended_at"] is None
    gateway.restart()
    run = page(gateway)["runs"][0]
    assert (run["state"], run["outcome"]) == ("interrupted", "interrupted")
    assert run["ended_at"] > LONG_AGO
    assert run["duration_ms"] is None, "nobody has seen its end"
