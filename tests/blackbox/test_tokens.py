"""Apps and their tokens: minting, listing, rotating, revoking, and what is kept of them."""
import hashlib
import re
import secrets
import sqlite3
import time

import pytest

from answers import assert_error
from gateway import SLACK_SECONDS, wait_until
from wire import Wire, bearer, request

TOKEN = re.compile(r"cf_[A-Za-z0-9_-]{43}")
LIMITS_UNSAID = dict.fromkeys(["expires_at", "asks_per_minute", "budgets", "upload_bytes_max",
                               "weight"])
POLICY_UNSAID = dict.fromkeys(["agents", "models", "permission_mode_max", "mcp", "mcp_urls",
                               "webhook_urls", "workspaces", *LIMITS_UNSAID])
LISTED_KEYS = {"name", "ip_cidrs", "event_format", "max_sessions", "max_runs", "created_at",
               "last_used_at", *POLICY_UNSAID}


def listed(gateway):
    with gateway.admin as admin:
        return {app["name"]: app for app in admin.get("/admin/tokens").json()["tokens"]}


def open_ledger(gateway):
    return sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10, isolation_level=None)


def digest_column(ledger, token):
    """The column of `tokens` with the token's SHA-256, and how to write a digest into it."""
    ledger.row_factory = sqlite3.Row
    digest = hashlib.sha256(token.encode())
    for row in ledger.execute("SELECT * FROM tokens"):
        for column in row.keys():
            if row[column] == digest.digest():
                return column, lambda text: hashlib.sha256(text.encode()).digest()
            if row[column] == digest.hexdigest():
                return column, lambda text: hashlib.sha256(text.encode()).hexdigest()
    raise AssertionError("no column of tokens holds the token's SHA-256")


# The audit

def token_events(gateway, app):
    with gateway.admin as admin:
        events = admin.get("/admin/events", params={"app": app}).json()["events"]
    assert all(event["session_id"] is None for event in events)
    return [(event["event"], event["meta"]) for event in reversed(events)]


def test_what_the_admin_does_to_a_token_is_in_the_audit_with_who_did_it(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.9",
                               "CLAWDFORGE_ALLOW_CIDRS": "192.0.2.0/24"})
    gateway.mint("noted")
    with gateway.client(gateway.admin_token, source="127.0.0.9") as proxied:
        far = {"X-Forwarded-For": "192.0.2.7"}
        assert proxied.patch("/admin/tokens/noted", headers=far,
                             json={"mcp": "named"}).status_code == 200
        assert proxied.patch("/admin/tokens/noted", headers=far,
                             json={"mcp": "all"}).status_code == 422
        assert proxied.post("/admin/tokens/noted/rotate", headers=far).status_code == 200
        assert proxied.delete("/admin/tokens/noted", headers=far).status_code == 200
    assert token_events(gateway, "noted") == [
        ("token_mint", {"by": "admin_token", "address": "127.0.0.1"}),
        ("token_change", {"by": "admin_token", "address": "192.0.2.7"}),
        ("token_rotate", {"by": "admin_token", "address": "192.0.2.7"}),
        ("token_revoke", {"by": "admin_token", "address": "192.0.2.7"})]


def test_what_was_refused_is_not_in_the_audit(gateway):
    gateway.mint("once")
    with gateway.admin as admin:
        assert admin.post("/admin/tokens", json={"name": "once"}).status_code == 409
        assert admin.post("/admin/tokens/absent/rotate").status_code == 404
        assert admin.delete("/admin/tokens/absent").status_code == 404
    assert [event for event, _ in token_events(gateway, "once")] == ["token_mint"]
    assert token_events(gateway, "absent") == []


def test_the_audit_of_a_token_survives_a_kill(gateway):
    gateway.mint("kept")
    gateway.kill()
    gateway.start()
    assert [event for event, _ in token_events(gateway, "kept")] == ["token_mint"]


# Minting and listing

def test_minting_answers_with_exactly_name_token_and_cidrs(shared):
    body = shared.mint("minted", ip_cidrs=["127.0.0.0/8", "2001:db8::/32"])
    assert set(body) == {"name", "token", "ip_cidrs"}
    assert body["name"] == "minted"
    assert TOKEN.fullmatch(body["token"])
    assert body["ip_cidrs"] == ["127.0.0.0/8", "2001:db8::/32"]


def test_every_token_is_another_one(shared):
    tokens = {shared.mint(f"another-{i}")["token"] for i in range(10)}
    assert len(tokens) == 10


def test_the_list_is_sorted_and_shows_no_token(gateway):
    before = int(time.time())
    gateway.mint("b", event_format="simple", max_sessions=3, max_runs=4, ip_cidrs=["10.0.0.0/8"])
    gateway.mint("c")
    gateway.mint("a")
    answer = gateway.admin.get("/admin/tokens")
    assert set(answer.json()) == {"tokens"}
    apps = answer.json()["tokens"]
    assert [app["name"] for app in apps] == ["a", "b", "c"]
    assert all(set(app) == LISTED_KEYS for app in apps)
    assert "cf_" not in answer.text
    created = apps[1].pop("created_at")
    assert before <= created <= int(time.time())
    assert apps[1] == {"name": "b", "ip_cidrs": ["10.0.0.0/8"], "event_format": "simple",
                       "max_sessions": 3, "max_runs": 4, "last_used_at": None, **POLICY_UNSAID}
    assert (apps[0]["event_format"], apps[0]["max_sessions"], apps[0]["max_runs"]) == (None,) * 3


def test_whoami_tells_an_app_and_the_admin_apart(shared):
    token = shared.mint("asking", event_format="acp", max_runs=2, ip_cidrs=["127.0.0.0/8"])["token"]
    body = shared.client(token).get("/whoami").json()
    assert "demo" in body.pop("agents")
    assert body == {
        "ok": True, "kind": "app", "name": "asking", "ip_cidrs": ["127.0.0.0/8"],
        "event_format": "acp", "max_sessions": None, "max_runs": 2, "models": None, **LIMITS_UNSAID,
        "permission_mode_max": "approve_all", "mcp": "none", "mcp_urls": None, "webhook_urls": None,
        "workspaces": [],
        "mcp_servers": [], "agent_policies": {}}
    assert shared.admin.get("/whoami").json() == {"ok": True, "kind": "admin"}


def test_an_app_may_not_use_the_admin_paths(shared, shared_app):
    app = shared.client(shared_app)
    for method, path in (("GET", "/admin/tokens"), ("POST", "/admin/tokens"),
                         ("POST", "/admin/tokens/shared-app/rotate"),
                         ("DELETE", "/admin/tokens/shared-app")):
        assert_error(app.request(method, path), 403, "wrong_token_kind")
    assert shared.whoami(shared_app) == 200


def test_a_taken_name_is_409_and_the_first_token_goes_on_working(shared):
    token = shared.mint("taken")["token"]
    assert_error(shared.admin.post("/admin/tokens", json={"name": "taken"}), 409, "name_taken")
    assert shared.whoami(token) == 200


@pytest.mark.parametrize("name", ["a", "0", "_", "-", "x" * 64, "a-b_c-9"])
def test_a_good_name_is_taken(gateway, name):
    token = gateway.mint(name)["token"]
    assert gateway.client(token).get("/whoami").json()["name"] == name


BAD_FIELDS = [("name", value) for value in (
    "", "A", "a b", "x" * 65, "é", "a/b", "a.b", "a\n", "a\x00b", 1, True, [], {}, ["a"])]
BAD_FIELDS += [("ip_cidrs", value) for value in (
    "10.0.0.0/8", 1, {}, [1], [None], [[]], [""], ["nonsense"], ["10.0.0.0/33"], ["10.0.0.0/-1"],
    ["10.0.0.1/8"], ["::/129"], ["10.0.0.0/"], [" 10.0.0.0/8"], ["10.0.0/8"], ["010.0.0.0/8"],
    ["fe80::1%eth0/64"], ["2001:db8::1/32"], ["10.0.0.0/8", "x"], ["10.0.0.0/8/8"])]
BAD_FIELDS += [("event_format", value) for value in ("", "ACP", "xml", 1, [], True)]
BAD_FIELDS += [(field, value) for field in ("max_sessions", "max_runs") for value in (
    -1, 1.5, "3", True, [], {}, 2**63, 1e30)]


@pytest.mark.parametrize("field, value", BAD_FIELDS)
def test_a_bad_field_is_422_and_named(shared, field, value):
    answer = shared.admin.post("/admin/tokens", json={"name": "never-minted", field: value})
    body = assert_error(answer, 422, "validation_failed")
    assert {re.split(r"[.\[]", error["field"])[0] for error in body["errors"]} == {field}
    assert "never-minted" not in listed(shared)


def test_all_bad_fields_are_named_at_once(shared):
    answer = shared.admin.post("/admin/tokens", json={
        "name": "NO", "ip_cidrs": ["no"], "event_format": "no", "max_sessions": "no",
        "max_runs": "no"})
    errors = assert_error(answer, 422, "validation_failed")["errors"]
    assert {re.split(r"[.\[]", error["field"])[0] for error in errors} == {
        "name", "ip_cidrs", "event_format", "max_sessions", "max_runs"}


# Rotating and revoking

def test_rotating_gives_a_new_token_and_ends_the_old_one_at_once(gateway):
    old = gateway.mint("turning", ip_cidrs=["127.0.0.0/8"], max_runs=3)
    new = gateway.admin.post("/admin/tokens/turning/rotate").json()
    assert set(new) == {"name", "token", "ip_cidrs"}
    assert (new["name"], new["ip_cidrs"]) == ("turning", ["127.0.0.0/8"])
    assert TOKEN.fullmatch(new["token"]) and new["token"] != old["token"]
    assert gateway.whoami(old["token"]) == 401
    assert gateway.client(new["token"]).get("/whoami").json()["max_runs"] == 3


def test_a_revoked_token_stops_at_once_also_on_an_open_connection(gateway):
    token = gateway.mint("short-lived")["token"]
    ask = request("GET /whoami", bearer(token))
    admin = gateway.admin
    with Wire(gateway) as wire:
        assert wire.ask(ask).status == 200
        answer = admin.delete("/admin/tokens/short-lived")
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
        assert_error(wire.ask(ask), 401, "unauthorized")
    assert_error(admin.delete("/admin/tokens/short-lived"), 404, "token_not_found")
    assert "short-lived" not in listed(gateway)


def test_a_revoked_name_may_be_minted_again_with_another_token(gateway):
    old = gateway.mint("again")["token"]
    gateway.admin.delete("/admin/tokens/again")
    new = gateway.mint("again")["token"]
    assert new != old
    assert (gateway.whoami(old), gateway.whoami(new)) == (401, 200)


@pytest.mark.parametrize("name", ["absent", "NOT-A-NAME", "x" * 65, "%20"])
def test_an_unknown_name_is_404(shared, name):
    assert_error(shared.admin.delete(f"/admin/tokens/{name}"), 404, "token_not_found")
    assert_error(shared.admin.post(f"/admin/tokens/{name}/rotate"), 404, "token_not_found")


def test_tokens_outlive_a_restart_and_so_does_a_revocation(gateway):
    kept = gateway.mint("kept", max_sessions=5, ip_cidrs=["127.0.0.0/8"])["token"]
    gone = gateway.mint("gone")["token"]
    gateway.admin.delete("/admin/tokens/gone")
    before = listed(gateway)
    admin_token = gateway.admin_token
    gateway.restart()
    assert gateway.admin_token == admin_token
    assert listed(gateway) == before
    assert (gateway.whoami(kept), gateway.whoami(gone)) == (200, 401)


# Other programs at the same ledger

def test_a_row_deleted_by_another_program_stops_its_token_within_a_second(gateway):
    token = gateway.mint("deleted-elsewhere")["token"]
    with Wire(gateway) as wire:
        ask = request("GET /whoami", bearer(token))
        assert wire.ask(ask).status == 200
        ledger = open_ledger(gateway)
        assert ledger.execute("DELETE FROM tokens WHERE name = 'deleted-elsewhere'").rowcount == 1
        wait_until(lambda: wire.ask(ask).status == 401, "the token has stopped",
                   1.0 + SLACK_SECONDS)
        ledger.close()
    assert "deleted-elsewhere" not in listed(gateway)


def test_a_row_inserted_by_another_program_works_within_a_second(gateway):
    ledger = open_ledger(gateway)
    column, digest_of = digest_column(ledger, gateway.mint("pattern")["token"])
    row = dict(ledger.execute("SELECT * FROM tokens WHERE name = 'pattern'").fetchone())
    token = "cf_" + secrets.token_urlsafe(32)
    row |= {"name": "inserted", column: digest_of(token)}
    assert gateway.whoami(token) == 401
    marks = ", ".join("?" for _ in row)
    ledger.execute(f"INSERT INTO tokens ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    wait_until(lambda: gateway.whoami(token) == 200, "the token works", 1.0 + SLACK_SECONDS)
    ledger.close()
    assert "inserted" in listed(gateway)


def test_a_ledger_that_is_locked_for_a_moment_delays_a_mint_but_loses_nothing(gateway):
    ledger = open_ledger(gateway)
    ledger.execute("BEGIN IMMEDIATE")
    with Wire(gateway) as wire:
        wire.send(request("POST /admin/tokens", bearer(gateway.admin_token), "Content-Length: 17",
                          body=b'{"name":"queued"}'))
        assert gateway.client().get("/healthz").status_code == 200, "others do not wait for it"
        ledger.execute("COMMIT")
        answer = wire.read()
    ledger.close()
    assert answer.status == 200
    assert gateway.whoami(answer.json()["token"]) == 200


# What is kept

def test_last_used_at_appears_after_use_and_outlives_a_restart(gateway):
    token = gateway.mint("used")["token"]
    gateway.mint("unused")
    before = int(time.time())
    assert gateway.whoami(token) == 200
    used_at = wait_until(lambda: listed(gateway)["used"]["last_used_at"], "a time of last use")
    assert before <= used_at <= time.time()
    gateway.restart()
    apps = listed(gateway)
    assert apps["used"]["last_used_at"] == used_at
    assert apps["unused"]["last_used_at"] is None


def test_a_token_is_nowhere_on_disk_but_as_its_sha256(gateway):
    token = gateway.mint("hidden")["token"]
    rotated = gateway.admin.post("/admin/tokens/hidden/rotate").json()["token"]
    wrong = "cf_" + "W" * 43
    for each in (token, rotated, wrong):
        gateway.whoami(each)
    gateway.client().get(f"/whoami?token={rotated}")
    admin_token = gateway.admin_token
    ledger = open_ledger(gateway)
    digest_column(ledger, rotated)
    ledger.close()
    gateway.stop()
    for path in [p for p in gateway.root.rglob("*") if p.is_file()]:
        content = path.read_bytes()
        for secret in (token, rotated, wrong):
            assert secret.encode() not in content, path
        assert admin_token.encode() not in content or path.name == "admin-token", path
