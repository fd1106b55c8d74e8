"""Streams, schemas, tools and turns of runs with the real command line, and a run through the real
adapter."""
import json

import pytest

from model_api import scripted, tool

SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


def events_of(house, prompt, **fields):
    """The events of a streamed run: their names and data."""
    found = []
    body = {"prompt": prompt, "stream": True, **fields}
    with house.client.stream("POST", "/run", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        name = None
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
    return found


def texts(events):
    pieces = []
    for name, data in events:
        update = data.get("params", {}).get("update", {}) if name == "update" else {}
        if update.get("sessionUpdate") == "agent_message_chunk":
            pieces.append(update["content"]["text"])
    return "".join(pieces)


def test_a_streamed_run_tells_what_a_plain_one_answers(house):
    plain = house.run("hello there").json()
    events = events_of(house, "hello there", include=["usage"])
    name, body = events[-1]
    assert (name, body["ok"], body["result"]) == ("done", True, plain["result"])
    assert texts(events) == plain["result"]
    assert body["stop_reason"] == plain["stop_reason"] == "end_turn"
    assert body["cost_usd"] > 0 and body["usage"]["input_tokens"] > 100
    models = {request["model"] for request in house.api.requests()}
    assert len(models) == 1, "both have the default model"
    house.assert_nothing_left()
    kept = list((house.home / ".claude").rglob("*.jsonl"))
    assert not kept, "nothing of the conversation is kept"


def test_a_streamed_run_is_held_to_its_mode(house, tmp_path):
    outside = tmp_path / "outside.txt"
    prompt = scripted("write", tool("Bash", command=f"echo hi > {outside}"), {"text": "tried"})
    name, body = events_of(house, prompt, include=["denials"])[-1]
    assert (name, body["result"]) == ("done", "tried")
    assert [denial["tool"] for denial in body["denials"]] == ["Bash"]
    assert not outside.exists()


@pytest.mark.parametrize("is_streamed", [False, True], ids=["plain", "streamed"])
def test_a_schema_is_met(house, is_streamed):
    prompt = scripted("who?", {"structured": {"name": "Ann"}})
    if is_streamed:
        name, body = events_of(house, prompt, schema=SCHEMA)[-1]
        assert name == "done", body
    else:
        answer = house.run(prompt, schema=SCHEMA)
        assert answer.status_code == 200, answer.text
        body = answer.json()
    assert body["result"] == {"name": "Ann"}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["plain", "streamed"])
def test_a_model_that_does_not_comply_is_told(house, is_streamed):
    prompt = scripted("who?", {"text": "I will not say."}, {"text": "I said no."})
    if is_streamed:
        name, body = events_of(house, prompt, schema=SCHEMA)[-1]
        assert name == "failed", body
    else:
        answer = house.run(prompt, schema=SCHEMA)
        assert answer.status_code == 502, answer.text
        body = answer.json()
    assert body["code"] == "schema_not_met", body
    assert body["detail"] and "schema" in body["error"]


@pytest.mark.parametrize("tools, offered", [("none", set()), ("read", {"Read", "Glob", "Grep"}),
                                            (["Bash"], {"Bash"})])
def test_the_model_is_offered_the_tools_that_were_asked_for(house, tools, offered):
    assert house.run("hello", tools=tools).status_code == 200
    assert events_of(house, "hello", tools=tools)[-1][0] == "done"
    for request in house.api.requests():
        assert {each["name"] for each in request.get("tools", [])} == offered


def test_a_run_that_has_used_its_turns_says_so(house):
    prompt = scripted("look", tool("Glob", pattern="*"), tool("Glob", pattern="*"), {"text": "end"})
    answer = house.run(prompt, max_turns=1)
    assert (answer.status_code, answer.json()["code"]) == (502, "max_turns"), answer.text
    name, body = events_of(house, prompt, max_turns=1)[-1]
    assert (name, body["code"]) == ("failed", "max_turns"), body


def test_a_run_through_the_real_adapter(new_house, adapter, tmp_path):
    file = tmp_path / "adapter.toml"
    file.write_text('[agents.by-adapter]\ncommand = ["claude-agent-acp"]\nmodel = "sonnet"\n')
    house = new_house(PATH=f"{adapter.parent}:/usr/bin:/bin", CLAWDFORGE_CONFIG=str(file))
    answer = house.run("hello there", agent="by-adapter", include=["usage", "model"])
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["result"], body["stop_reason"]) == ("fake reply to: hello there", "end_turn")
    assert body["model"] == "sonnet" and body["usage"]["input_tokens"] > 0
    prompt = scripted("run", tool("Bash", command="echo hi > x"), {"text": "tried"})
    denied = house.run(prompt, agent="by-adapter", include=["denials"]).json()
    assert denied["result"] == "tried"
    assert [denial["tool"] for denial in denied["denials"]] == ["Bash"]
    replaced = house.run("hello", agent="by-adapter", system="only this", system_mode="replace")
    assert replaced.status_code == 200, replaced.text
    assert "only this" in json.dumps(house.api.requests()[-1]["system"])
    house.assert_nothing_left()
