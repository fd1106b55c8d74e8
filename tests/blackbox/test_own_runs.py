"""GET /runs, GET /runs/{id}, POST /runs/{id}/cancel: what an app sees of its own runs."""
import pytest

from agents import App, assert_failure, assert_nothing_left, fake_env
from answers import assert_error
from gateway import wait_until

KEYS = {"run_id", "app_name", "agent", "model", "state", "started_at", "ended_at", "prompt_bytes",
        "result_bytes", "duration_ms", "outcome", "error", "stop_reason", "exit_code", "exit_signal",
        "cost_usd", "usage", "prompt"}


@pytest.fixture
def claude(new_gateway):
    return new_gateway(env=fake_env())


def listed(app, **parameters):
    answer = app.client().get("/runs", params=parameters)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"runs", "count", "next_cursor"} and body["count"] == len(body["runs"])
    assert all(set(run) == KEYS for run in body["runs"])
    return body


def test_an_app_sees_its_own_runs_and_no_others(claude):
    mine, other = App(claude, "mine"), App(claude, "other")
    first = mine.run("one").headers["X-Clawdforge-Run-Id"]
    second = mine.run({"error": "No luck."}).headers["X-Clawdforge-Run-Id"]
    foreign = other.run("three").headers["X-Clawdforge-Run-Id"]

    body = listed(mine)
    assert {run["run_id"] for run in body["runs"]} == {first, second}
    assert body["next_cursor"] is None
    page = listed(mine, limit=1)
    assert page["count"] == 1 and page["next_cursor"]
    rest = listed(mine, limit=1, cursor=page["next_cursor"])
    assert {page["runs"][0]["run_id"], rest["runs"][0]["run_id"]} == {first, second}

    failed = mine.client().get(f"/runs/{second}").json()
    assert failed["state"] == "failed" and failed["error"] == "No luck."
    assert set(failed) == KEYS

    absent = mine.client().get("/runs/00000000-0000-7000-8000-000000000000")
    stolen = mine.client().get(f"/runs/{foreign}")
    for answer in (absent, stolen):
        assert_error(answer, 404, "run_not_found")
    assert absent.json()["detail"] == stolen.json()["detail"]


def test_the_list_refuses_what_is_wrong(claude):
    app = App(claude)
    assert_error(app.client().get("/runs?limit=0"), 422, "validation_failed")
    assert_error(app.client().get("/runs?cursor=x"), 422, "validation_failed")
    assert_error(claude.admin.get("/runs"), 403, "wrong_token_kind")


def test_a_run_is_cancelled_by_its_app_alone(claude, tmp_path):
    app, other = App(claude, "mine"), App(claude, "other")
    held = app.hold(tmp_path).begun()
    wait_until(lambda: listed(app)["runs"], "the run is in the list")
    run = listed(app)["runs"][0]
    assert run["state"] == "running" and run["ended_at"] is None

    assert_error(other.client().post(f"/runs/{run['run_id']}/cancel"), 404, "run_not_found")
    assert app.client().post(f"/runs/{run['run_id']}/cancel").json() == {"ok": True, "cancelled": True}
    assert_failure(held.answer(), 410, "cancelled")
    ended = app.client().get(f"/runs/{run['run_id']}").json()
    assert (ended["state"], ended["outcome"], ended["stop_reason"]) == ("cancelled",) * 3
    assert ended["error"]
    again = app.client().post(f"/runs/{run['run_id']}/cancel").json()
    assert again == {"ok": True, "cancelled": False}
    assert_nothing_left(claude)


def test_what_has_ended_is_not_cancelled(claude):
    app = App(claude)
    run = app.run("x").headers["X-Clawdforge-Run-Id"]
    assert app.client().post(f"/runs/{run}/cancel").json() == {"ok": True, "cancelled": False}
    assert app.client().get(f"/runs/{run}").json()["state"] == "succeeded"
