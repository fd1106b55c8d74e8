"""POST /run with schema, tools and max_turns."""
import pytest

from agents import App, assert_failure, assert_success, body_of, fake_env, row_of
from answers import assert_error
from gateway import Gateway, refused_start
from sessions import FAKE_CLAUDE_STREAM, agent_table

SCHEMA = {"type": "object", "required": ["name"],
          "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}
LIMIT_FLAGS = ("--json-schema", "--tools", "--max-turns")


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    place = tmp_path_factory.mktemp("schemas")
    path = place / "config.toml"
    path.write_text(agent_table("fake", []) + agent_table("stream", [], "claude"))
    gateway = Gateway(place / "gateway", env=fake_env(), flags=["--config", str(path)]).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def app(forge):
    return App(forge)


def option(argv, name):
    return argv[argv.index(name) + 1]


# Schemas

def test_a_structured_answer_is_the_result(app):
    answer = app.run({"result": "words", "keys": {"structured_output": {"name": "Ann", "age": 3}}},
                     schema=SCHEMA)
    assert_success(answer, {"name": "Ann", "age": 3})


def test_the_command_line_is_told_the_schema(app):
    report = app.run({"report": True, "keys": {"structured_output": {"name": "x"}}},
                     schema=SCHEMA)
    assert_success(report, {"name": "x"})
    plain = app.report()
    assert not set(LIMIT_FLAGS) & set(plain["argv"]), "nothing is said that was not asked for"


def test_an_answer_in_the_text_counts_if_it_meets_the_schema(app):
    assert_success(app.run({"result": '```json\n{"name": "Ann"}\n```'}, schema=SCHEMA),
                   {"name": "Ann"})


@pytest.mark.parametrize("said", ["I would rather not.", '{"age": 3}', '{"name": 5}', '["name"]',
                                  '{"name": "x", "age": -1}'])
def test_an_answer_that_does_not_meet_it_is_502_with_the_text(app, forge, said):
    answer = app.run({"result": said}, schema=SCHEMA)
    body = body_of(answer)
    assert (answer.status_code, body["code"]) == (502, "schema_not_met"), body
    assert body["detail"] == said
    assert "schema" in body["error"] and body["error"] != said
    row = row_of(forge, answer)
    assert (row["state"], row["outcome"]) == ("failed", "schema_not_met")
    assert row["cost_usd"] == 0.25, "it was paid for"


@pytest.mark.parametrize("schema", [
    {"type": "array"}, {}, {"type": "object", "properties": {"a": {"pattern": "a+"}}},
    {"type": "object", "required": "a"}, {"type": "object", "$ref": "http://x/y"},
    {"type": "object", "if": {}}, {"type": "object", "title": "x" * 65536}])
def test_a_bad_schema_is_422(app, schema):
    answer = app.run("x", schema=schema)
    body = answer.json()
    assert (answer.status_code, body["code"]) == (422, "bad_schema"), body
    assert [error["field"] for error in body["errors"]] == ["schema"]


@pytest.mark.parametrize("schema", ["object", [1], 5, True])
def test_a_schema_that_is_not_an_object_is_422(app, schema):
    assert_error(app.run("x", schema=schema), 422, "validation_failed")


def test_an_agent_of_sessions_is_told_at_the_end_of_the_prompt(app):
    answer = app.run("hello", agent="fake", schema=SCHEMA)
    body = body_of(answer)
    assert body["code"] == "schema_not_met"
    assert body["detail"].startswith("echo: hello\n") and '"required"' in body["detail"]


def test_claude_in_its_own_words_is_told_when_it_is_started(app):
    answer = app.run([{"text": "done"}, {"result": {"structured_output": {"name": "Ann"}}}],
                     agent="stream", schema=SCHEMA)
    assert_success(answer, {"name": "Ann"})
    session = app.run([{"report": "session"}, {"result": {"structured_output": {"name": "x"}}}],
                      agent="stream", schema=SCHEMA)
    assert_success(session, {"name": "x"})


# Tools and turns

@pytest.mark.parametrize("tools, told", [
    ("none", ""), ("read", "Read,Glob,Grep"), ("all", "default"), (["Bash", "Read"], "Bash,Read"),
    ([], "")])
def test_claude_is_told_which_tools_it_has(app, tools, told):
    assert option(app.report(tools=tools)["argv"], "--tools") == told
    streamed = body_of(app.run([{"report": "process"}], agent="stream", tools=tools))["result"]
    assert option(streamed["argv"], "--tools") == told


def test_claude_is_told_how_many_turns_it_has(app):
    assert option(app.report(max_turns=3)["argv"], "--max-turns") == "3"
    streamed = body_of(app.run([{"report": "process"}], agent="stream", max_turns=7))["result"]
    assert option(streamed["argv"], "--max-turns") == "7"


def test_a_run_that_has_used_its_turns_says_so(app):
    answer = app.run({"error": "Reached maximum number of turns (2)"}, max_turns=2)
    assert_failure(answer, 502, "max_turns")
    answer = app.run([{"text": "half"}, {"stop": "max_turn_requests"}], agent="fake")
    assert_failure(answer, 502, "max_turns")


@pytest.mark.parametrize("fields, field", [
    ({"tools": "some"}, "tools"), ({"tools": ["a b"]}, "tools"), ({"tools": ["--x"]}, "tools"),
    ({"tools": [1]}, "tools"), ({"tools": ["x"] * 65}, "tools"), ({"tools": 5}, "tools"),
    ({"max_turns": 0}, "max_turns"), ({"max_turns": 1001}, "max_turns"),
    ({"max_turns": "3"}, "max_turns"), ({"stream": "yes"}, "stream")])
def test_a_wrong_field_is_named(app, fields, field):
    errors = assert_error(app.run("x", **fields), 422, "validation_failed")["errors"]
    assert [error["field"] for error in errors] == [field]


@pytest.mark.parametrize("agent", ["fake", "demo"])
def test_who_cannot_be_told_refuses(app, agent):
    assert_error(app.run("x", agent=agent, tools="none"), 422, "tools_not_supported")
    assert_error(app.run("x", agent=agent, max_turns=3), 422, "max_turns_not_supported")


# The model

def test_the_model_is_echoed(app):
    assert body_of(app.run({}, include=["model"]))["model"] == "sonnet"
    assert body_of(app.run({}, model="opus", include=["model"]))["model"] == "opus"
    assert body_of(app.run("x", agent="demo", include=["model"]))["model"] == "demo-small"
    assert body_of(app.run("x", agent="fake", include=["model"]))["model"] is None


def test_the_default_model_of_an_agent_is_that_of_runs_and_sessions(new_gateway, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(agent_table("fake", [], model='"m2"') +
                    f'[agents.claude]\nprotocol = "claude"\ncommand = ["{FAKE_CLAUDE_STREAM}"]\n'
                    'model = "haiku"\n')
    app = App(new_gateway(env=fake_env(), flags=["--config", str(path)]))
    for agent, model in (("fake", "m2"), ("claude", "haiku"), ("demo", "demo-small")):
        session = app.client().post("/sessions", json={"agent": agent}).json()
        assert session["model"] == model
        run = body_of(app.run("x" if agent != "claude" else {}, agent=agent, include=["model"]))
        assert run["model"] == model
    listed = {agent["name"]: agent for agent in app.client().get("/agents").json()["agents"]}
    assert listed["fake"]["default_model"] == "m2"
    assert listed["fake"]["models"] == ["m1", "m2"], "as it told them"
    assert "high" in listed["fake"]["efforts"]
    assert listed["claude"]["models"] == ["default", "opus"]
    assert listed["fake"]["permission_modes"] == ["deny_all", "approve_reads", "ask", "approve_all"]


def test_a_wrong_model_in_a_table_stops_the_start(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(agent_table("fake", [], model='"-x"'))
    code, sentence = refused_start(tmp_path, "--config", str(path))
    assert code == 2 and "model" in sentence
