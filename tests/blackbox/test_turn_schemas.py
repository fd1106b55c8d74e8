"""Turns with a schema, and sessions whose system prompt replaces the agent's own."""
import json

import pytest

from answers import assert_error
from gateway import Gateway
from agents import fake_env
from sessions import Talker, agent_table

SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
OTHER = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}}


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    place = tmp_path_factory.mktemp("turn-schemas")
    path = place / "config.toml"
    path.write_text(agent_table("fake", []) + agent_table("stream", [], "claude"))
    gateway = Gateway(place / "gateway", env=fake_env(), flags=["--config", str(path)]).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def app(forge):
    return Talker(forge)


def answered(value):
    return {"result": {"structured_output": value}}


def opened_with(session, **fields):
    """What the agent of the turn was started with."""
    body = session.turn({"report": "session"}, answered({"name": "x"}), **fields).json()
    return json.loads(body["text"])["opened_with"]


def test_claude_is_started_with_the_schema_of_the_turn_and_without_it_for_the_next(app):
    session = app.session("stream")
    first = session.turn({"text": "done"}, answered({"name": "Ann"}), schema=SCHEMA).json()
    assert (first["result"], first["text"]) == ({"name": "Ann"}, "done")
    assert opened_with(session, schema=SCHEMA)["schema"] == SCHEMA
    plain = session.turn({"report": "session"}).json()
    assert "result" not in plain and json.loads(plain["text"])["opened_with"]["schema"] is None
    assert plain["resumed"] is True, "it was started again, and remembers"
    assert "resumed" not in session.turn("once more").json()


def test_a_stream_ends_with_the_result(app):
    session = app.session("stream")
    prompt = json.dumps([{"text": "done"}, answered({"age": 3})])
    with app.client().stream("POST", f"{session.path}/turn",
                             json={"prompt": prompt, "schema": OTHER, "stream": True}) as stream:
        data = [line[6:] for line in stream.iter_lines() if line.startswith("data: ")]
    assert json.loads(data[-1])["result"] == {"age": 3}


@pytest.mark.parametrize("agent", ["stream", "fake"])
@pytest.mark.parametrize("said", ["I would rather not.", '{"age": 3}', '{"name": 5}'])
def test_an_answer_that_does_not_meet_it_is_502_with_the_text(app, agent, said):
    session = app.session(agent)
    answer = session.turn({"text": said}, schema=SCHEMA)
    body = answer.json()
    assert (answer.status_code, body["code"], body["detail"]) == (502, "schema_not_met", said)
    assert "schema" in body["error"]
    assert session.turn("after").status_code == 200, "the session goes on"


def test_an_agent_that_takes_no_schema_is_told_in_its_prompt(app):
    session = app.session("fake")
    body = session.turn("hello", schema=SCHEMA).json()
    assert body["code"] == "schema_not_met"
    assert body["detail"].startswith("echo: hello\n") and '"required"' in body["detail"]
    good = session.turn({"text": '```json\n{"name": "Ann"}\n```'}, schema=SCHEMA).json()
    assert good["result"] == {"name": "Ann"}


def test_an_answer_that_is_too_large_to_be_checked_is_told(app):
    session = app.session("fake")
    body = session.turn({"text": json.dumps({"name": "x" * 300_000})}, schema=SCHEMA).json()
    assert body["code"] == "schema_not_met" and "256 KiB" in body["error"]
    assert len(body["detail"]) == 64 * 1024


@pytest.mark.parametrize("schema, code", [({"type": "array"}, "bad_schema"), ("object", "validation_failed")])
def test_a_bad_schema_is_422_and_nothing_is_asked(app, schema, code):
    session = app.session("fake")
    answer = session.turn("x", schema=schema)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert [error["field"] for error in answer.json()["errors"]] == ["schema"]
    assert session.state()["turn_count"] == 0


def test_a_system_prompt_can_replace_the_agents_own_and_does_so_after_a_restart(app, forge):
    session = app.session("stream", system="Be brief.", system_mode="replace")
    told = opened_with(session)
    assert (told["replaced_system"], told["system"]) == (["Be brief."], None)
    forge.stop()
    forge.start()
    told = opened_with(session)
    assert (told["replaced_system"], told["system"]) == (["Be brief."], None)
    added = app.session("stream", system="Be brief.")
    told = opened_with(added)
    assert (told["replaced_system"], told["system"]) == (None, "Be brief.")


def test_an_agent_whose_system_prompt_cannot_be_replaced_is_422(app):
    answer = app.create("fake", system="Be brief.", system_mode="replace")
    assert_error(answer, 422, "system_mode_not_supported")
    assert_error(app.create("stream", system_mode="both"), 422, "validation_failed")
