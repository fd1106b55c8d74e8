"""POST /run with agents of sessions: one prompt in a conversation of its own, which ends with it."""
import json

import pytest

from agents import (ALL_CHILDREN, App, assert_failure, assert_nothing_left, assert_success, body_of,
                    processes, row_of, rows, settled_rows)
from answers import assert_error
from gateway import wait_until
from sessions import FAKE_ACP, agent_table, forge, is_alive, new_forge, only_acp, session_rows

__all__ = ["forge", "new_forge"]  # fixtures

KINDS = ("acp", "acpx", "claude")
NOT_CLAUDE = pytest.mark.kinds("acp", "acpx")


class Runner(App):
    """A prompt that is not text is a script for the stand-in."""

    def run(self, *steps, agent="fake", **fields):
        prompt = steps[0] if isinstance(steps[0], str) else json.dumps(list(steps))
        return self.post({"prompt": prompt, "agent": agent, **fields})

    def report(self, what, **fields):
        return body_of(self.run({"report": what}, **fields))["result"]


@pytest.fixture(scope="module")
def runner(forge):
    return Runner(forge, "runner")


# Answers

def test_an_answer_has_what_every_run_has(runner, forge):
    answer = runner.run({"text": "Hel"}, {"text": "lo."}, {"cost": 0.25}, {"usage": {
        "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 3, "cachedWriteTokens": 4}})
    body = assert_success(answer, "Hello.")
    assert body["stop_reason"] == "end_turn"
    assert answer.headers["X-Clawdforge-Cost-Usd"] == "0.25"
    assert answer.headers["X-Clawdforge-Input-Tokens"] == "100"
    row = row_of(forge, answer)
    assert (row["agent"], row["state"], row["outcome"]) == ("fake", "succeeded", "ok")
    assert (row["output_tokens"], row["cost_usd"]) == (20, 0.25)
    assert not [row for row in session_rows(forge) if row["app_name"] == "runner"]


@pytest.mark.parametrize("said, result", [
    ('{"a": [1]}', {"a": [1]}), ('```json\n{"a": 1}\n```', {"a": 1}), ("```\nx\n```", "x"),
    ("plain", "plain")])
def test_an_answer_is_read_as_that_of_claude(runner, said, result):
    assert_success(runner.run({"text": said}), result)


def test_what_is_said_before_a_tool_is_not_the_answer(runner):
    tool = {"toolCallId": "t1", "title": "Reads", "kind": "read", "result": "x"}
    answer = runner.run({"text": "I will look."}, {"tool": tool}, {"text": "It "},
                        {"text": "is 5."})
    assert_success(answer, "It is 5.")


def test_the_stop_reason_is_the_agents(runner):
    assert assert_success(runner.run({"text": "x"}, {"stop": "max_tokens"}))["stop_reason"] == \
        "max_tokens"


@only_acp
def test_a_large_answer_arrives_whole(runner):
    size = 3 * 1024 * 1024
    body = assert_success(runner.run({"flood": 1, "piece_bytes": size}))
    assert body["result"] == "x" * size


# What it is told

def test_it_works_in_a_directory_of_its_own(runner, forge):
    one, two = runner.report("process"), runner.report("process")
    assert one["cwd"] != two["cwd"]
    assert one["cwd"].startswith(str(forge.data_dir / "runs")) or one["cwd"].startswith("/")
    assert one["files"] == two["files"] == []
    assert "CLAWDFORGE_ADMIN_TOKEN" not in one["env"]


def test_files_are_there_and_named(runner):
    token = runner.upload("notes.txt", b"hello")
    answer = runner.run("read it", files=[token])
    assert_success(answer, "echo: read it\n\nAttached files in the current directory:\n"
                           "- attachment-1.txt (notes.txt)")
    script = json.dumps([{"report": "process"}])
    assert runner.run(script, files=[]).status_code == 200


@only_acp
def test_model_system_and_effort_reach_it(runner):
    report = runner.report("session", model="m2", system="be brief", effort="high")
    assert report["options"] == {"the-model": "m2", "the-effort": "high"}
    texts = runner.report("prompt", system="be brief")
    assert texts[0] == "be brief" and len(texts) == 2


@pytest.mark.kinds("claude")
def test_a_run_in_claudes_own_words_keeps_nothing(runner):
    argv = runner.report("process")["argv"]
    assert "--no-session-persistence" in argv
    session = runner.report("session", system="be brief", model="anything at all")
    assert session["opened_with"]["system"] == "be brief"
    assert session["options"] == {"set_model": "anything at all"}
    replaced = runner.report("session", system="only this", system_mode="replace")
    assert replaced["opened_with"]["replaced_system"] == ["only this"]


@NOT_CLAUDE
def test_a_system_prompt_that_cannot_be_replaced_is_422(runner):
    body = assert_failure(runner.run("x", system="only this", system_mode="replace"), 422,
                          "system_mode_not_supported")
    assert "append" in body["error"]


@only_acp
def test_an_unknown_model_is_422_with_those_that_there_are(runner):
    body = assert_failure(runner.run("x", model="gpt"), 422, "unknown_model")
    assert "m1" in body["error"] and "m2" in body["error"]


# Permissions

READ = {"permission": {"kind": "read", "title": "reads"}}
EDIT = {"permission": {"kind": "edit", "title": "edits"}}


def told(answer):
    """How the agent's questions were answered."""
    return "allow" in body_of(answer)["result"]


@pytest.mark.parametrize("mode, reads, edits", [
    ("deny_all", False, False), ("approve_reads", True, False), ("approve_all", True, True)])
def test_questions_are_answered_by_the_mode(runner, mode, reads, edits):
    for question, allowed in ((READ, reads), (EDIT, edits)):
        answer = runner.run(question, permission_mode=mode, include=["denials"])
        assert told(answer) is allowed, body_of(answer)
        denials = body_of(answer)["denials"]
        assert len(denials) == (0 if allowed else 1)
        assert all(denial["tool"] for denial in denials)


def test_a_run_cannot_be_asked(runner):
    body = assert_error(runner.run("x", permission_mode="ask"), 422,
                        "permission_mode_not_supported")
    assert "deny_all" in body["detail"] and "session" in body["detail"]


@only_acp
def test_an_agent_of_which_nothing_is_known_needs_approve_all(new_gateway, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'[agents.own]\ncommand = ["{FAKE_ACP}"]\n')
    runner = Runner(new_gateway(flags=["--config", str(path)]))
    body = assert_error(runner.run("x", agent="own"), 422, "permission_mode_not_supported")
    assert "approve_all" in body["detail"]
    assert_success(runner.run("x", agent="own", permission_mode="approve_all"), "echo: x")


# Failures

def test_an_error_of_the_agent_is_told(runner, forge):
    answer = runner.run({"error": {"code": -32603, "message": "It went wrong."}})
    assert_failure(answer, 502, "agent_error", "It went wrong.")
    assert row_of(forge, answer)["state"] == "failed"


def test_an_agent_that_dies_is_told(runner, forge):
    answer = runner.run({"stderr": "last words\n"}, {"exit": 3})
    body = body_of(answer)
    assert answer.status_code == 502, body
    assert_nothing_left(forge)


@pytest.mark.kinds("acp", "claude")
def test_a_program_that_is_missing_gets_the_sentence_of_sessions(new_gateway, tmp_path):
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": "/nowhere/claude"})
    runner = Runner(gateway)
    for agent in ("codex", "claude"):
        answer = runner.run("x", agent=agent)
        body = assert_failure(answer, 503, "agent_missing")
        created = runner.client().post("/sessions", json={"agent": agent})
        assert body["error"].startswith(created.json()["detail"]), "and the same remedy"
        assert "npm install -g" in body["error"]
        assert row_of(gateway, answer)["outcome"] == "agent_missing"
    assert_nothing_left(gateway)


@only_acp
@pytest.mark.parametrize("flag", ["--need-auth", "--need-auth-at-prompt"])
def test_an_agent_that_is_not_logged_in_says_what_a_session_says(new_gateway, tmp_path, flag):
    path = tmp_path / "config.toml"
    path.write_text(agent_table("out", [flag]))
    runner = Runner(new_gateway(flags=["--config", str(path)]))
    answer = runner.run("x", agent="out")
    assert_failure(answer, 503, "agent_not_logged_in",
                   "The agent out is not logged in on the gateway's machine.")


# Ends

def began(tmp_path):
    mark = tmp_path / "begun"
    return mark, {"touch": str(mark)}


def held(runner, tmp_path, *steps, **fields):
    mark, touch = began(tmp_path)
    wire = runner.send([touch, *steps, {"wait_for": str(tmp_path / "never")}], agent="fake",
                       **fields)
    wait_until(mark.exists, "the run begins")
    return wire


def test_a_run_over_its_time_is_504_and_leaves_nothing(runner, forge, tmp_path):
    wire = held(runner, tmp_path, {"children": ALL_CHILDREN[:3]}, timeout_secs=5)
    assert_failure(wire.read(), 504, "timeout")
    assert_nothing_left(forge)


def test_a_caller_who_hangs_up_cancels_it(runner, forge, tmp_path):
    before = len(rows(forge))
    wire = held(runner, tmp_path, {"children": ["plain", "setsid"]})
    wire.socket.close()
    row = settled_rows(forge, before + 1)[-1]
    assert (row["state"], row["stop_reason"]) == ("cancelled", "cancelled")
    assert_nothing_left(forge)


def test_its_app_can_cancel_it(runner, forge, tmp_path):
    wire = held(runner, tmp_path)
    run_id = rows(forge)[-1]["run_id"]
    answer = runner.client().post(f"/runs/{run_id}/cancel")
    assert answer.json() == {"ok": True, "cancelled": True}
    assert_failure(wire.read(), 410, "cancelled")
    assert_nothing_left(forge)


def test_an_agent_that_ends_for_nothing_leaves_nothing(new_forge, tmp_path):
    gateway = new_forge({"deaf": ["--ignore-term", "--ignore-eof"]}, kill_grace_ms=200)
    runner = Runner(gateway)
    assert_success(runner.run({"children": ["stubborn", "daemon"]}, {"text": "done"}, agent="deaf"),
                   "done")
    assert_nothing_left(gateway)


def test_it_can_be_stopped_while_it_is_started(new_forge, tmp_path):
    gateway = new_forge({"slow": ["--at-initialize", "stall"]}, kill_grace_ms=200)
    runner = Runner(gateway)
    assert_failure(runner.run("x", agent="slow", timeout_secs=5), 504, "timeout")
    assert_nothing_left(gateway)


def test_the_end_of_the_gateway_ends_it(new_forge, tmp_path):
    gateway = new_forge({}, drain_grace_secs=0, kill_grace_ms=200)
    wire = held(Runner(gateway), tmp_path, {"children": ["setsid"]})
    alive = processes(gateway)
    gateway.stop()
    assert wire.read().status == 503
    wait_until(lambda: not any(map(is_alive, alive)), "nothing is alive")


@pytest.mark.kinds("acpx")
def test_acpx_keeps_nothing_of_it(new_forge, tmp_path):
    gateway = new_forge({})
    records = gateway.root / ".acpx" / "sessions"
    assert_success(Runner(gateway).run("hello"), "echo: hello")
    assert_nothing_left(gateway)
    wait_until(lambda: not [path for path in records.rglob("*") if path.is_file()],
               "the records are gone")
    assert records.is_dir(), "there was one"
