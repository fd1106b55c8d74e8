"""POST /admin/sweep, and the sweeper that works by itself."""
import hashlib
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from answers import assert_error
from gateway import wait_until

REPORT_KEYS = {"ok", "soft_closed", "hard_deleted", "files_deleted"}


def open_ledger(gateway):
    return sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10, isolation_level=None)


def sweep(gateway):
    """How many files went; the answer must have the promised shape."""
    with gateway.admin as admin:
        answer = admin.post("/admin/sweep")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == REPORT_KEYS
    assert (body["ok"], body["soft_closed"], body["hard_deleted"]) == (True, 0, 0)
    return body["files_deleted"]


def sweeps_logged(gateway):
    return [line for line in gateway.log_lines() if line["message"] == "swept"]


def files_of(gateway):
    uploads = gateway.data_dir / "uploads"
    return {path.name for path in uploads.iterdir()} if uploads.exists() else set()


def rows_of(gateway):
    ledger = open_ledger(gateway)
    rows = {row[0] for row in ledger.execute("SELECT file_token_sha256 FROM uploads")}
    ledger.close()
    return rows


def put(gateway, name, expires_in, *, file=True, row=True):
    """An upload as the gateway would have left it; gives its name on the disk."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    uploads = gateway.data_dir / "uploads"
    uploads.mkdir(mode=0o700, exist_ok=True)
    if file:
        (uploads / digest).write_text("text")
    if row:
        ledger = open_ledger(gateway)
        now = int(time.time())
        ledger.execute("INSERT INTO uploads (file_token_sha256, app_name, size, created_at, "
                       "expires_at) VALUES (?, 'caller', 4, ?, ?)", (digest, now, now + expires_in))
        ledger.close()
    return digest


def upload(client, text=b"some text", ttl=60):
    answer = client.post("/files", files={"file": ("notes.txt", text)}, params={"ttl_secs": ttl})
    assert answer.status_code == 200, answer.text
    token = answer.json()["file_token"]
    return token, hashlib.sha256(token.encode()).hexdigest()


def expire(gateway, digest):
    ledger = open_ledger(gateway)
    ledger.execute("UPDATE uploads SET expires_at = ? WHERE file_token_sha256 = ?",
                   (int(time.time()), digest))
    ledger.close()


def test_with_nothing_to_do_it_says_so(gateway):
    assert sweep(gateway) == 0
    assert sweep(gateway) == 0
    gateway.stop()  # what was logged is written by then
    assert not sweeps_logged(gateway)


def test_expired_uploads_go_and_the_others_stay(gateway):
    put(gateway, "expired", -1)
    fresh = put(gateway, "fresh", 600)
    assert sweep(gateway) == 1
    assert files_of(gateway) == {fresh}
    assert rows_of(gateway) == {fresh}
    logged = wait_until(lambda: sweeps_logged(gateway), "the sweep is in the log")
    assert [line["files_deleted"] for line in logged] == [1]
    with gateway.admin as admin:
        metrics = admin.get("/metrics").text
    assert "\nclawdforge_swept_files_total 1\n" in metrics


def test_more_than_a_page_goes_at_once(gateway):
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    for i in range(1203):
        digest = hashlib.sha256(str(i).encode()).hexdigest()
        ledger.execute("INSERT INTO uploads (file_token_sha256, app_name, size, created_at, "
                       "expires_at) VALUES (?, 'caller', 4, 1, 2)", (digest,))
    ledger.execute("COMMIT")
    ledger.close()
    assert sweep(gateway) == 1203
    assert rows_of(gateway) == set()


def test_a_brought_file_is_used_until_it_expires(gateway):
    client = gateway.client(gateway.mint("caller")["token"])
    token, digest = upload(client)
    assert files_of(gateway) == {digest}
    assert sweep(gateway) == 0
    run = {"agent": "demo", "prompt": "hello", "files": [token]}
    assert client.post("/run", json=run).status_code == 200
    assert files_of(gateway) == {digest}, "a run takes nothing away"
    expire(gateway, digest)
    assert_error(client.post("/run", json=run), 404, "file_not_found")
    assert sweep(gateway) == 1
    assert files_of(gateway) == set()
    assert_error(client.post("/run", json=run), 404, "file_not_found")


def test_the_files_of_a_revoked_app_are_swept(gateway):
    client = gateway.client(gateway.mint("caller")["token"])
    other = gateway.client(gateway.mint("other")["token"])
    upload(client, ttl=86400)
    _, kept = upload(other, ttl=86400)
    with gateway.admin as admin:
        assert admin.delete("/admin/tokens/caller").status_code == 200
    assert sweep(gateway) == 1
    assert files_of(gateway) == {kept}


def test_a_row_whose_file_has_gone_is_no_fault(gateway):
    put(gateway, "expired", -1, file=False)
    assert sweep(gateway) == 1
    assert rows_of(gateway) == set()
    client = gateway.client(gateway.mint("caller")["token"])
    token, digest = upload(client)
    os.unlink(gateway.data_dir / "uploads" / digest)
    answer = client.post("/run", json={"agent": "demo", "prompt": "hello", "files": [token]})
    assert_error(answer, 404, "file_not_found")


def test_it_sweeps_by_itself(new_gateway):
    gateway = new_gateway(flags=["--sweep-interval-secs", "1"])
    put(gateway, "expired", -1)
    fresh = put(gateway, "fresh", 600)
    wait_until(lambda: files_of(gateway) == {fresh}, "the sweeper comes by")
    wait_until(lambda: rows_of(gateway) == {fresh}, "the row goes too")


def test_a_start_brings_files_and_rows_together(gateway):
    whole = put(gateway, "whole", 600)
    gateway.stop()
    put(gateway, "no-file", 600, file=False)
    put(gateway, "no-row", 600, row=False)
    (gateway.data_dir / "uploads" / ".arriving-3").write_text("half a fi")
    gateway.start()
    wait_until(lambda: files_of(gateway) == {whole}, "files that no row knows go")
    assert rows_of(gateway) == {whole}


def test_what_runs_have_left_goes_at_the_next_start(gateway):
    gateway.stop()
    left = gateway.data_dir / "runs" / "left-over" / "work" / "deep"
    left.mkdir(parents=True)
    (left / "file").write_text("text")
    (left / "link").symlink_to("/etc")
    left.chmod(0)
    gateway.start()
    assert list((gateway.data_dir / "runs").iterdir()) == []


def test_a_ledger_that_is_locked_is_503_and_loses_nothing(gateway):
    expired = put(gateway, "expired", -1)
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    with gateway.admin as admin:
        answer = admin.post("/admin/sweep")
    assert_error(answer, 503, "ledger_unavailable")
    ledger.execute("ROLLBACK")
    ledger.close()
    assert rows_of(gateway) == {expired}
    assert sweep(gateway) == 1
    assert rows_of(gateway) == set()


def test_only_the_admin_sweeps(shared, shared_app):
    assert_error(shared.client().post("/admin/sweep"), 401, "unauthorized")
    assert_error(shared.client(shared_app).post("/admin/sweep"), 403, "wrong_token_kind")
    with shared.admin as admin:
        answer = admin.get("/admin/sweep")
        assert_error(answer, 405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("body", [b"", b"{}", b"not json", b"\x00" * 1000])
def test_a_body_is_not_looked_at(shared, body):
    with shared.admin as admin:
        assert admin.post("/admin/sweep", content=body).status_code == 200


def test_many_sweeps_at_once_count_each_file_once(gateway):
    for i in range(50):
        put(gateway, str(i), -1)
    token = gateway.admin_token

    def one(_):
        with gateway.client(token) as client:
            return client.post("/admin/sweep").json()["files_deleted"]

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(16))) == 50
    assert files_of(gateway) == set()


def ids(ledger, column, table):
    return [row[0] for row in ledger.execute(f"SELECT {column} FROM {table} ORDER BY {column}")]


@pytest.mark.parametrize("age", [None, 100])
def test_the_audit_is_kept_for_as_long_as_it_is_wanted(new_gateway, age):
    gateway = new_gateway(env={"CLAWDFORGE_AUDIT_MAX_AGE_SECS": str(age)} if age else {})
    ledger = open_ledger(gateway)
    now = int(time.time())
    ledger.executemany("INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at) "
                       "VALUES (?, 'a', 'demo', 'succeeded', ?, ?)",
                       [(f"old{i:04}", now - 1000, now - 900) for i in range(2500)] +
                       [("young", now - 50, now - 40)])
    ledger.executemany("INSERT INTO session_events (session_id, app_name, event, at) "
                       "VALUES (?, 'a', 'turn', ?)",
                       [("old", now - 1000)] * 2500 + [("young", now - 50)])
    sweep(gateway)
    runs, lines = ids(ledger, "run_id", "runs"), ids(ledger, "session_id", "session_events")
    ledger.close()
    if age is None:
        assert (len(runs), len(lines)) == (2501, 2501)
        return
    assert (runs, lines) == (["young"], ["young"])
    gateway.stop()
    assert [line["audit_rows_deleted"] for line in sweeps_logged(gateway)] == [5000]
