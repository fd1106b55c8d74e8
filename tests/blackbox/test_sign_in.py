"""Browsers that sign in to the dashboard: tokens of their own, links that work once, and what a foreign page cannot do."""
import re
import sqlite3
import time

import pytest

from answers import assert_error
from gateway import run_program, wait_until
from wire import Wire, bearer, request

OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


def sign_in(gateway, expected=200, headers=None, source=None, **fields):
    with gateway.client(source=source) as client:
        answer = client.post("/ui/sign-in", json=fields, headers=headers or {})
    assert answer.status_code == expected, answer.text
    return answer.json()


def code_of(gateway, **fields):
    answer = gateway.admin.post("/admin/sign-in-codes", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def audit_of(gateway, *events):
    found = gateway.admin.get("/admin/events", params={"limit": 1000}).json()["events"]
    return [line for line in found if line["event"] in events]


def age(gateway, **columns):
    """Sets back the times of all browsers, as another program would; the gateway follows within a second."""
    with sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10) as ledger:
        for column, seconds in columns.items():
            ledger.execute(f"UPDATE browsers SET {column} = {column} - ?", (seconds,))


# Signing in

def test_the_owners_token_becomes_a_browsers_token(gateway):
    answer = sign_in(gateway, token=gateway.admin_token, name="laptop")
    assert re.fullmatch(r"cfui_[A-Za-z0-9_-]{43}", answer["token"])
    assert (answer["kind"], answer["browser"]["app_name"]) == ("admin", None)
    browser = gateway.client(answer["token"])
    who = browser.get("/whoami").json()
    assert who["kind"] == "admin" and who["browser"]["name"] == "laptop"
    assert browser.get("/admin/tokens").status_code == 200
    assert answer["token"] not in gateway.stderr() and gateway.admin_token not in gateway.stderr()


def test_an_apps_token_becomes_a_browsers_token_of_that_app_alone(gateway):
    token = gateway.mint("triage")["token"]
    answer = sign_in(gateway, token=token)
    browser = gateway.client(answer["token"])
    who = browser.get("/whoami").json()
    assert (who["kind"], who["name"]) == ("app", "triage")
    assert_error(browser.get("/admin/tokens"), 403, "wrong_token_kind")
    assert_error(browser.post("/ui/proof", json={"token": gateway.admin_token}), 403, "wrong_token_kind")


@pytest.mark.parametrize("agent, name", [
    ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
    ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Windows"),
    ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Safari/604.1", "Safari on iPhone"),
    ("", "Browser")])
def test_a_browser_without_a_name_gets_one(shared, agent, name):
    answer = sign_in(shared, token=shared.admin_token, headers={"User-Agent": agent})
    assert answer["browser"]["name"] == name


def test_a_link_signs_in_once(gateway):
    made = code_of(gateway)
    assert re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{4}-){6}[0-9A-HJKMNP-TV-Z]{2}", made["code"])
    assert made["fragment"] == "#/in/" + made["code"]
    assert abs(made["expires_at"] - time.time() - 120) < 30
    typed = made["code"].replace("-", "").lower()
    assert sign_in(gateway, code=typed)["kind"] == "admin"
    assert sign_in(gateway, 401, code=made["code"])["code"] == "code_used"
    assert made["code"] not in gateway.stderr()


def test_a_link_that_comes_too_late_says_so(gateway):
    made = code_of(gateway, seconds=1)
    wait_until(lambda: time.time() > made["expires_at"] + 1, "its time is over")
    assert sign_in(gateway, 401, code=made["code"])["code"] == "code_expired"


def test_a_restart_forgets_links_and_keeps_browsers(gateway):
    made = code_of(gateway)
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    gateway.restart()
    assert gateway.whoami(token) == 200
    assert sign_in(gateway, 401, code=made["code"])["code"] == "unauthorized"


@pytest.mark.parametrize("fields", [{}, {"token": "x", "code": "y"}, {"token": 1}, {"code": ["x"]}, {"stay": True},
                                    {"token": "x", "name": ""}, {"token": "x", "name": "a" * 65},
                                    {"token": "x", "name": "a\nb"}, {"token": "x", "stay": "yes"}])
def test_a_sign_in_that_makes_no_sense_is_422(shared, fields):
    assert sign_in(shared, 422, **fields)["code"] == "validation_failed"


def test_wrong_tokens_and_codes_share_the_allowance_of_their_address(new_gateway):
    gateway = new_gateway()
    source = "127.0.0.9"
    for number in range(20):
        shown = {"code": f"0000-{number:04}"} if number % 2 else {"token": f"cf_{number}"}
        assert sign_in(gateway, 401, source=source, **shown)["code"] == "unauthorized"
    assert sign_in(gateway, 429, source=source, token="cf_more")["code"] == "too_many_attempts"
    assert gateway.whoami("cf_other", source) == 429
    assert sign_in(gateway, source=source, token=gateway.admin_token)["ok"], "what is right works all the same"
    failed = audit_of(gateway, "sign_in_failed")
    assert len(failed) == 20
    assert failed[0]["app_name"] is None and failed[0]["meta"]["address"] == source
    assert {line["meta"]["by"] for line in failed} == {"token", "code"}


def test_an_app_that_may_not_call_from_there_does_not_sign_in(gateway):
    token = gateway.mint("far", ip_cidrs=["10.0.0.0/8"])["token"]
    assert sign_in(gateway, 403, token=token)["code"] == "address_not_allowed"


# Its end

def test_a_browser_signs_out(gateway):
    token = sign_in(gateway, token=gateway.admin_token, name="laptop")["token"]
    assert gateway.client(token).post("/ui/sign-out").json() == {"ok": True}
    assert gateway.whoami(token) == 401
    line, = audit_of(gateway, "sign_out")
    assert line["meta"]["browser"] == "laptop"
    assert_error(gateway.admin.post("/ui/sign-out"), 403, "wrong_token_kind")


def test_the_owner_sees_and_ends_browsers(gateway):
    app = gateway.mint("triage")["token"]
    of_app = sign_in(gateway, token=app, name="phone")
    of_owner = sign_in(gateway, token=gateway.admin_token, name="laptop")
    owner = gateway.client(of_owner["token"])
    listed = {row["name"]: row for row in owner.get("/admin/browsers").json()["browsers"]}
    assert (listed["phone"]["app_name"], listed["phone"]["is_this_one"]) == ("triage", False)
    assert (listed["laptop"]["app_name"], listed["laptop"]["is_this_one"]) == (None, True)
    assert not any(key in str(listed) for key in ("cfui_", "sha256"))
    assert owner.delete(f"/admin/browsers/{listed['phone']['id']}").status_code == 200
    assert gateway.whoami(of_app["token"]) == 401
    assert_error(owner.delete(f"/admin/browsers/{listed['phone']['id']}"), 404, "browser_not_found")


@pytest.mark.parametrize("end", ["rotate", "revoke", "expire"])
def test_a_browser_ends_with_the_token_that_it_was_signed_in_with(gateway, end):
    app = gateway.mint("triage")["token"]
    token = sign_in(gateway, token=app)["token"]
    if end == "rotate":
        gateway.admin.post("/admin/tokens/triage/rotate")
    elif end == "revoke":
        gateway.admin.delete("/admin/tokens/triage")
    else:
        gateway.admin.patch("/admin/tokens/triage", json={"expires_at": int(time.time()) + 1})
        wait_until(lambda: gateway.whoami(app) == 401, "the app's token has expired")
    assert gateway.whoami(token) == 401


def test_browsers_of_the_owner_end_when_the_owners_token_is_another(gateway):
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    gateway.stop()
    gateway.env["CLAWDFORGE_ADMIN_TOKEN"] = "another-admin-token-of-20"
    gateway.start()
    assert gateway.whoami(token) == 401


@pytest.mark.parametrize("stay, column, seconds, status", [
    (False, "last_seen_at", 11 * 3600, 200), (False, "last_seen_at", 13 * 3600, 401),
    (True, "last_seen_at", 13 * 3600, 200), (False, "expires_at", 8 * 86400, 401),
    (True, "expires_at", 8 * 86400, 200), (True, "expires_at", 31 * 86400, 401)])
def test_a_browser_ends_by_its_time(gateway, stay, column, seconds, status):
    token = sign_in(gateway, token=gateway.admin_token, stay=stay)["token"]
    gateway.stop()
    age(gateway, **{column: seconds})
    gateway.start()
    assert gateway.whoami(token) == status


def test_a_row_that_another_program_deletes_counts_within_a_second(gateway):
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    with sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10) as ledger:
        ledger.execute("DELETE FROM browsers")
    wait_until(lambda: gateway.whoami(token) == 401, "the gateway has seen it")


def test_the_seventeenth_browser_takes_the_place_of_the_one_unused_for_longest(gateway):
    tokens = [sign_in(gateway, token=gateway.admin_token)["token"] for _ in range(17)]
    alive = [gateway.whoami(token) for token in tokens]
    assert alive.count(401) == 1 and alive[-1] == 200


def test_the_ledger_has_no_token_of_a_browser(gateway):
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    gateway.stop()
    for file in gateway.data_dir.glob("clawdforge.db*"):
        assert token.encode() not in file.read_bytes()


# What a foreign page cannot do

@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": ""}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "nonsense"}])
def test_a_page_of_another_place_is_refused(gateway, headers):
    app = gateway.mint("triage")["token"]
    for parent in (gateway.admin_token, app):
        token = sign_in(gateway, token=parent)["token"]
        assert_error(gateway.client(token).get("/whoami", headers=headers), 403, "foreign_page")
        assert gateway.client(parent).get("/whoami", headers=headers).status_code == 200, "other tokens do not mind"
    assert sign_in(gateway, 403, headers=headers, token=app)["code"] == "foreign_page"


def test_the_own_page_is_let_in(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_ALLOW_HOSTS": "forge.example"})
    token = sign_in(gateway, token=gateway.admin_token, headers=OWN_PAGE | {"Origin": gateway.url})["token"]
    browser = gateway.client(token)
    for headers in (OWN_PAGE, {"Sec-Fetch-Site": "none"}, {"Origin": gateway.url},
                    {"Origin": "https://forge.example"}, {"Origin": f"http://localhost:{gateway.port}",
                                                         "Host": f"localhost:{gateway.port}"}):
        assert browser.get("/whoami", headers=headers).status_code == 200, headers


def test_a_browsers_token_minds_the_name_of_the_host(gateway):
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    with Wire(gateway) as wire:
        answer = wire.ask(b"GET /whoami HTTP/1.1\r\nHost: evil.example\r\n" + bearer(token).encode() + b"\r\n\r\n")
    assert_error(answer, 421, "host_not_allowed")


def test_no_other_origin_may_ask(gateway):
    """There is no CORS: a browser's question beforehand is 405, so its page does not get to ask."""
    with Wire(gateway) as wire:
        answer = wire.ask(request("OPTIONS /ui/sign-in", "Origin: http://evil.example",
                                  "Access-Control-Request-Method: POST"))
    assert answer.status == 405
    assert answer.header("Access-Control-Allow-Origin") is None


# What asks for a fresh proof

@pytest.mark.parametrize("method, path", [
    ("POST", "/admin/tokens"), ("POST", "/admin/tokens/triage/rotate"), ("POST", "/admin/tokens/triage/webhook-secret"),
    ("DELETE", "/admin/tokens/triage"), ("POST", "/admin/sign-in-codes")])
def test_tokens_ask_the_owners_browser_for_a_proof(gateway, method, path):
    gateway.mint("triage", webhook_urls=["https://triage.example/"])
    token = sign_in(gateway, token=gateway.admin_token)["token"]
    gateway.stop()
    age(gateway, proved_at=11 * 60)
    gateway.start()
    browser = gateway.client(token)
    body = {"name": "another"} if path == "/admin/tokens" else None
    assert_error(browser.request(method, path, json=body), 403, "proof_needed")
    assert browser.get("/admin/tokens").status_code == 200, "reading asks for none"
    assert_error(browser.post("/ui/proof", json={"token": "cfadmin_wrong"}), 401, "unauthorized")
    assert_error(browser.request(method, path, json=body), 403, "proof_needed")
    assert browser.post("/ui/proof", json={"token": gateway.admin_token}).status_code == 200
    assert browser.request(method, path, json=body).status_code == 200


def test_the_audit_names_the_browser(gateway):
    token = sign_in(gateway, token=gateway.admin_token, name="laptop")["token"]
    assert gateway.client(token).post("/admin/tokens", json={"name": "new"}).status_code == 200
    line, = audit_of(gateway, "token_mint")
    assert line["meta"] == {"by": "browser", "name": "laptop", "address": "127.0.0.1"}
    sign, = audit_of(gateway, "sign_in")
    assert sign["meta"] == {"by": "token", "browser": "laptop", "address": "127.0.0.1"}
    wait_until(lambda: "(admin) by laptop" in gateway.stderr(), "the log names the browser")


# The command

def test_the_command_prints_a_link_that_works_once(gateway):
    for arguments in ((), ("--print",), ("--seconds", "30")):
        done = run_program("dashboard", *arguments, "--data-dir", gateway.data_dir, home=gateway.root,
                           env={"DISPLAY": ":7"})
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        link = done.stdout.strip()
        assert link.startswith(gateway.url + "/#/in/")
        assert sign_in(gateway, code=link.rpartition("/")[2])["kind"] == "admin"


def test_the_command_says_why_it_has_no_link(tmp_path, gateway):
    done = run_program("dashboard", "--seconds", "601", "--data-dir", gateway.data_dir, home=gateway.root)
    assert (done.returncode, done.stdout) == (4, "")
    done = run_program("dashboard", "--data-dir", tmp_path / "none", home=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
