"""Sessions with a stand-in for Claude's command line, spoken to in stream-json: what callers see is
the Agent Client Protocol, in every message, whatever is said."""
import functools
import json
import os
import signal

import jsonschema
import pytest

from agents import fake_env
from answers import assert_error
from gateway import REPO, SECONDS_MAX, wait_until
from sessions import (FAKE_ACP, Talker, app, assert_no_process_left, assert_turn,
                      assert_turn_failure, audit, forge, new_forge, query)

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = ("claude",)
FAKE_STREAM = REPO / "tests" / "agents" / "fake_claude_stream"
RULED = {"approve_reads": ("allow", "deny"), "approve_all": ("allow", "allow"),
         "deny_all": ("deny", "deny")}
MANY = 600_000  # bytes: more than the io thread reads by itself


@functools.cache
def checker(name):
    schema = json.loads((REPO / "tests" / "acp_schema" / "schema.json").read_text())
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


def assert_protocol(events):
    """Every message is one of the protocol's own, and the last ends the turn."""
    for event in events:
        assert event["jsonrpc"] == "2.0"
        if "method" not in event:
            name = "PromptResponse" if "result" in event else "Error"
            checker(name).validate(event.get("result") or event["error"])
        elif event["method"] == "session/update":
            assert "id" not in event
            checker("SessionNotification").validate(event["params"])
        else:
            assert event["method"] == "session/request_permission" and "id" in event
            checker("RequestPermissionRequest").validate(event["params"])
    assert "method" not in events[-1]
    return events


def updates(body, kind):
    found = [event["params"]["update"] for event in assert_protocol(body["events"])
             if event.get("method") == "session/update"]
    return [update for update in found if update["sessionUpdate"] == kind]


def kill(session):
    os.kill(session.pid(), signal.SIGKILL)
    wait_until(lambda: not session.state()["live"], "the gateway knows")


def use(name, call_id="call-1", parent=None, **arguments):
    return {"type": "assistant", "parent_tool_use_id": parent, "message": {
        "id": "m", "role": "assistant",
        "content": [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]}}


def gave(content, call_id="call-1", is_error=False, **report):
    return {"type": "user", "tool_use_result": report or None, "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}]}}


def test_text_and_thoughts_come_in_pieces(app):
    session = app.session()
    body = session.ask({"thought": "let me "}, {"thought": "see"}, {"text": "one "}, {"text": "two"})
    assert body["text"] == "one two" and body["stop_reason"] == "end_turn"
    assert [update["content"]["text"] for update in updates(body, "agent_thought_chunk")] == \
        ["let me ", "see"]
    assert [update["content"]["text"] for update in updates(body, "agent_message_chunk")] == \
        ["one ", "two"]
    simple = session.ask({"thought": "x"}, {"text": "y"}, event_format="simple")["events"]
    assert simple == [{"type": "thinking", "content": "x"}, {"type": "text", "content": "y"}]


def test_a_command_its_output_and_an_edit(app):
    hunk = {"oldStart": 1, "newStart": 1, "lines": [" a", "-b", "+c"]}
    body = app.session().ask({"stream": [
        use("Bash", command="ls", description="List"), gave("x\ny\n"),
        use("Edit", "call-2", file_path="/f", old_string="b", new_string="c"),
        gave("done", "call-2", filePath="/f", structuredPatch=[hunk]),
        use("Read", "call-3", file_path="/f"), gave("no", "call-3", is_error=True)]})
    calls = {call["toolCallId"]: call for call in updates(body, "tool_call")}
    ends = {end["toolCallId"]: end for end in updates(body, "tool_call_update")}
    assert [(calls[f"call-{n}"]["kind"], calls[f"call-{n}"]["title"], ends[f"call-{n}"]["status"])
            for n in (1, 2, 3)] == [("execute", "ls", "completed"), ("edit", "Edit /f", "completed"),
                                    ("read", "Read /f", "failed")]
    assert ends["call-1"]["content"][0]["content"]["text"] == "```console\nx\ny\n```"
    assert calls["call-2"]["content"] == [{"type": "diff", "path": "/f", "oldText": "b",
                                           "newText": "c"}]
    assert ends["call-2"]["content"] == [{"type": "diff", "path": "/f", "oldText": "a\nb",
                                          "newText": "a\nc"}]
    assert ends["call-2"]["locations"] == calls["call-3"]["locations"] == [{"path": "/f", "line": 1}]


def test_the_todo_tool_is_a_plan(app):
    todos = [{"content": "a", "status": "in_progress", "activeForm": "doing a"},
             {"content": "b", "status": "odd"}]
    body = app.session().ask({"stream": [use("TodoWrite", todos=todos), gave("ok")]})
    assert updates(body, "plan") == [{"sessionUpdate": "plan", "entries": [
        {"content": "doing a", "priority": "medium", "status": "in_progress"},
        {"content": "b", "priority": "medium", "status": "pending"}]}]
    assert not updates(body, "tool_call") and not updates(body, "tool_call_update")


def test_what_the_protocol_has_no_word_for_is_in_its_extension(app):
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1}
    body = app.session().ask({"stream": [
        retry, {"type": "system", "subtype": "status"}, {"type": "keep_alive"}, {"type": "newer"},
        use("Read", "call-9", "call-1", file_path="/f")]})
    assert [update["_meta"]["claudeCode"]["message"]
            for update in updates(body, "session_info_update")] == [retry, {"type": "newer"}]
    assert updates(body, "tool_call")[0]["_meta"]["claudeCode"]["parentToolUseId"] == "call-1"


@pytest.mark.parametrize("mode", RULED)
def test_a_mode_decides_what_is_asked(app, mode):
    for kind, decision in zip(("read", "execute"), RULED[mode]):
        session = app.session(permission_mode=mode)
        body = session.ask({"permission": {"kind": kind, "title": "do-it"}})
        assert body["text"] == f"permission: {decision}"
        question, = [event for event in assert_protocol(body["events"])
                     if event.get("method") == "session/request_permission"]
        assert question["params"]["toolCall"]["kind"] == kind
        assert audit(app.gateway, session) == ["create", "permission", "turn"]


@pytest.mark.parametrize("choice,heard", [
    ({"decision": "allow"}, "allow"), ({"decision": "deny"}, "deny"),
    ({"option_id": "allow-with-updates"},
     'always [{"type": "addRules", "destination": "session"}]')])
def test_the_app_is_asked_and_its_answer_is_heard(app, choice, heard):
    session = app.session(permission_mode="ask")
    wire = session.send({"permission": {"kind": "execute", "title": "do-it"}})
    path = session.path + "/permissions"
    question, = wait_until(lambda: app.get(path).json()["permissions"], "it is asked")
    assert (question["title"], question["kind"]) == ("do-it", "execute")
    answer = app.client().post(f"{path}/{question['id']}", json=choice)
    assert answer.status_code == 200, answer.text
    assert assert_turn(wire.read())["text"] == f"permission: {heard}"


def test_modes_in_which_all_is_asked_have_a_rule_for_it(app):
    for mode, has_rule in (("deny_all", True), ("ask", True), ("approve_reads", False)):
        session = app.session(permission_mode=mode)
        report = session.report("session")
        assert report["mode"] == "default", "a mode in which it asks"
        assert ("--settings" in report["opened_with"]["options"]) is has_rule


def test_what_a_session_is_made_with_reaches_the_agent(app):
    session = app.session(model="some-model", effort="low", system="Be brief.")
    report = session.report("session")
    assert report["options"] == {"set_model": "some-model",
                                 "apply_flag_settings": {"effortLevel": "low"}}
    assert report["opened_with"]["system"] == "Be brief."
    argv = session.report("process")["argv"]
    assert "Be brief." not in argv
    assert argv[argv.index("--setting-sources") + 1] == "" and "--strict-mcp-config" in argv


def test_commands_and_paths_in_a_prompt_are_text(app):
    session = app.session()
    assert session.told("/model opus") == "echo: \n/model opus"
    assert session.told("@/etc/passwd") == "echo: @/etc/passwd"
    assert session.told({"env": "CLAUDE_CODE_DISABLE_ATTACHMENTS"}) == "1"


def test_a_cancelled_turn_ends_and_the_next_is_good(app):
    session = app.session(permission_mode="ask")
    wire = session.send({"permission": {"kind": "execute", "title": "do-it"}})
    wait_until(lambda: app.get(session.path + "/permissions").json()["permissions"], "it is asked")
    assert app.client().post(session.path + "/cancel").status_code == 200
    body = json.loads(wire.read().body)
    assert body["stop_reason"] == "cancelled"
    assert session.told("hello") == "echo: hello"
    assert session.report("calls").count("interrupt") == 1


def test_results_of_the_agents_own_doing_end_no_turn(app):
    own = {"type": "result", "subtype": "success", "is_error": False, "result": "x",
           "total_cost_usd": 0, "origin": {"kind": "task-notification"},
           "model_usage_since_last_result": {"fake": {"costUSD": 0.5}}}
    body = app.session().ask({"stream": [own]}, {"text": "after"})
    assert body["text"] == "after"
    assert body["cost_usd"] == pytest.approx(0.5), "it is counted to the turn"


def test_cost_is_a_difference_and_usage_is_told(app):
    session = app.session()
    usage = {"inputTokens": 5, "outputTokens": 6, "cachedReadTokens": 7, "cachedWriteTokens": 8}
    first = session.ask({"cost": 0.25}, {"usage": usage})
    assert first["cost_usd"] == pytest.approx(0.25)
    assert first["usage"] == {"input_tokens": 5, "output_tokens": 6, "cache_read_tokens": 7,
                              "cache_write_tokens": 8}
    second = session.ask({"cost": 0.75})
    assert second["cost_usd"] == pytest.approx(0.5)
    assert updates(second, "usage_update")[-1]["cost"] == {"amount": 0.75, "currency": "USD"}
    kill(session)
    third = assert_turn(session.turn({"cost": 0.5}), resumed=True)
    assert third["cost_usd"] == pytest.approx(0.5), "another process counts from zero"
    assert session.state()["cost_usd"] == pytest.approx(1.25)


@pytest.mark.parametrize("message,status,code", [
    ("Not logged in · Please run /login", 503, "agent_not_logged_in"),
    ("You've hit your session limit · resets in 2h", 429, "account_limit"),
    ("API Error: 500 Internal server error.", 502, "api_error")])
def test_an_error_fails_the_turn_and_not_the_session(new_forge, message, status, code):
    app = Talker(new_forge())
    session = app.session()
    body = assert_turn_failure(session.turn({"error": {"code": 0, "message": message}}), status, code)
    assert_protocol(body["events"])
    assert session.state()["live"] is True


def test_a_killed_agent_remembers_and_says_so(app):
    session = app.session()
    session.told("my fruit is a plum")
    kill(session)
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "my fruit is a plum"


@pytest.mark.parametrize("agent", ["load-gone", "no-load"])
def test_a_lost_conversation_is_told_and_another_begun(app, agent):
    session = app.session(agent)
    session.told("my fruit is a plum")
    before = session.row()["agent_session_id"]
    kill(session)
    body = assert_turn(session.turn({"recall": True}), resumed=False)
    assert len(json.loads(body["text"])) == 1, "it knows nothing of before"
    assert session.row()["agent_session_id"] != before
    session.close()
    wait_until(lambda: not session.processes(), "nothing is left of either")


def test_large_lines_and_nonsense(app):
    body = app.session().ask({"big_line": MANY}, {"nonsense": 3}, {"text": "after"})
    assert body["text"].startswith("yyy") and body["text"].endswith("after")
    assert len(body["text"]) > MANY - 1000


def test_a_line_without_an_end_ends_the_agent(app):
    session = app.session()
    assert_turn_failure(session.turn({"big_line": 33 * 1024 * 1024}), 502, "agent_line_too_long")
    assert session.told("hello") == "echo: hello"


def test_an_unknown_request_is_answered(app):
    request = {"type": "control_request", "request_id": "odd", "request": {"subtype": "odd"}}
    session = app.session()
    session.ask({"stream": [request]})
    wait_until(lambda: session.report("answers") == 1, "it is answered")


def test_an_agent_that_does_not_start(new_forge):
    app = Talker(new_forge({"bad": ["--at-initialize", "exit"], "rude": ["--at-initialize", "error"]}))
    assert_error(app.create("bad"), 502, "agent_exited")
    assert_error(app.create("rude"), 502, "agent_protocol")
    assert_no_process_left(app.gateway)


# The built-in agent

def claude_of(gateway):
    return next(agent for agent in gateway.admin.get("/agents").json()["agents"]
                if agent["name"] == "claude")


def programs(place, version):
    """A folder with Claude's command line and its adapter."""
    place.mkdir()
    claude = place / "claude"
    claude.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version} (Claude Code)" && exit\n'
                      f'exec {FAKE_STREAM} "$@"\n')
    claude.chmod(0o755)
    (place / "claude-agent-acp").symlink_to(FAKE_ACP)
    return {**fake_env(claude_bin=claude), "PATH": f"{place}:/usr/bin:/bin"}


def test_claude_alone_is_enough_for_sessions(new_gateway, tmp_path):
    env = programs(tmp_path / "bin", "2.1.325")
    (tmp_path / "bin/claude-agent-acp").unlink()
    gateway = new_gateway(env=env)
    session = Talker(gateway).session("claude")
    assert session.told("hello") == "echo: hello"
    assert claude_of(gateway)["protocol"] == "claude"
    program, = claude_of(gateway)["programs"]
    assert program["use"] == "runs and sessions"


def test_a_program_that_is_too_old_goes_through_its_adapter(new_gateway, tmp_path):
    gateway = new_gateway(env=programs(tmp_path / "bin", "2.1.196"))
    wait_until(lambda: claude_of(gateway)["protocol"] == "acp", "its version is known")
    session = Talker(gateway).session("claude")
    assert session.told("hello") == "echo: hello"
    assert "session/new" in session.report("calls")


@pytest.mark.parametrize("protocol", ["acp", "claude"])
def test_the_file_chooses_the_protocol(new_gateway, tmp_path, protocol):
    config = tmp_path / "config.toml"
    config.write_text(f'[agents.claude]\nprotocol = "{protocol}"\n')
    gateway = new_gateway(env=programs(tmp_path / "bin", "2.1.325"), flags=["--config", str(config)])
    assert claude_of(gateway)["protocol"] == protocol
    calls = Talker(gateway).session("claude").report("calls")
    assert ("session/new" in calls) is (protocol == "acp")
