"""The file that outlives the process: damaged, newer, locked, or written by others."""
import hashlib
import secrets
import sqlite3

import pytest

from answers import assert_error
from gateway import SLACK_SECONDS, refused_start, wait_until
from wire import Wire, bearer, request

TABLES = {
    "sessions": {"session_id", "app_name", "agent", "model", "meta", "created_at", "last_turn_at",
                 "closed_at", "close_reason", "turn_count"},
    "session_events": {"session_id", "event", "at", "meta"},
    "runs": set(), "tokens": {"name"}, "uploads": set()}


def ledger_file(gateway):
    return gateway.data_dir / "clawdforge.db"


def open_ledger(gateway):
    return sqlite3.connect(ledger_file(gateway), timeout=10, isolation_level=None)


def sentence_of_refusal(gateway):
    """Starts it on the gateway's directory, which must not work; gives the reason."""
    code, sentence = refused_start(gateway.root, data_dir=gateway.data_dir)
    assert code == 1
    assert not (gateway.data_dir / "port").exists()
    return sentence


def test_the_tables_of_the_contract_are_there_in_wal_mode(gateway):
    ledger = open_ledger(gateway)
    assert ledger.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for table, columns in TABLES.items():
        found = {row[1] for row in ledger.execute(f"PRAGMA table_info({table})")}
        assert found and columns <= found, table
    ledger.close()


@pytest.mark.parametrize("damage", [
    lambda content: b"this is not a database at all, whatever its name says" * 100,
    lambda content: content[:16] + b"\xff" * (len(content) - 16),
    lambda content: content[:len(content) // 2]])
def test_a_damaged_file_stops_the_start_with_one_sentence(gateway, damage):
    for i in range(50):
        gateway.mint(f"app-{i}")
    gateway.stop()
    path = ledger_file(gateway)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    for rest in gateway.data_dir.glob("clawdforge.db-*"):
        rest.unlink()
    sentence = sentence_of_refusal(gateway)
    assert "ledger" in sentence.lower() or path.name in sentence
    assert path.read_bytes() == damaged, "nothing is overwritten"


def test_a_file_of_a_newer_version_stops_the_start_with_one_sentence(gateway):
    gateway.stop()
    ledger = open_ledger(gateway)
    ledger.row_factory = sqlite3.Row
    tables = [row["name"] for row in ledger.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'")]
    histories = [t for t in tables if "migration" in t or "schema" in t]
    if histories:
        row = dict(ledger.execute(f"SELECT * FROM {histories[0]} ORDER BY 1 DESC").fetchone())
        number = next(iter(row))
        assert isinstance(row[number], int)
        row[number] = 9999
        marks = ", ".join("?" for _ in row)
        ledger.execute(f"INSERT INTO {histories[0]} ({', '.join(row)}) VALUES ({marks})",
                       list(row.values()))
    else:
        assert ledger.execute("PRAGMA user_version").fetchone()[0] > 0
        ledger.execute("PRAGMA user_version = 9999")
    ledger.close()
    assert "newer" in sentence_of_refusal(gateway)


def test_a_directory_in_the_ledgers_place_stops_the_start(gateway):
    gateway.stop()
    for path in gateway.data_dir.glob("clawdforge.db*"):
        path.unlink()
    ledger_file(gateway).mkdir()
    sentence_of_refusal(gateway)


@pytest.mark.timeout(180)
def test_a_ledger_that_stays_locked_is_503_and_keeps_nothing(gateway):
    app = gateway.mint("before")["token"]
    admin = gateway.admin
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    answer = admin.post("/admin/tokens", json={"name": "never"})
    assert_error(answer, 503, "ledger_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert gateway.whoami(app) == 200, "looking a token up needs no ledger"
    assert gateway.client().get("/healthz").status_code == 200
    assert_error(gateway.client().get("/readyz"), 503, "ledger_unavailable")
    ledger.execute("ROLLBACK")
    ledger.close()

    def minted():
        again = admin.post("/admin/tokens", json={"name": "never"})
        return again if again.status_code == 200 else None
    assert gateway.whoami(wait_until(minted, "writes are taken again").json()["token"]) == 200
    wait_until(lambda: gateway.client().get("/readyz").status_code == 200, "ready again")


@pytest.mark.parametrize("cidrs", ["nonsense", "[", "[1]", '["10.0.0.0/99"]', "{}", '"127.0.0.1"',
                                   "[null]"])
def test_a_foreign_row_with_a_broken_address_list_opens_no_door(gateway, cidrs):
    good = gateway.mint("good")["token"]
    token = "cf_" + secrets.token_urlsafe(32)
    other = "cf_" + secrets.token_urlsafe(32)
    ledger = open_ledger(gateway)
    insert = "INSERT INTO tokens (name, token_sha256, ip_cidrs) VALUES (?, ?, ?)"
    ledger.execute(insert, ("broken", hashlib.sha256(token.encode()).hexdigest(), cidrs))
    ledger.execute(insert, ("whole", hashlib.sha256(other.encode()).hexdigest(), "[]"))
    ledger.close()
    wait_until(lambda: gateway.whoami(other) == 200, "the row beside it works", 1 + SLACK_SECONDS)
    assert gateway.whoami(token) in (401, 403)
    assert gateway.whoami(good) == 200
    gateway.restart()
    assert (gateway.whoami(token) in (401, 403), gateway.whoami(other)) == (True, 200)


def test_foreign_rows_with_odd_values_do_no_harm(gateway):
    good = gateway.mint("good")["token"]
    ledger = open_ledger(gateway)
    for name, digest in (("short", "abc"), ("upper", "A" * 64), ("blob", b"\x00" * 32),
                         ("NOT a name", "b" * 64), ("", "c" * 64), ("x" * 5000, "d" * 64)):
        ledger.execute("INSERT INTO tokens (name, token_sha256) VALUES (?, ?)", (name, digest))
    ledger.execute("INSERT INTO tokens (name, token_sha256, event_format, max_runs, created_at) "
                   "VALUES ('odd', ?, 'morse', -5, -1)", ("e" * 64,))
    ledger.execute("INSERT INTO tokens (name, token_sha256) VALUES ('marker', ?)",
                   (hashlib.sha256(b"cf_marker").hexdigest(),))
    ledger.close()
    wait_until(lambda: gateway.whoami("cf_marker") == 200, "the rows are read", 1 + SLACK_SECONDS)
    assert gateway.whoami(good) == 200
    listed = gateway.admin.get("/admin/tokens")
    assert listed.status_code == 200
    assert {"good", "marker"} <= {app["name"] for app in listed.json()["tokens"]}
    assert gateway.admin.delete("/admin/tokens/good").status_code == 200
    gateway.restart()
    assert gateway.whoami("cf_marker") == 200


def test_a_sweep_of_other_programs_writes_does_not_slow_the_lookups(gateway):
    token = gateway.mint("steady")["token"]
    ledger = open_ledger(gateway)
    with Wire(gateway) as wire:
        for i in range(100):
            ledger.execute("INSERT INTO session_events (session_id, event, at) VALUES (?, 'x', 1)",
                           (f"s{i}",))
            assert wire.ask(request("GET /whoami", bearer(token))).status == 200
    ledger.close()
