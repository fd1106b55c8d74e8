"""POST /run as a stream: what the agent says, then what the plain answer would be."""
import json

import pytest

from agents import App, assert_nothing_left, fake_env, rows, settled_rows
from answers import assert_error
from gateway import wait_until
from sessions import forge, new_forge, only_acp, texts_of
from streams import Stream, assert_one_apart
from wire import bearer, with_body

__all__ = ["forge", "new_forge"]  # fixtures

KINDS = ("acp", "acpx", "claude")


def stream_run(app, *steps, agent="fake", headers=(), **fields):
    prompt = steps[0] if isinstance(steps[0], str) else json.dumps(list(steps))
    body = json.dumps({"prompt": prompt, "agent": agent, "stream": True, **fields}).encode()
    return Stream(app.gateway, with_body("POST /run", body, bearer(app.token), *headers))


@pytest.fixture(scope="module")
def runner(forge):
    return App(forge, "streamer")


def updates(events):
    return [event.json() for event in events if event.name == "update"]


def test_a_stream_has_the_agents_messages_and_then_the_answer(runner, forge):
    with stream_run(runner, {"text": "Hel"}, {"text": "lo."}, {"cost": 0.5},
                    include=["usage"]) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        run_id = stream.headers["x-clawdforge-run-id"]
        events = stream.rest()
    assert stream.is_whole
    assert [event.name for event in events if event.name != "update"] == ["done"]
    assert events[-1].name == "done"
    assert_one_apart(events, first=1)
    assert "".join(texts_of(updates(events))) == "Hello."
    body = events[-1].json()
    assert (body["ok"], body["result"], body["stop_reason"]) == (True, "Hello.", "end_turn")
    assert (body["run_id"], body["cost_usd"]) == (run_id, 0.5)
    row, = [row for row in rows(forge) if row["run_id"] == run_id]
    assert (row["state"], row["agent"]) == ("succeeded", "fake")
    assert_nothing_left(forge)


def test_messages_come_while_the_agent_works(runner, tmp_path):
    gate = tmp_path / "gate"
    with stream_run(runner, {"text": "first"}, {"wait_for": str(gate)}, {"text": " last"}) as stream:
        told = ""
        while "first" not in told:
            told += "".join(texts_of([stream.next().json()]))
        gate.touch()
        assert stream.rest()[-1].json()["result"] == "first last"


def test_accept_asks_for_a_stream_and_false_takes_it_back(runner):
    accept = "Accept: text/event-stream"
    body = json.dumps({"prompt": "x", "agent": "fake"}).encode()
    with Stream(runner.gateway, with_body("POST /run", body, bearer(runner.token), accept)) as it:
        assert it.headers["content-type"] == "text/event-stream"
        assert it.rest()[-1].name == "done"
    with stream_run(runner, "x", headers=[accept], stream=False) as plain:
        assert plain.headers["content-type"] == "application/json"


def test_a_failure_is_told_as_the_plain_answer_tells_it(runner):
    with stream_run(runner, {"text": "well"},
                    {"error": {"code": -32603, "message": "It went wrong."}}) as stream:
        last = stream.rest()[-1]
    assert last.name == "failed"
    body = last.json()
    assert (body["ok"], body["code"], body["error"]) == (False, "agent_error", "It went wrong.")


def test_what_is_refused_is_not_a_stream(runner):
    with stream_run(runner, "x", agent="unheard-of") as stream:
        assert (stream.status, stream.headers["content-type"]) == (422, "application/json")
    with stream_run(runner, "x", permission_mode="ask") as stream:
        assert stream.status == 422
    with stream_run(runner, "x", headers=["Idempotency-Key: k1"]) as stream:
        assert stream.status == 422


def test_a_result_with_line_breaks_is_one_event(runner):
    with stream_run(runner, {"text": '{\n  "a": [1,\n 2]\r\n}'}) as stream:
        assert stream.rest()[-1].json()["result"] == {"a": [1, 2]}


def test_a_reader_who_goes_cancels_the_run(runner, forge, tmp_path):
    before = len(rows(forge))
    mark = tmp_path / "begun"
    stream = stream_run(runner, {"touch": str(mark)}, {"wait_for": str(tmp_path / "never")})
    wait_until(mark.exists, "the run begins")
    stream.close()
    row = settled_rows(forge, before + 1)[-1]
    assert (row["state"], row["stop_reason"]) == ("cancelled", "cancelled")
    assert_nothing_left(forge)


def test_its_app_can_cancel_it(runner, forge, tmp_path):
    mark = tmp_path / "begun"
    with stream_run(runner, {"touch": str(mark)}, {"wait_for": str(tmp_path / "never")}) as stream:
        wait_until(mark.exists, "the run begins")
        run_id = stream.headers["x-clawdforge-run-id"]
        answer = runner.client().post(f"/runs/{run_id}/cancel")
        assert answer.json() == {"ok": True, "cancelled": True}
        last = stream.rest()[-1]
    assert (last.name, last.json()["code"]) == ("failed", "cancelled")
    assert_nothing_left(forge)


def test_its_time_ends_it(runner, forge, tmp_path):
    with stream_run(runner, {"wait_for": str(tmp_path / "never")}, timeout_secs=5) as stream:
        last = stream.rest()[-1]
    assert (last.name, last.json()["code"]) == ("failed", "timeout")
    assert_nothing_left(forge)


@only_acp
def test_a_slow_reader_slows_the_agent_and_loses_nothing(runner, forge):
    count = 3000
    with stream_run(runner, {"flood": count, "piece_bytes": 10_000}, timeout_secs=60) as stream:
        events = stream.rest()
    assert sum(len(text) for text in texts_of(updates(events))) == count * 10_000
    assert events[-1].name == "done"


@only_acp
def test_claude_and_demo_stream_too(new_gateway):
    app = App(new_gateway(env=fake_env()))
    with stream_run(app, "hello", agent="demo") as stream:
        events = stream.rest()
    assert events[-1].json()["result"] == "You said: hello"
    assert "".join(texts_of(updates(events))) == "You said: hello"


@only_acp
def test_a_job_is_not_a_stream(runner):
    answer = runner.client().post("/jobs", json={"run": {"prompt": "x", "agent": "fake",
                                                         "stream": True}})
    assert_error(answer, 422, "validation_failed")
