"""GET /admin/runs, /admin/sessions and /admin/events: the audit, with filters and pages."""
import sqlite3
import urllib.parse

import pytest

from answers import assert_error
from gateway import Gateway, wait_until
from sessions import STATE_KEYS
from wire import Wire, bearer, request

KEYS = {"run_id", "app_name", "agent", "model", "state", "started_at", "ended_at", "prompt_bytes",
        "result_bytes", "duration_ms", "outcome", "error", "stop_reason", "exit_code", "exit_signal",
        "cost_usd", "usage", "prompt", "instance_id"}
USAGE_KEYS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}
EVENT_KEYS = {"session_id", "app_name", "event", "at", "actor", "meta"}
LISTS = {"runs": KEYS, "sessions": STATE_KEYS, "events": EVENT_KEYS}
LONG_AGO = 1_000_000_000  # rows of another program; no run of ours is as old


def open_ledger(gateway):
    return sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10, isolation_level=None)


def insert(gateway, table, rows):
    """Each row is a dictionary of columns."""
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    for row in rows:
        ledger.execute(f"INSERT INTO {table} ({', '.join(row)}) "
                       f"VALUES ({', '.join('?' * len(row))})", list(row.values()))
    ledger.execute("COMMIT")
    ledger.close()


def insert_runs(gateway, rows):
    """What a row leaves out has a value that will do."""
    usual = {"agent": "claude", "state": "succeeded", "outcome": "ok"}
    insert(gateway, "runs", [{**usual, **row} for row in rows])


def page(gateway, name="runs", **parameters):
    """One page of a list, in the promised shape."""
    answer = asked(gateway, urllib.parse.urlencode(parameters), name)
    assert answer.status == 200, answer.body
    body = answer.json()
    assert set(body) == {name, "count", "next_cursor"}
    assert body["count"] == len(body[name])
    assert all(set(row) == LISTS[name] for row in body[name])
    return body


def asked(gateway, query, name="runs"):
    """The answer to a query that is sent as it stands here: a client would mend it."""
    with Wire(gateway) as wire:
        return wire.ask(request(f"GET /admin/{name}?{query}", bearer(gateway.admin_token)))


def ids_in(body, name="runs"):
    return [row["run_id" if name == "runs" else "session_id"] for row in body[name]]


def all_ids(gateway, name="runs", **parameters):
    """The ids of all pages, and how many pages there were."""
    ids, pages = [], 0
    cursor = {}
    while True:
        body = page(gateway, name, **parameters, **cursor)
        ids += ids_in(body, name)
        pages += 1
        if body["next_cursor"] is None:
            return ids, pages
        assert pages < 1000, "the pages do not end"
        cursor = {"cursor": body["next_cursor"]}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """A gateway with 250 runs, sessions and events of two apps, three in each second; every third
    session is open."""
    place = tmp_path_factory.mktemp("archives") / "gateway"
    gateway = Gateway(place, env={"CLAWDFORGE_SWEEP_INTERVAL_SECS": "86400"}).start()
    rows = [(f"old-{i:04}", "even" if i % 2 == 0 else "odd", LONG_AGO + i // 3) for i in range(250)]
    insert_runs(gateway, [{"run_id": name, "app_name": app, "started_at": at, "ended_at": at + 1}
                          for name, app, at in rows])
    insert(gateway, "sessions", [
        {"session_id": name, "app_name": app, "agent": "claude", "created_at": at,
         "closed_at": at + 1 if int(name[-4:]) % 3 else None} for name, app, at in rows])
    insert(gateway, "session_events", [
        {"session_id": name, "app_name": app, "event": "create", "at": at}
        for name, app, at in rows])
    yield gateway
    gateway.finish()


@pytest.fixture(params=LISTS)
def archive(request, archives):
    """The gateway, the name of a list of it, and the ids in it, newest first."""
    return archives, request.param, [f"old-{i:04}" for i in reversed(range(250))]


def test_without_runs_the_list_is_empty(gateway):
    for name in LISTS:
        assert page(gateway, name) == {name: [], "count": 0, "next_cursor": None}


def test_a_page_has_a_hundred_unless_it_is_asked_otherwise(archive):
    gateway, name, ids = archive
    body = page(gateway, name)
    assert ids_in(body, name) == ids[:100]
    assert body["next_cursor"]
    assert page(gateway, name, limit=1000)["count"] == 250
    assert ids_in(page(gateway, name, limit=1), name) == ids[:1]


@pytest.mark.parametrize("limit", [7, 50, 100, 125, 249, 250, 251, 1000])
def test_the_pages_hold_every_row_once_and_newest_first(archive, limit):
    gateway, name, ids = archive
    found, pages = all_ids(gateway, name, limit=limit)
    assert found == ids
    assert pages == -(-250 // limit), "no empty page at the end"


def test_the_filters_narrow_every_page(archive):
    gateway, name, ids = archive
    odd = [i for i in ids if int(i[-4:]) % 2]
    assert all_ids(gateway, name, app="odd", limit=30) == (odd, 5)
    since, until = LONG_AGO + 10, LONG_AGO + 20
    within = [i for i in ids if 10 <= int(i[-4:]) // 3 <= 20]
    assert len(within) == 33
    assert all_ids(gateway, name, since=since, until=until, limit=10) == (within, 4)
    both = [i for i in within if i in odd]
    assert all_ids(gateway, name, app="odd", since=since, until=until, limit=5)[0] == both
    assert all_ids(gateway, name, since=until, until=since) == ([], 1)


@pytest.mark.parametrize("value, has_closed", [("true", True), ("1", True), ("false", False),
                                               ("0", False)])
def test_closed_sessions_are_listed_unless_they_are_not_wanted(archives, value, has_closed):
    found, _ = all_ids(archives, "sessions", include_closed=value, limit=40)
    assert found == [f"old-{i:04}" for i in reversed(range(250)) if has_closed or i % 3 == 0]
    assert_error(asked(archives, "include_closed=maybe", "sessions"), 422, "validation_failed")


def test_an_unknown_app_has_nothing(archive):
    gateway, name, _ = archive
    for app in ["absent", "", "not a name", "'; DROP TABLE runs; --", "%", "ödd"]:
        assert page(gateway, name, app=app)[name] == []
    assert page(gateway, name, limit=1)["count"] == 1


def test_unknown_parameters_are_ignored(archive):
    gateway, name, ids = archive
    answer = asked(gateway, "limit=1&color=blue&%zz&&x=%&limits=0", name)
    assert ids_in(answer.json(), name) == ids[:1]


def test_a_parameter_may_be_percent_encoded(archive):
    gateway, name, _ = archive
    answer = asked(gateway, "%6Cimit=%32&app=%6f%64%64", name)
    assert [row["app_name"] for row in answer.json()[name]] == ["odd", "odd"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("query, fields", [
    ("limit=0", ["limit"]), ("limit=1001", ["limit"]), ("limit=-1", ["limit"]),
    ("limit=ten", ["limit"]), ("limit=1.5", ["limit"]), ("limit=", ["limit"]), ("limit", ["limit"]),
    ("limit=5&limit=5", ["limit"]), ("limit=99999999999999999999", ["limit"]),
    ("since=yesterday", ["since"]), ("since=-1", ["since"]), ("until=1e9", ["until"]),
    ("until=999999999999999", ["until"]), ("app=%zz", ["app"]), ("app=%", ["app"]),
    ("app=a%00b", ["app"]), ("cursor=nonsense", ["cursor"]), ("cursor=", ["cursor"]),
    ("limit=0&since=x&until=y", ["since", "until", "limit"])])
def test_a_bad_value_is_422_and_names_its_field(shared, name, query, fields):
    body = assert_error(asked(shared, query, name), 422, "validation_failed")
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
        "duration_ms": 2500, "outcome": "agent_failed", "error": "It failed.",
        "stop_reason": "error", "exit_code": 1,
        "exit_signal": None, "cost_usd": 0.0125, "input_tokens": 1, "output_tokens": 2,
        "cache_read_tokens": 3, "cache_write_tokens": 4, "instance_id": "another-life"}])
    assert page(gateway)["runs"] == [{
        "run_id": "r1", "app_name": "a", "agent": "claude", "model": "opus", "state": "failed",
        "started_at": LONG_AGO, "ended_at": LONG_AGO + 3, "prompt_bytes": 12, "result_bytes": 0,
        "duration_ms": 2500, "outcome": "agent_failed", "error": "It failed.",
        "stop_reason": "error", "exit_code": 1,
        "exit_signal": None, "cost_usd": 0.0125, "prompt": None, "instance_id": "another-life",
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3,
                  "cache_write_tokens": 4}}]


def test_odd_rows_of_another_program_break_no_page(gateway):
    odd = [{"prompt_bytes": "many"}, {"ended_at": "yesterday"}, {"cost_usd": "dear"},
           {"exit_code": 10**15}, {"input_tokens": b"\xff\xfe"}, {"app_name": "\x01\"\\"},
           {"outcome": b"\xff"}, {"model": None}]
    insert_runs(gateway, [{"run_id": f"r{i}", "app_name": "a", "started_at": LONG_AGO + i,
                           "ended_at": LONG_AGO + i, **row} for i, row in enumerate(odd)])
    found, _ = all_ids(gateway, limit=2)
    assert found == [f"r{i}" for i in reversed(range(len(odd)))]


def test_a_run_with_a_state_that_no_run_ends_with_is_left_out(gateway):
    states = ["succeeded", "odd", "failed", "running", "cancelled"]
    insert_runs(gateway, [{"run_id": f"r{i}", "app_name": "a", "started_at": LONG_AGO + i,
                           "ended_at": LONG_AGO + i, "state": state}
                          for i, state in enumerate(states)])
    found, _ = all_ids(gateway, limit=2)
    assert found == ["r4", "r2", "r0"]


@pytest.mark.parametrize("name", LISTS)
def test_only_the_admin_reads_the_audit(shared, shared_app, name):
    path = f"/admin/{name}"
    assert_error(shared.client().get(path), 401, "unauthorized")
    assert_error(shared.client(shared_app).get(path), 403, "wrong_token_kind")
    with shared.admin as admin:
        answer = admin.post(path)
        assert_error(answer, 405, "method_not_allowed")
        assert answer.headers["Allow"] == "GET, HEAD"
        assert admin.get(path + "/").status_code == 404


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
    assert run["duration_ms"] is None, "its real end is not known"
