"""Conversations with the real command line, with the real adapter in front of it and without."""
import concurrent.futures
import json
import os
import pathlib
import signal
import uuid

import pytest

from conftest import ADAPTER_VERSION, API_KEY
from gateway import wait_until
from model_api import scripted, system_text, tool, tool_results, user_texts

FAILURE_KEYS = {"ok", "error", "stderr", "duration_ms", "stop_reason", "code", "detail",
                "request_id", "session_id", "turn_index", "events"}
RECALL = {"recall": True}
only_adapter = pytest.mark.parametrize("new_parlour", ["acp"], indirect=True)


def adapters(house):
    """The processes of agents, not of what watches over them: one for each live session."""
    if house.protocol == "claude":
        return command_lines(house)
    return {pid for pid, command in house.processes().items()
            if command.startswith("node ") and "claude-agent-acp" in command}


def command_lines(house):
    """The processes of the command line, not of what watches over them: one below each adapter, if
    there is one."""
    return {pid for pid, command in house.processes().items()
            if "--permission-prompt-tool" in command and is_claude(pid)}


def is_claude(pid):
    try:
        return "claude" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False  # it has ended


def updates(body, kind):
    found = [event["params"]["update"] for event in body["events"]
             if event.get("method") == "session/update"]
    return [update for update in found if update["sessionUpdate"] == kind]


def questions(body):
    return [event for event in body["events"]
            if event.get("method") == "session/request_permission"]


def failed(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) - {"resumed"} == FAILURE_KEYS
    assert body["ok"] is False
    assert body["code"] == code, body
    assert body["error"] == body["detail"]
    assert 0 < len(body["error"]) <= 500
    assert API_KEY not in answer.text
    return body


def assert_closed(house):
    """Nothing runs any more for any session."""
    wait_until(lambda: not house.processes(), "no process of a session is left")


def write_settings(house, **settings):
    folder = house.home / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings))


def test_a_session_is_made_and_its_first_turn_answered(parlour):
    talk = parlour.talk(agent="claude", meta={"ticket": 7})
    assert str(uuid.UUID(talk.id)) == talk.id
    assert talk.created["agent"] == "claude"
    assert talk.created["model"] == "sonnet"  # the default of the configuration
    assert parlour.api.calls() == 0
    body = talk.say("hello there")
    assert body["text"] == "fake reply to: hello there"
    assert body["stop_reason"] == "end_turn"
    assert body["turn_index"] == 1
    assert "resumed" not in body
    assert parlour.api.calls() == 1  # no title, no suggestion: the owner pays for each
    state = talk.state()
    assert state["live"] is True and state["busy"] is False
    assert state["turn_count"] == 1
    assert state["meta"] == {"ticket": 7}
    assert len(adapters(parlour)) == len(command_lines(parlour)) == 1


def test_three_turns_remember_each_other(parlour):
    talk = parlour.talk()
    assert talk.say("my fruit is a plum")["turn_index"] == 1
    assert talk.say("my tree is an oak")["turn_index"] == 2
    body = talk.say(scripted("what do you know?", RECALL))
    assert body["turn_index"] == 3
    assert body["text"] == ("you said: my fruit is a plum | my tree is an oak | "
                            "what do you know?")
    assert len(adapters(parlour)) == 1


def test_the_events_are_the_adapters_own(parlour):
    talk = parlour.talk()
    body = talk.say(scripted("hello", {"text": "one two three", "thinking": "let me see"}))
    chunks = updates(body, "agent_message_chunk")
    assert len(chunks) >= 2
    assert "".join(chunk["content"]["text"] for chunk in chunks) == body["text"] == "one two three"
    assert all(event["jsonrpc"] == "2.0" for event in body["events"])
    assert body["events"][-1]["result"]["stopReason"] == "end_turn"
    simple = talk.say(scripted("again", {"text": "one two three"}), event_format="simple")
    assert simple["events"] == [{"type": "text", "content": "one two three"}]


def test_a_tool_in_the_simple_format(parlour):
    talk = parlour.talk(permission_mode="approve_all")
    prompt = scripted("run it", tool("Bash", command="echo out-of-the-tool > f; cat f"),
                      {"text": "done"})
    calls = [event for event in talk.say(prompt, event_format="simple")["events"]
             if event["type"] == "tool_call"]
    assert len(calls) == 1
    assert "out-of-the-tool" in json.dumps(calls[0]["result"])


@pytest.mark.parametrize("name,arguments", [
    ("Bash", {"command": "echo made > made-by-a-tool.txt"}),
    ("Write", {"file_path": "made-by-a-tool.txt", "content": "made\n"}),
], ids=["bash", "write"])
def test_a_tool_is_allowed(parlour, name, arguments):
    talk = parlour.talk(permission_mode="approve_all")
    body = talk.say(scripted("make it", tool(name, **arguments), {"text": "made it"}))
    assert body["text"] == "made it"
    assert len(questions(body)) == 1
    assert [update["status"] for update in updates(body, "tool_call_update")
            if "status" in update] == ["completed"]
    files = parlour.client.get(f"/sessions/{talk.id}/files").json()["files"]
    assert [file["path"] for file in files] == ["made-by-a-tool.txt"]
    content = parlour.client.get(f"/sessions/{talk.id}/files/made-by-a-tool.txt")
    assert content.content == b"made\n"


@pytest.mark.parametrize("mode", ["deny_all", "approve_reads"])
@pytest.mark.parametrize("name,arguments", [
    ("Bash", {"command": "echo made > made-by-a-tool.txt"}),
    ("Write", {"file_path": "made-by-a-tool.txt", "content": "made\n"}),
], ids=["bash", "write"])
def test_a_tool_is_denied_by_the_mode(parlour, mode, name, arguments):
    talk = parlour.talk(permission_mode=mode)
    body = talk.say(scripted("make it", tool(name, **arguments), {"text": "I may not"}))
    assert body["text"] == "I may not"
    assert body["stop_reason"] == "end_turn"
    assert len(questions(body)) == 1
    result, = tool_results(parlour.api.requests()[-1])
    assert result["is_error"] is True
    assert parlour.client.get(f"/sessions/{talk.id}/files").json()["files"] == []
    assert talk.say(scripted("and now?", RECALL))["text"] == "you said: make it | and now?"


@pytest.mark.parametrize("mode,is_read", [("approve_reads", True), ("deny_all", False)])
def test_reading_elsewhere_is_decided_by_the_mode(parlour, mode, is_read):
    file = parlour.home / "elsewhere.txt"
    file.write_text("words from elsewhere\n")
    talk = parlour.talk(permission_mode=mode)
    body = talk.say(scripted("read it", tool("Read", file_path=str(file)), {"text": "done"}))
    assert len(questions(body)) == 1
    assert ("words from elsewhere" in parlour.api.sent_text()) == is_read


@pytest.mark.parametrize("name,arguments", [
    ("Bash", {"command": "ls"}), ("Read", {"file_path": "notes.txt"})], ids=["bash", "read"])
def test_deny_all_denies_what_the_adapter_would_not_ask_about(parlour, name, arguments):
    talk = parlour.talk(permission_mode="deny_all")
    talk.say(scripted("look", tool(name, **arguments), {"text": "I may not"}))
    result, = tool_results(parlour.api.requests()[-1])
    assert result["is_error"] is True
    assert "does not exist" not in json.dumps(result)


def test_a_turn_that_takes_too_long_is_cancelled_and_the_next_is_good(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    before = adapters(parlour)
    body = failed(talk.turn(scripted("be slow", {"hang": True}), timeout_secs=5), 504, "timeout")
    assert body["turn_index"] == 2
    assert 4500 <= body["duration_ms"] <= 10_000
    after = talk.say(scripted("what do you know?", RECALL))
    assert "my fruit is a plum" in after["text"]
    assert after["turn_index"] == 3
    # It acknowledged the cancel, so its process was kept.
    assert "resumed" not in after
    assert adapters(parlour) == before


def test_a_tool_that_takes_too_long_is_ended_with_its_turn(parlour):
    talk = parlour.talk(permission_mode="approve_all")
    prompt = scripted("wait", tool("Bash", command="touch begun; tail -f /dev/null"))
    body = failed(talk.turn(prompt, timeout_secs=6), 504, "timeout")
    assert updates(body, "tool_call")
    assert parlour.client.get(f"/sessions/{talk.id}/files/begun").status_code == 200
    wait_until(lambda: not any(command.startswith("tail -f")
                               for command in parlour.processes().values()),
               "the command of the tool is gone")
    assert talk.say("hello")["text"] == "fake reply to: hello"


def test_an_adapter_that_was_killed_is_started_again_and_remembers(parlour):
    talk = parlour.talk(model="haiku", effort="low", system="Speak like a pirate.")
    talk.say("my fruit is a plum")
    killed, = adapters(parlour)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not parlour.processes(), "the killed tree is gone")
    body = talk.say(scripted("what do you know?", RECALL))
    assert body["resumed"] is True
    assert body["text"] == "you said: my fruit is a plum | what do you know?"
    assert body["turn_index"] == 2
    # What is replayed of the past is not part of the turn.
    assert not updates(body, "user_message_chunk")
    request = parlour.api.requests()[-1]
    assert "haiku" in request["model"]
    assert request["output_config"]["effort"] == "low"
    assert "Speak like a pirate." in system_text(request)
    assert adapters(parlour) != {killed}
    assert "resumed" not in talk.say("and on")


def test_an_adapter_killed_in_mid_turn_fails_the_turn_at_once(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    killed, = adapters(parlour)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        turn = pool.submit(talk.turn, scripted("be slow", {"hang": True}))
        wait_until(lambda: parlour.api.calls() == 2, "the model is asked")
        os.kill(killed, signal.SIGKILL)
        body = failed(turn.result(timeout=60), 502, "agent_exited")
    assert body["turn_index"] == 2
    # Its command line was busy and would live on by itself.
    wait_until(lambda: not parlour.processes(), "nothing of the killed tree is left")
    after = talk.say(scripted("what do you know?", RECALL))
    assert after["resumed"] is True
    assert "my fruit is a plum" in after["text"]


def test_a_command_line_killed_below_its_adapter_costs_one_turn_at_most(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    killed, = command_lines(parlour)
    os.kill(killed, signal.SIGKILL)
    first = talk.turn("are you there?")
    assert first.status_code in (200, 502), first.text
    if first.status_code == 200:
        assert first.json()["resumed"] is True
    body = talk.say(scripted("what do you know?", RECALL))
    assert "my fruit is a plum" in body["text"]


def test_a_restart_of_the_gateway_loses_nothing(parlour):
    talk = parlour.talk(model="haiku")
    talk.say("my fruit is a plum")
    cost = talk.state()["cost_usd"]
    parlour.gateway.restart()
    parlour.client = parlour.gateway.client(parlour.token)
    parlour.client.timeout = 60
    assert talk.state()["live"] is False
    body = talk.say(scripted("what do you know?", RECALL))
    assert body["resumed"] is True
    assert body["text"] == "you said: my fruit is a plum | what do you know?"
    assert "haiku" in parlour.api.requests()[-1]["model"]
    assert talk.state()["cost_usd"] == pytest.approx(cost + body["cost_usd"])


def test_two_sessions_take_turns_with_one_process(new_parlour):
    house = new_parlour(CLAWDFORGE_MAX_AGENTS="1")
    first, second = house.talk(), house.talk()
    first.say("my fruit is a plum")
    second.say("my fruit is a pear")
    body = first.say(scripted("what do you know?", RECALL))
    assert body["resumed"] is True
    assert body["text"] == "you said: my fruit is a plum | what do you know?"
    wait_until(lambda: len(adapters(house)) == 1, "one process lives")
    assert (first.state()["live"], second.state()["live"]) == (True, False)


def test_a_session_that_was_put_to_sleep_unused_is_no_loss(new_parlour):
    """The adapter keeps nothing of a conversation in which nothing was said."""
    house = new_parlour(CLAWDFORGE_MAX_AGENTS="1")
    first, second = house.talk(system="Speak like a pirate."), house.talk()
    second.say("hello")
    body = first.say("hello")
    assert body["text"] == "fake reply to: hello"
    assert "Speak like a pirate." in system_text(house.api.requests()[-1])


def test_the_model_is_chosen(parlour):
    talk = parlour.talk(model="haiku", effort="low")
    assert talk.created["model"] == talk.state()["model"] == "haiku"
    talk.say("hello")
    other = parlour.talk(model="sonnet")
    other.say("hello")
    first, second = parlour.api.requests()
    assert "haiku" in first["model"]
    assert first["output_config"]["effort"] == "low"
    assert "sonnet" in second["model"]


@only_adapter
def test_an_unknown_model_is_refused(parlour):
    answer = parlour.client.post("/sessions", json={"model": "nonsense-9"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "unknown_model"
    assert "haiku" in answer.json()["detail"]
    assert parlour.client.get("/sessions").json()["sessions"] == []
    assert_closed(parlour)


def test_the_system_prompt_is_added_to_the_agents_own(parlour):
    parlour.talk().say("a")
    parlour.talk(system="Speak like a pirate.").say("b")
    plain, pirate = map(system_text, parlour.api.requests())
    assert "Speak like a pirate." not in plain
    assert "Speak like a pirate." in pirate
    assert len(pirate) >= len(plain)


def test_the_owners_own_settings_stay_out(parlour):
    mark = parlour.home / "hook-was-here"
    hook = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
    write_settings(parlour, hooks={"UserPromptSubmit": [hook]}, env={"LEAKED": "leaked-by-env"},
                   permissions={"allow": ["Bash(echo:*)", "Write"]}, outputStyle="Explanatory")
    folder = parlour.home / ".claude"
    (folder / "CLAUDE.md").write_text("the owner likes marmalade\n")
    (folder / "skills" / "jam").mkdir(parents=True)
    (folder / "skills" / "jam" / "SKILL.md").write_text(
        "---\nname: jam\ndescription: how the owner cooks marmalade\n---\ncook\n")
    (parlour.home / ".claude.json").write_text(json.dumps(
        {"mcpServers": {"marmalade": {"command": "/bin/false", "args": []}}}))
    talk = parlour.talk()
    body = talk.say(scripted("hello", tool("Bash", command="echo a-$LEAKED > out"), {"text": "ok"}))
    assert len(questions(body)) == 1  # the owner's rule would have allowed it
    killed, = adapters(parlour)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not parlour.processes(), "the killed tree is gone")
    assert talk.say("and after a load?")["resumed"] is True
    for word in ("marmalade", "leaked-by-env", "Explanatory"):
        assert word not in parlour.api.sent_text()
        assert word not in json.dumps(body)
    assert not mark.exists()


@pytest.mark.parametrize("owners_mode", ["acceptEdits", "bypassPermissions", "plan"])
def test_the_owners_own_mode_does_not_replace_the_sessions(new_parlour, owners_mode):
    """The adapter takes it from the owner's settings although it is told to leave them out."""
    house = new_parlour(IS_SANDBOX="1")
    write_settings(house, permissions={"defaultMode": owners_mode})
    talk = house.talk(permission_mode="approve_reads")
    write = tool("Write", file_path="made-by-a-tool.txt", content="made\n")
    assert len(questions(talk.say(scripted("make it", write, {"text": "done"})))) == 1
    killed, = adapters(house)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not house.processes(), "the killed tree is gone")
    body = talk.say(scripted("make it now", write, {"text": "done"}))
    assert body["resumed"] is True
    assert len(questions(body)) == 1
    assert house.client.get(f"/sessions/{talk.id}/files").json()["files"] == []


def test_the_owners_own_model_does_not_replace_the_sessions(parlour):
    """The adapter shows the owner's model as chosen while it uses another."""
    write_settings(parlour, model="haiku")
    parlour.talk(model="haiku").say("a")
    parlour.talk(model="sonnet").say("b")
    parlour.talk().say("c")
    first, second, third = [request["model"] for request in parlour.api.requests()]
    assert "haiku" in first
    assert "sonnet" in second
    assert "haiku" not in third


def test_the_owners_own_settings_apply_if_configured(new_parlour):
    house = new_parlour(CLAWDFORGE_CLAUDE_OWNER_SETTINGS="on")
    (house.home / ".claude").mkdir()
    (house.home / ".claude" / "CLAUDE.md").write_text("the owner likes marmalade\n")
    house.talk().say("hello")
    assert "marmalade" in house.api.sent_text()


def test_a_prompt_is_only_text(parlour):
    """Neither a command of the command line nor a path that it reads by itself."""
    file = parlour.home / "private.txt"
    file.write_text("never-to-be-sent-anywhere\n")
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    for prompt in ("/clear", "/model haiku", "/compact", "/cost", f"look at @{file}",
                   'zwölf Boxkämpfer 漢字 🙂 "quoted" \\back\\ \ttab\nline'):
        talk.say(prompt)
        request = parlour.api.requests()[-1]
        assert any(prompt in text for text in user_texts(request)), prompt
        assert "haiku" not in request["model"]
    assert "my fruit is a plum" in talk.say(scripted("what do you know?", RECALL))["text"]
    assert "never-to-be-sent-anywhere" not in parlour.api.sent_text()


def test_usage_and_cost_are_recorded(parlour):
    talk = parlour.talk()
    turns = [talk.say("one"), talk.say("two")]
    killed, = adapters(parlour)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not parlour.processes(), "the killed tree is gone")
    # The adapter tells the sum over the conversation, also after it was loaded.
    turns.append(talk.say("three"))
    assert turns[2]["resumed"] is True
    for turn in turns:
        assert turn["usage"]["input_tokens"] > 100
        assert turn["usage"]["output_tokens"] > 0
        assert turn["cost_usd"] > 0
    assert turns[2]["cost_usd"] < 2 * turns[0]["cost_usd"]
    state = talk.state()
    for name, tokens in state["usage"].items():
        assert tokens == sum(turn["usage"][name] for turn in turns), name
    assert state["cost_usd"] == pytest.approx(sum(turn["cost_usd"] for turn in turns))
    told = [update["cost"]["amount"] for update in updates(turns[2], "usage_update")
            if "cost" in update]
    assert state["cost_usd"] == pytest.approx(told[-1])


def test_close_leaves_nothing(parlour):
    talk = parlour.talk()
    talk.say("hello")
    assert parlour.processes()
    assert talk.close() == {"ok": True}
    assert_closed(parlour)
    assert talk.close() == {"ok": True, "already_closed": True}
    assert talk.turn("hello").status_code == 410
    state = talk.state()
    assert state["closed_at"] is not None and state["live"] is False


def test_close_ends_a_turn_in_the_middle_of_a_tool(parlour):
    talk = parlour.talk(permission_mode="approve_all")
    prompt = scripted("wait", tool("Bash", command="touch begun; tail -f /dev/null"))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        turn = pool.submit(talk.turn, prompt)
        wait_until(lambda: any(command.startswith("tail -f")
                               for command in parlour.processes().values()), "the tool runs")
        talk.close()
        answer = turn.result(timeout=60)
    assert answer.status_code == 410, answer.text
    assert answer.json()["code"] == "session_closed"
    assert_closed(parlour)


def test_two_sessions_at_once_know_nothing_of_each_other(parlour):
    talks = [parlour.talk(), parlour.talk()]
    fruits = ["plum", "pear"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        slow = [pool.submit(talk.say, scripted(f"my fruit is a {fruit}", {"delay_ms": 1500}))
                for talk, fruit in zip(talks, fruits)]
        for turn in slow:
            turn.result(timeout=60)
    assert parlour.api.stats()["max_inflight"] == 2
    assert len(adapters(parlour)) == 2
    for talk, fruit in zip(talks, fruits):
        body = talk.say(scripted("what do you know?", RECALL))
        assert body["text"] == f"you said: my fruit is a {fruit} | what do you know?"
    talks[0].close()
    assert talks[1].say("hello")["text"] == "fake reply to: hello"
    assert len(adapters(parlour)) == 1


def test_an_attached_file_is_read_by_the_agents_own_tool(parlour):
    token = parlour.upload("notes.txt", b"the password of the day is swordfish\n")
    talk = parlour.talk()
    prompt = "what does the file say?"
    talk.say(prompt, files=[token])
    text, = [text for text in user_texts(parlour.api.requests()[-1]) if prompt in text]
    assert text.rstrip("\n").endswith(prompt)
    path = next(word for line in text.splitlines() for word in line.split() if ".txt" in word)
    body = talk.say(scripted("read it", tool("Read", file_path=path), {"text": "swordfish"}))
    assert body["text"] == "swordfish"
    result, = tool_results(parlour.api.requests()[-1])
    assert "the password of the day is swordfish" in json.dumps(result)


@pytest.mark.parametrize("api_status,status,code", [
    (401, 503, "agent_not_logged_in"),
    (404, 422, "unknown_model"),
    (429, 429, "account_limit"),
    (500, 502, "api_error"),
])
def test_an_error_of_the_api_fails_the_turn_and_not_the_session(parlour, api_status, status, code):
    talk = parlour.talk()
    failed(talk.turn(scripted("hello", {"status": api_status})), status, code)
    assert talk.state()["closed_at"] is None
    assert talk.state()["live"] is True


def test_a_good_turn_follows_an_error_of_the_api(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    failed(talk.turn(scripted("hello", {"status": 500})), 502, "api_error")
    assert "my fruit is a plum" in talk.say(scripted("what do you know?", RECALL))["text"]


def test_not_logged_in(new_parlour):
    house = new_parlour(ANTHROPIC_API_KEY=None)
    answer = house.client.post("/sessions", json={})
    if answer.status_code == 200:  # the adapter finds out at the first turn
        answer = house.client.post(f"/sessions/{answer.json()['session_id']}/turn",
                                   json={"prompt": "hello"})
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "agent_not_logged_in"
    assert house.api.calls() == 0


@only_adapter
def test_the_list_of_agents_has_the_adapter(parlour):
    parlour.talk()
    agents = {agent["name"]: agent for agent in parlour.client.get("/agents").json()["agents"]}
    assert agents["claude"]["present"] is True
    assert agents["claude"]["protocol"] == "acp"
    assert agents["claude"]["version"] == ADAPTER_VERSION


def test_the_adapter_is_named_by_a_table_of_the_file(new_house, adapter, tmp_path):
    file = tmp_path / "clawdforge.toml"
    file.write_text('[agents.other]\nprotocol = "acp"\n'
                    f'command = ["{adapter}"]\n'
                    'env = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"]\n'
                    'permission_mode = "deny_all"\n')
    house = new_house(may_hold_agents=True, CLAWDFORGE_CONFIG=str(file))
    talk = house.talk(agent="other")
    assert talk.say("hello")["text"] == "fake reply to: hello"
    body = talk.say(scripted("make it", tool("Write", file_path="f.txt", content="x")))
    assert len(questions(body)) == 1
    assert house.client.get(f"/sessions/{talk.id}/files").json()["files"] == []


def test_the_key_is_in_no_file_of_the_gateway(parlour):
    talk = parlour.talk()
    talk.say("hello")
    seen = 0
    for file in [*pathlib.Path(parlour.gateway.data_dir).rglob("*"), parlour.gateway.stderr_file]:
        try:
            assert API_KEY.encode() not in file.read_bytes(), file
            seen += 1
        except OSError:
            pass  # a directory, a socket, or a file that the program has given its name just now
    assert seen > 5


def test_a_turn_with_a_schema_and_one_without(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    schema = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    # The adapter's Claude is told of the schema in its prompt.
    said = {"structured": {"name": "Ann"}} if parlour.protocol == "claude" else {"text": '{"name": "Ann"}'}
    body = talk.say(scripted("who?", said), schema=schema)
    assert body["result"] == {"name": "Ann"}
    plain = talk.say(scripted("what do you know?", RECALL))
    assert "result" not in plain and "my fruit is a plum" in plain["text"]


def test_a_system_prompt_in_the_place_of_the_agents_own(parlour):
    parlour.talk(system="Speak like a pirate.").say("a")
    parlour.talk(system="Speak like a pirate.", system_mode="replace").say("b")
    added, alone = map(system_text, parlour.api.requests())
    assert "Speak like a pirate." in alone and len(alone) < len(added) / 2


def test_a_fork_has_the_conversation(parlour):
    talk = parlour.talk()
    talk.say("my fruit is a plum")
    fork = parlour.talk(**{"from": talk.id})
    known = fork.say(scripted("what do you know?", RECALL))["text"]
    assert ("my fruit is a plum" in known) == (parlour.protocol == "claude")
    talk.say("it was a pear")
    assert "pear" not in fork.say(scripted("and now?", RECALL))["text"]
