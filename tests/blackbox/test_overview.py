"""What the owner's first screen asks for, and lists of the audit as files."""
import csv
import io
import json
import time

from answers import assert_error
from gateway import run_program

ROOMS = {"runs", "runs_waiting", "sessions_open", "agents", "connections"}


def test_the_overview_has_each_bounded_thing_beside_its_bound(gateway):
    token = gateway.mint("triage")["token"]
    body = gateway.admin.get("/admin/overview").json()
    assert set(body) == {"version", "instance_id", "started_at", "now", "ready", "trouble", "apps", "permissions_open",
                         "rooms"}
    assert (body["ready"], body["trouble"], body["apps"], body["permissions_open"]) == (True, None, 1, 0)
    assert body["started_at"] <= body["now"] and abs(body["now"] - time.time()) < 60
    rooms = {room["name"]: room for room in body["rooms"]}
    assert set(rooms) == ROOMS
    assert all(0 <= room["used"] <= room["max"] and room["at_max"] for room in rooms.values())
    assert rooms["connections"]["used"] >= 1
    assert_error(gateway.client(token).get("/admin/overview"), 403, "wrong_token_kind")


def test_the_configuration_is_what_the_command_prints_and_has_no_secret(new_gateway):
    secret = "a-secret-admin-token-of-30-bytes"
    gateway = new_gateway(env={"CLAWDFORGE_ADMIN_TOKEN": secret})
    answer = gateway.admin.get("/admin/config")
    assert answer.status_code == 200 and isinstance(answer.json(), dict)
    assert secret not in answer.text
    done = run_program("config", "--json", "--data-dir", gateway.data_dir, "--listen", "127.0.0.1:0", home=gateway.root,
                       env=gateway.env)
    assert answer.json() == json.loads(done.stdout)
    token = gateway.mint("triage")["token"]
    assert_error(gateway.client(token).get("/admin/config"), 403, "wrong_token_kind")


def lists(gateway, accept, path, **parameters):
    answer = gateway.admin.get(path, params=parameters, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


def test_a_list_is_a_file_with_all_its_rows(gateway):
    for number in range(30):
        gateway.mint(f"app-{number}")
    page = gateway.admin.get("/admin/events", params={"limit": 1000}).json()["events"]
    answer = lists(gateway, "application/x-ndjson", "/admin/events", limit=2, event="token_mint")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="clawdforge-events.ndjson"'
    head, *rows = [json.loads(line) for line in answer.text.splitlines()]
    assert (head["export"], head["filter"]) == ("events", "limit=2&event=token_mint")
    assert rows == [line for line in page if line["event"] == "token_mint"] and len(rows) == 30


def test_a_list_as_csv_can_be_read_back(gateway):
    gateway.mint("triage")
    page = gateway.admin.get("/admin/events").json()["events"]
    answer = lists(gateway, "text/csv", "/admin/events")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    first, _, rest = answer.text.partition("\r\n")
    assert json.loads(first.removeprefix("# "))["export"] == "events"
    rows = list(csv.DictReader(io.StringIO(rest, newline="")))
    assert [(row["event"], row["app_name"], json.loads(row["meta"])) for row in rows] == [
        (line["event"], line["app_name"], line["meta"]) for line in page]


def test_no_cell_is_a_formula(gateway):
    token = gateway.admin_token
    named = gateway.client().post("/ui/sign-in", json={"token": token, "name": "=1+1"})
    assert named.status_code == 200
    for path in ("/admin/runs", "/admin/sessions", "/admin/events"):
        for row in csv.reader(io.StringIO(lists(gateway, "text/csv", path).text, newline="")):
            assert not [cell for cell in row if cell[:1] in ("=", "+", "@")], row


def test_a_wrong_filter_is_refused_before_a_file_begins(gateway):
    answer = gateway.admin.get("/admin/runs", params={"since": "x"}, headers={"Accept": "text/csv"})
    assert_error(answer, 422, "validation_failed")
    answer = gateway.admin.get("/admin/runs", headers={"Accept": "*/*"})
    assert answer.headers["Content-Type"] == "application/json"
