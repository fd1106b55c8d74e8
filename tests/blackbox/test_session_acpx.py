"""What only acpx does: its exit codes and error lines, its queue owner, its files, its silences.
What holds for any agent is in the other files, which run through acpx as well."""
import json
import os
import signal
import time

import pytest

from agents import processes_below
from answers import assert_error
from gateway import wait_until
from sessions import (FAKE_ACP, FAKE_ACPX, Talker, agent_table, app, assert_no_process_left, command_line,
                      assert_turn, assert_turn_failure, audit, change, forge, journal, new_forge,
                      session_gateway, session_rows, sweep, texts_of)

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = ("acpx",)

# Agents whose acpx goes wrong, by what the stand-in is told.
BROKEN = ["garbage", "exit5", "exit1", "no_stop", "dumb", "timeout", "no_session", "usage", "queue",
          "denied", "replace", "forget_silently", "early_cancel", "slow_close", "no_close", "no_id",
          "mute", "stall", "bare"]


def broken_table(name, faults=None, flags=()):
    return agent_table(name.replace("_", "-"), flags, "acpx",
                       set_env=f'{{ FAKE_ACPX = "{faults or name}" }}')


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    tables = [broken_table(name) for name in BROKEN]
    tables += [broken_table(f"bare-{name}", f"bare,{name}")
               for name in ("timeout", "no_session", "usage", "denied")]
    with session_gateway(tmp_path_factory.mktemp("broken"), more="\n".join(tables), kind="acpx",
                         agent_start_timeout_secs=8) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def caller(broken):
    return Talker(broken, "caller")


def acpx_files(gateway):
    """What acpx has written down in the login's home."""
    root = gateway.root / ".acpx"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def owners(session):
    return [pid for pid in session.processes() if b"__queue-owner" in command_line(pid)]


# Turns

@pytest.mark.parametrize("agent", ["garbage", "exit5", "exit1"])
def test_the_stop_line_is_the_success_whatever_else_is_printed(caller, agent):
    session = caller.session(agent)
    for index in (1, 2, 3):
        body = session.ask({"text": "a"}, {"late": "b"})
        assert (body["turn_index"], body["text"], body["stop_reason"]) == (index, "a", "end_turn")
        assert "resumed" not in body
    session.close()


@pytest.mark.parametrize("agent, status, code", [
    ("no-stop", 502, "agent_nonsense"), ("dumb", 502, "agent_exited"),
    ("timeout", 504, "acpx_timeout"), ("no-session", 502, "acpx_no_session"),
    ("usage", 502, "acpx_usage"), ("queue", 502, "acpx_queue"), ("denied", 502, "acpx_permission"),
    ("bare-timeout", 504, "acpx_timeout"), ("bare-no-session", 502, "acpx_no_session"),
    ("bare-usage", 502, "acpx_usage"), ("bare-denied", 502, "acpx_permission")])
def test_without_the_stop_line_a_turn_has_failed_and_says_how(caller, agent, status, code):
    session = caller.session(agent)
    for index in (1, 2):
        body = assert_turn_failure(session.turn({"text": "a"}), status, code)
        assert body["turn_index"] == index
        assert body["stop_reason"] == ("timeout" if status == 504 else "error")
    wait_until(lambda: not session.processes(), "what it has left is not trusted with another turn")
    session.close()


@pytest.mark.parametrize("agent", ["replace", "forget-silently"])
def test_a_conversation_that_acpx_has_replaced_is_said_to_be_lost(caller, agent):
    session = caller.session(agent)
    assert "resumed" not in session.ask("before"), "there was nothing to lose"
    assert "resumed" not in session.ask("warm")
    os.kill(session.pid(), signal.SIGKILL)
    wait_until(lambda: session.pid() is None, "acpx has seen that its agent is gone")
    body = assert_turn(session.turn({"recall": True}), resumed=False)
    assert len(json.loads(body["text"])) == 1
    assert "resumed" not in session.ask("warm again")
    session.close()


def test_the_system_prompt_is_told_again_to_an_agent_that_has_forgotten_it(caller):
    session = caller.session("replace", system="be nice")
    assert session.report("prompt")[0] == "be nice"
    assert len(session.report("prompt")) == 1
    os.kill(session.pid(), signal.SIGKILL)
    wait_until(lambda: session.pid() is None, "acpx has seen that its agent is gone")
    session.ask("begins another conversation")
    assert session.report("prompt")[0] == "be nice"
    session.close()


def test_an_owner_that_is_killed_between_turns_is_started_again(app):
    session = app.session()
    session.ask("before")
    owner, = owners(session)
    os.kill(owner, signal.SIGKILL)
    wait_until(lambda: not owners(session), "it is gone")
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"
    session.close()


def test_an_owner_that_is_killed_in_mid_turn_fails_the_turn_and_the_next_is_resumed(app, tmp_path):
    session = app.session()
    session.ask("before")
    held = session.hold(tmp_path).begun()
    os.kill(owners(session)[0], signal.SIGKILL)
    assert_turn_failure(held.answer(), 502, "acpx_queue")
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"
    session.close()


def test_what_follows_the_stop_line_is_late(app, forge):
    session = app.session()
    assert session.told({"text": "a"}, {"late": "b"}) == "a"

    def late():
        return [event["turn_index"] for event in journal(forge, session)
                if texts_of([event["data"]]) == ["b"]]
    wait_until(lambda: late() == [1], "it belongs to its turn")
    session.close()


def test_only_the_agents_side_becomes_events(app):
    session = app.session()
    events = session.ask({"text": "a"}, {"unknown_request": "fs/read_text_file"},
                         {"permission": {"kind": "read"}})["events"]
    methods = [event.get("method", "result") for event in events]
    assert methods == ["session/update", "session/update", "session/request_permission",
                       "session/update", "result"]
    session.close()


def test_a_permission_and_acpxs_answer_are_written_down(app, forge):
    session = app.session(permission_mode="approve_reads")
    assert session.told({"permission": {"kind": "edit", "title": "W"}}) == "permission: reject-once"
    kinds = {event["event"]: event["data"] for event in journal(forge, session)}
    assert kinds["permission"]["title"] == "W"
    assert (kinds["permission_resolved"]["decision"], kinds["permission_resolved"]["option_id"],
            kinds["permission_resolved"]["by"]) == ("deny", "reject-once", "rule")
    assert "permission" in audit(forge, session)
    session.close()


def test_acpx_passes_no_question_on_so_it_cannot_be_held_to_ask(app):
    body = assert_error(app.create(permission_mode="ask"), 422, "permission_mode_not_supported")
    assert "deny_all, approve_reads, approve_all" in body["detail"]


def test_a_cancel_that_comes_too_early_is_tried_again(caller):
    session = caller.session("early-cancel")
    body = assert_turn_failure(session.turn({"sleep_until_cancel": True}, timeout_secs=5), 504,
                               "timeout")
    assert body["events"][-1]["result"]["stopReason"] == "cancelled", "the agent has heard of it"
    assert "resumed" not in session.ask("still there")
    session.close()


# The start

@pytest.mark.parametrize("agent, status, code", [
    ("no-id", 502, "agent_nonsense"), ("mute", 502, "agent_nonsense"),
    ("stall", 504, "agent_start_timeout")])
def test_an_acpx_that_makes_no_session_leaves_nothing(broken, caller, agent, status, code):
    rows = len(session_rows(broken))
    assert_error(caller.create(agent), status, code)
    assert len(session_rows(broken)) == rows
    wait_until(lambda: not processes_below(broken.data_dir / "sessions"), "nothing runs")


def test_an_effort_is_kept_but_not_beside_a_model(app):
    session = app.session(effort="high")
    assert session.report("session")["options"]["the-effort"] == "high"
    session.close()
    assert_error(app.create(effort="high", model="m2"), 422, "effort_not_supported")
    assert_error(app.create(effort="max", agent="no-load", model="m1"), 422, "effort_not_supported")


def test_the_model_is_in_the_environment_as_well(app):
    session = app.session(model="m2")
    assert session.told({"env": "ANTHROPIC_MODEL"}) == "m2"
    session.close()
    session = app.session()
    assert session.told({"env": "ANTHROPIC_MODEL"}) == "(none)"
    session.close()


def test_without_acpx_its_agents_are_not_there(new_forge):
    gateway = new_forge(acpx_bin="/nonexistent/acpx")
    body = assert_error(Talker(gateway).create(), 503, "agent_not_found")
    assert "npm install -g acpx" in body["detail"]


def test_claude_goes_through_acpx_where_only_that_is_there(new_gateway, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "acpx").symlink_to(FAKE_ACPX)
    gateway = new_gateway(start=False, env={"PATH": f"{tools}:/usr/bin:/bin"})
    (gateway.root / ".acpx").mkdir(parents=True)
    (gateway.root / ".acpx" / "config.json").write_text(
        json.dumps({"agents": {"claude": {"argv": [str(FAKE_ACP)]}}}))
    gateway.start()
    talker = Talker(gateway)
    agents = {agent["name"]: agent for agent in talker.get("/agents").json()["agents"]}
    assert (agents["claude"]["protocol"], agents["claude"]["present"]) == ("acpx", True)
    session = talker.session("claude")
    assert session.told("hello") == "echo: hello"
    agents = {agent["name"]: agent for agent in talker.get("/agents").json()["agents"]}
    assert agents["claude"]["version"] == "1.2.3"
    session.close()


@pytest.mark.parametrize("name, hint", [
    ("codex", "npm install -g @agentclientprotocol/codex-acp"),
    ("gemini", "npm install -g @google/gemini-cli"), ("opencode", "npm install -g opencode-ai")])
def test_the_other_agents_are_known_by_name_and_say_what_to_install(app, name, hint):
    agents = {agent["name"]: agent for agent in app.get("/agents").json()["agents"]}
    assert (agents[name]["protocol"], agents[name]["present"]) == ("acp", False)
    assert hint in assert_error(app.create(name), 503, "agent_not_found")["detail"]


@pytest.mark.parametrize("name, program", [
    ("codex", "codex-acp"), ("gemini", "gemini"), ("opencode", "opencode")])
def test_the_other_agents_say_how_to_log_in(new_gateway, tmp_path, name, program):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / program).write_text(f"#!/bin/sh\nexec {FAKE_ACP} --need-auth\n")
    (tools / program).chmod(0o755)
    gateway = new_gateway(env={"PATH": f"{tools}:/usr/bin:/bin"})
    body = assert_error(Talker(gateway).create(name), 503, "agent_not_logged_in")
    assert f"run `clawdforge agent login {name}`" in body["detail"]


# The end

def test_the_owner_lives_between_turns_and_ends_with_the_session(app, forge):
    session = app.session()
    session.ask("one")
    owner, = owners(session)
    session.ask("two")
    assert owners(session) == [owner], "it is the same for all turns"
    assert session.close() == {"ok": True}
    assert not session.processes(), "when it is answered the tree is gone"


@pytest.mark.parametrize("turns", [0, 1])
def test_a_closed_session_leaves_nothing_in_the_home(new_forge, turns):
    gateway = new_forge()
    talker = Talker(gateway)
    other = talker.session()
    other.ask("mine stays")
    kept = acpx_files(gateway)
    session = talker.session()
    for _ in range(turns):
        session.ask("something secret")
    assert len(acpx_files(gateway)) > len(kept)
    session.close()
    assert acpx_files(gateway) == kept
    assert session.close() == {"ok": True, "already_closed": True}
    assert other.told("hello") == "echo: hello"


def test_a_sleeping_session_keeps_its_record_until_it_is_closed(new_forge):
    gateway = new_forge(max_agents=1)
    talker = Talker(gateway)
    first = talker.session()
    first.ask("before")
    second = talker.session()
    wait_until(lambda: not first.processes(), "it sleeps")
    assert len([name for name in acpx_files(gateway) if name.endswith(".stream.ndjson")]) == 1
    second.close()
    body = assert_turn(first.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"
    gateway.restart()
    first.close()
    assert acpx_files(gateway) == []


def test_a_session_that_is_swept_leaves_nothing_in_the_home(new_forge):
    gateway = new_forge(session_ttl_secs=1)
    session = Talker(gateway).session()
    session.ask("hello")

    def is_swept():
        gateway.admin.post("/admin/sweep")
        return session.state()["closed_at"] is not None
    wait_until(is_swept, "it is closed")
    assert acpx_files(gateway) == []
    assert_no_process_left(gateway)


@pytest.mark.parametrize("agent", ["slow-close", "no-close"])
def test_a_close_that_acpx_does_not_make_is_made_all_the_same(broken, caller, agent):
    session = caller.session(agent)
    session.ask("hello")
    record = session.row()["agent_session_id"].removeprefix("acpx:")
    assert session.close() == {"ok": True}
    assert not session.processes()
    assert not [name for name in acpx_files(broken) if record in name]


def test_a_killed_gateway_takes_the_owner_along(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    session.ask("before")
    assert owners(session)
    gateway.kill()
    wait_until(lambda: not processes_below(gateway.root), "nothing outlives it")
    gateway.start()
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"
    session.close()
    assert acpx_files(gateway) == []


def test_what_acpx_has_kept_goes_with_the_row_however_the_session_was_closed(new_forge):
    gateway = new_forge(max_agents=1)
    app = Talker(gateway)
    session = app.session()
    session.ask("hello")
    other = app.session()  # which puts the first one to sleep
    wait_until(lambda: not session.processes(), "it sleeps")
    long_ago = int(time.time()) - 10 * 86_400
    assert change(gateway, "UPDATE sessions SET closed_at = ? WHERE session_id = ?", long_ago,
                  session.id) == 1
    other.close()
    assert acpx_files(gateway) != [], "acpx has not been told yet"
    sweep(gateway)
    assert session.row() is None
    assert acpx_files(gateway) == []
