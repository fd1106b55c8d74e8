"""Agents that die, hang, flood or speak nonsense, at every phase; and what comes after."""
import base64
import contextlib
import json
import os
import signal
import sqlite3
import time

import pytest

from agents import descriptors, fewer, gauge, processes, processes_below
from answers import assert_error
from gateway import wait_until
from sessions import (BOTH_KINDS, LINE_BYTES_MAX, Talker, app, assert_no_process_left, assert_turn,
                      assert_turn_failure, audit, forge, journal, new_forge, only_acp, session_dirs,
                      session_gateway, session_rows, texts_of, turn_rows)
from wire import Wire, bearer, with_body

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = BOTH_KINDS

STARTS = {
    "exit": (502, "agent_exited"), "signal": (502, "agent_exited"), "stderr": (502, "agent_exited"),
    "stall": (504, "agent_start_timeout"), "nonsense": (504, "agent_start_timeout"),
    "error": (502, "agent_error"), "error:-32000": (503, "agent_not_logged_in"),
    "long_line": (502, "agent_line_too_long")}
FAULTS = {
    **{f"{phase}-{what.replace(':', '')}": [f"--at-{phase}", what]
       for phase in ("initialize", "new", "load", "resume", "option")
       for what in (*STARTS, "noise", "empty")},
    "need-auth": ["--need-auth"], "need-auth-at-prompt": ["--need-auth-at-prompt"],
    "version-two": ["--protocol", "2"], "no-options": ["--no-options"],
    "stubborn": ["--ignore-term", "--ignore-eof"],
    "fleeting": ["--leave-after", "session/load"]}
for name in [name for name in FAULTS if name.startswith("resume-")]:
    FAULTS[name] = ["--resume", *FAULTS[name]]


@pytest.fixture(scope="module")
def broken(tmp_path_factory, agent_kind):
    """A gateway with an agent for each fault, and little patience."""
    with session_gateway(tmp_path_factory.mktemp("broken"), FAULTS, kind=agent_kind,
                         agent_start_timeout_secs=8, cancel_grace_ms=300) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def caller(broken):
    return Talker(broken, "caller")


def agent_of(phase, what):
    return f"{phase}-{what.replace(':', '')}"


# The start

@pytest.mark.parametrize("what", STARTS)
@pytest.mark.parametrize("phase", ["initialize", "new"])
def test_an_agent_that_does_not_start_leaves_nothing(broken, caller, phase, what, agent_kind):
    # Of a line that is too long acpx says nothing: it waits for another one.
    what = "stall" if agent_kind == "acpx" and what == "long_line" else what
    status, code = STARTS[what]
    rows, dirs = len(session_rows(broken)), session_dirs(broken)
    body = assert_error(caller.create(agent_of(phase, what)), status, code)
    assert "last words" not in body["detail"], "a sentence has no words of the agent's log"
    assert what != "stderr" or "last words" in body["stderr"]
    assert len(session_rows(broken)) == rows
    wait_until(lambda: session_dirs(broken) == dirs, "its directory is gone")
    assert_no_process_left(broken)


@pytest.mark.parametrize("agent, status, code", [
    ("need-auth", 503, "agent_not_logged_in"), ("version-two", 502, "agent_protocol"),
    ("new-empty", 502, "agent_nonsense")])
def test_an_agent_that_cannot_be_used_says_why(broken, caller, agent, status, code, agent_kind):
    if agent_kind == "acpx" and agent != "need-auth":
        agent, code = "new-error", "agent_error"  # acpx looks at what agents say, and words it
    rows = len(session_rows(broken))
    assert_error(caller.create(agent), status, code)
    assert len(session_rows(broken)) == rows
    assert_no_process_left(broken)


@pytest.mark.parametrize("agent", ["initialize-noise", "new-noise", "no-options"])
def test_noise_at_the_start_does_no_harm(caller, agent):
    session = caller.session(agent)
    assert session.told("hello") == "echo: hello"
    session.close()


@only_acp
@pytest.mark.parametrize("what", ["exit", "stall", "nonsense", "long_line"])
def test_an_agent_that_fails_while_it_is_set_leaves_nothing(broken, caller, what):
    status, code = STARTS[what]
    rows = len(session_rows(broken))
    assert_error(caller.create(agent_of("option", what), model="m2"), status, code)
    assert len(session_rows(broken)) == rows
    assert_no_process_left(broken)


def test_a_model_that_the_agent_does_not_take_is_422(broken, caller, agent_kind):
    rows = len(session_rows(broken))
    for agent in ("option-error", "no-options")[agent_kind == "acpx":]:
        assert caller.create(agent, model="m2").status_code == 422
    assert len(session_rows(broken)) == rows


@only_acp  # acpx loads the conversation at its first turn already
@pytest.mark.parametrize("phase", ["load", "resume"])
@pytest.mark.parametrize("what", ["exit", "stall", "nonsense", "long_line", "error:-32000"])
def test_an_agent_that_fails_to_come_back_fails_the_turn(broken, caller, phase, what):
    status, code = STARTS[what]
    session = caller.session(agent_of(phase, what))
    assert_turn_failure(session.turn({"exit": 1}), 502, "agent_exited")
    for index in (2, 3):
        body = assert_turn_failure(session.turn("hello"), status, code)
        assert (body["turn_index"], body["events"]) == (index, [])
    wait_until(lambda: not session.processes(), "none is left")
    assert session.state()["closed_at"] is None, "it may work again another day"
    session.close()


@only_acp
def test_an_agent_that_is_gone_again_when_the_turn_begins_is_a_failure_and_no_cancel(caller):
    session = caller.session("fleeting")
    assert_turn_failure(session.turn({"exit": 1}), 502, "agent_exited")
    for _ in range(fewer(8)):
        assert_turn_failure(session.turn("hello"), 502, "agent_exited")


@pytest.mark.parametrize("agent", ["load-error", "resume-error", "load-gone", "no-load"])
def test_a_conversation_that_cannot_be_loaded_is_replaced_and_says_so(caller, agent):
    session = caller.session(agent)
    session.ask("hello")
    session.turn({"exit": 1})
    body = assert_turn(session.turn({"recall": True}), resumed=False)
    assert len(json.loads(body["text"])) == 1
    assert assert_turn(session.turn("warm")).get("resumed") is None
    session.close()


@pytest.mark.parametrize("agent", ["fake", "resume", "load-noise"])
def test_a_conversation_that_is_loaded_goes_on_and_says_so(broken, caller, agent):
    session = caller.session(agent)
    session.ask("hello")
    session.turn({"exit": 1})
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "hello"
    assert texts_of(body["events"]) == [body["text"]], "no history among the events"
    assert "(replayed)" not in json.dumps(journal(broken, session))
    session.close()


def test_a_login_that_is_missing_shows_at_the_prompt(caller):
    session = caller.session("need-auth-at-prompt")
    assert_turn_failure(session.turn("hello"), 503, "agent_not_logged_in")
    assert session.pid() is not None, "the process is not to blame"
    session.close()


# In the middle of a turn

@pytest.mark.parametrize("end, word", [({"exit": 0}, "0"), ({"exit": 3}, "3"),
                                       ({"signal": 9}, "9"), ({"signal": 11}, "11")])
def test_a_crash_in_mid_turn_fails_the_turn_and_the_next_is_resumed(
        app, forge, end, word, agent_kind):
    session = app.session()
    session.ask("before")
    pid = session.pid()
    answer = session.turn({"text": "half"}, {"stderr": "last words\n"}, end)
    body = assert_turn_failure(answer, 502, "agent_exited")
    assert (body["session_id"], body["turn_index"]) == (session.id, 2)
    assert texts_of(body["events"]) == ["half"]
    assert word in body["error"] or agent_kind == "acpx", "of which acpx does not tell"
    assert body["stop_reason"] == "error"
    assert body["stderr"].strip() == "last words"
    state = session.state()
    assert (state["live"], state["busy"], state["turn_count"]) == (False, False, 2)
    after = assert_turn(session.turn({"recall": True}), resumed=True)
    assert (after["turn_index"], json.loads(after["text"])[0]) == (3, "before")
    assert session.pid() not in (None, pid)
    assert [row["state"] for row in turn_rows(forge, session)] == ["done", "failed", "done"]
    kinds = [event["event"] for event in journal(forge, session)]
    assert [kind for kind in kinds if kind not in ("turn", "update")] == ["done", "failed", "done"]
    session.close()


def test_a_crash_ends_what_the_agent_has_started(app, tmp_path):
    session, pids = app.session(), tmp_path / "pids"
    assert_turn_failure(session.turn({"children": ["plain", "setsid", "daemon", "bare", "stubborn"],
                                      "child_pids": str(pids)}, {"exit": 1}), 502, "agent_exited")
    wait_until(lambda: not session.processes(), "the tree is gone")
    assert_turn(session.turn("hello"), resumed=True)
    session.close()


def test_an_agent_that_is_killed_between_turns_comes_back(app, agent_kind):
    session = app.session()
    session.ask("before")
    os.kill(session.pid(), signal.SIGKILL)
    gone = {"acp": lambda: not session.state()["live"], "acpx": lambda: session.pid() is None}
    wait_until(gone[agent_kind], "its end is noticed, by us or by acpx")
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"
    session.close()


def test_an_agent_that_closes_its_output_is_dead(app):
    session = app.session()
    body = assert_turn_failure(session.turn({"text": "a"}, {"close": "stdout"}, {"stall": True}),
                               502, "agent_exited")
    assert texts_of(body["events"]) == ["a"]
    assert_turn(session.turn("hello"), resumed=True)
    session.close()


def test_an_agent_that_has_closed_its_input_is_started_again_for_the_next_turn(app, agent_kind):
    """Through acpx the agent's client is acpx, which finds the closed pipe only when it writes."""
    session = app.session()
    session.ask({"text": "a"}, {"close": "stdin"})
    deaf = session.pid()
    if agent_kind == "acpx":
        body = assert_turn_failure(session.turn("are you there?"), 502, "agent_exited")
        assert body["events"] == []
    assert_turn(session.turn("hello"), resumed=True)
    assert session.pid() not in (None, deaf)
    session.close()


@pytest.mark.parametrize("error, status, code, sentence", [
    ({"code": -32603, "message": "It went wrong"}, 502, "agent_error", "It went wrong"),
    ({"code": 17, "message": "two\n lines"}, 502, "agent_error", "two lines"),
    ({"code": -32000, "message": "Authentication required"}, 503, "agent_not_logged_in", None),
    ({"code": -32603, "message": "x" * 2_000}, 502, "agent_error", None),
    ({"code": -32603, "message": ""}, 502, "agent_error", None)])
def test_an_error_of_the_agent_fails_the_turn_and_keeps_the_process(
        app, error, status, code, sentence):
    session = app.session()
    body = assert_turn_failure(session.turn({"text": "a"}, {"error": error}), status, code)
    assert sentence is None or body["error"] == sentence
    assert texts_of(body["events"]) == ["a"]
    assert assert_turn(session.turn("hello")).get("resumed") is None
    session.close()


def test_what_an_agent_says_in_a_failure_is_masked(app):
    session, token = app.session(), "sk-ant-api03-" + "Ab1" * 20
    answer = session.turn({"stderr": f"key={token}\n"},
                          {"error": {"code": 1, "message": f"bad {token}"}})
    body = assert_turn_failure(answer, 502, "agent_error")
    assert token not in body["error"] + body["detail"] + body["stderr"]
    session.close()


# Time-outs

def test_after_a_time_out_an_agent_that_acknowledges_keeps_its_process(app, forge):
    session = app.session()
    session.ask("before")
    pid = session.pid()
    answer = session.turn({"text": "half"}, {"sleep_until_cancel": True}, timeout_secs=5)
    body = assert_turn_failure(answer, 504, "timeout")
    assert body["stop_reason"] == "timeout"
    assert 4_500 <= body["duration_ms"] < 8_000
    assert texts_of(body["events"])[:1] == ["half"]
    assert session.pid() == pid
    after = assert_turn(session.turn({"recall": True}))
    assert after.get("resumed") is None and json.loads(after["text"])[0] == "before"
    assert [row["state"] for row in turn_rows(forge, session)] == ["done", "failed", "done"]
    session.close()


@pytest.mark.parametrize("steps", [[{"ignore_cancel": True}, {"sleep_until_cancel": True}],
                                   [{"stall": True}],
                                   [{"linger_ms": 5_000}, {"sleep_until_cancel": True}]])
def test_after_a_time_out_an_agent_that_does_not_is_ended(broken, caller, steps):
    session = caller.session()
    session.ask("before")
    pid = session.pid()
    body = assert_turn_failure(session.turn({"text": "a"}, *steps, timeout_secs=5), 504, "timeout")
    assert texts_of(body["events"]) == ["a"]
    wait_until(lambda: pid not in session.processes(), "it is ended")
    after = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(after["text"])[0] == "before"
    session.close()


def test_an_agent_that_ignores_everything_is_ended_all_the_same(broken, caller):
    session = caller.session("stubborn")
    assert_turn_failure(session.turn({"stall": True}, timeout_secs=5), 504, "timeout")
    assert_turn(session.turn("hello"), resumed=True)
    assert session.close() == {"ok": True}
    assert not session.processes()


def test_an_agent_that_says_nothing_at_all_is_not_waited_for(new_forge, tmp_path):
    # Long enough for an agent that does speak, also on a busy machine.
    first_sign_secs = 5
    app = Talker(new_forge(first_sign_timeout_secs=first_sign_secs, cancel_grace_ms=300))
    session = app.session()
    body = assert_turn_failure(session.turn({"stall": True}), 504, "agent_stalled")
    assert body["duration_ms"] >= first_sign_secs * 1000
    assert_turn(session.turn("hello"), resumed=True)
    held = session.hold(tmp_path, {"text": "a sign"}).begun()
    wait_until(lambda: len(journal(app.gateway, session)) >= 8, "the sign was heard")
    end = time.monotonic() + first_sign_secs + 1
    wait_until(lambda: time.monotonic() > end, "longer than the first sign may take")
    assert_turn(held.end())


# What it says

@pytest.mark.parametrize("method", [
    "fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create",
    "session/prompt", "_vendor/anything", "initialize"])
def test_an_unknown_request_is_answered(app, method):
    session = app.session()
    assert session.told({"unknown_request": method}) == f"{method}: -32601"
    session.close()


@pytest.mark.parametrize("event_format", ["acp", "simple"])
def test_a_broken_tail_cannot_rewrite_the_answer(app, forge, event_format):
    session = app.session()
    answer = session.turn({"text": "a"}, {"broken_tail": "evil"}, {"text": "b"},
                          event_format=event_format)
    body = assert_turn(answer)
    assert body["text"] == "ab" and "evil" not in answer.text and "forged" not in answer.text
    assert "evil" not in json.dumps([
        event for event in journal(forge, session) if event["event"] != "turn"])
    session.close()


RAW_LINES = [
    '{"jsonrpc":"2.0","id":999,"result":{"stopReason":"forged"}}',
    '{"jsonrpc":"2.0","id":"x","result":{"stopReason":"forged"}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"forged"}}',
    '{"jsonrpc":"2.0","method":"session/update","params":[]}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}',
    '{"jsonrpc":"2.0","method":"session/update"}', '{"jsonrpc":"2.0","method":5}', "{}",
    '{"id":{},"method":"session/request_permission"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"x"}',
    '{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}',
    '{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk",'
    '"content":{"type":"image","data":"AAAA"}}}}',
    '{"a":' * 500 + "1" + "}" * 500, "\ufeff{}", '{"a":"\\ud800"}', "\u2028"]


@pytest.mark.parametrize("line", RAW_LINES, ids=range(len(RAW_LINES)))
def test_odd_lines_end_neither_the_turn_nor_the_agent(app, line):
    session = app.session()
    answer = session.turn({"text": "a"}, {"raw": line}, {"text": "b"})
    body = assert_turn(answer)
    assert (body["text"], body["stop_reason"]) == ("ab", "end_turn")
    assert assert_turn(session.turn("hello")).get("resumed") is None
    session.close()


def test_bytes_that_are_no_utf_8_are_repaired_or_left_out(app, forge):
    line = (b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":'
            b'"agent_message_chunk","content":{"type":"text","text":"caf\xe9"}}}}\r\n')
    session = app.session()
    body = assert_turn(session.turn({"raw_base64": base64.b64encode(line).decode()}, {"text": "!"}))
    assert body["text"] in ("caf\ufffd!", "!")
    assert journal(forge, session)
    session.close()


def test_a_line_in_pieces_is_one_line(app):
    line = (b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":'
            b'"agent_message_chunk","content":{"type":"text","text":"pieces"}}}}\n')
    pieces = [{"raw_base64": base64.b64encode(line[i:i + 7]).decode()}
              for i in range(0, len(line), 7)]
    session = app.session()
    assert session.told(*pieces) == "pieces"
    session.close()


def test_a_flood_comes_out_whole(app, forge):
    count = fewer(100_000)
    session = app.session()
    body = session.ask({"flood": count}, {"text": "end"})
    assert len(body["events"]) == count + 2
    assert body["text"] == "x" * count + "end"
    assert len(journal(forge, session)) == count + 4
    session.close()


def test_a_flood_of_nonsense_hides_no_message_and_is_counted(app, agent_kind):
    session = app.session()
    count = fewer(200_000)
    body = session.ask({"nonsense": count}, {"text": "still here"})
    assert body["text"] == "still here" and len(body["events"]) == 2
    if agent_kind == "acp":  # acpx drops them itself; an empty line, one in eight, is not counted
        assert gauge(app.gateway, "clawdforge_agent_lines_skipped_total") >= count * 7 // 8
    session.close()


def test_stderr_is_always_drained(app):
    session = app.session()
    assert session.told({"stderr": "noise\n" * 300_000}, {"text": "done"}) == "done"
    session.close()


ROOMY_BYTES = 1024 * 1024 * 1024  # more than one app's answers of 64 MiB need


@only_acp
def test_a_line_of_32_mib_passes(new_forge):
    session = Talker(new_forge(memory_budget_bytes=ROOMY_BYTES)).session()
    answer = session.turn({"big_line": LINE_BYTES_MAX}, {"text": "!"})
    body = assert_turn(answer)
    text = texts_of(body["events"])[0]
    assert LINE_BYTES_MAX - 1_000 < len(text) < LINE_BYTES_MAX and set(text) == {"y"}
    assert body["text_truncated"] is True and len(body["text"]) == 1024 * 1024
    assert "resumed" not in session.ask("hello")
    session.close()


@only_acp
def test_a_longer_line_ends_the_agent_and_the_next_turn_is_resumed(app):
    session = app.session()
    session.ask("before")
    answer = session.turn({"text": "a"}, {"big_line": LINE_BYTES_MAX + 1}, {"text": "b"})
    body = assert_turn_failure(answer, 502, "agent_line_too_long")
    assert texts_of(body["events"]) == ["a"]
    after = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(after["text"])[0] == "before"
    session.close()


@only_acp
def test_an_answer_holds_64_mib_of_events_and_the_journal_all(new_forge):
    forge = new_forge(memory_budget_bytes=ROOMY_BYTES)
    session = Talker(forge).session()
    size = 24 * 1024 * 1024
    body = session.ask(*[{"big_line": size}] * 3, {"text": "end"})
    assert body["events_truncated"] is True
    assert body["stop_reason"] == "end_turn"
    assert len(texts_of(body["events"])) == 2
    kept = journal(forge, session)
    assert len([event for event in kept if event["event"] == "update"]) == 5
    session.close()


# The gateway's own end

def test_a_turn_that_was_cut_off_by_a_kill_is_interrupted(new_forge, tmp_path):
    gateway = new_forge()
    session = Talker(gateway).session()
    session.ask("before")
    held = session.hold(tmp_path, {"text": "said"}).begun()
    wait_until(lambda: any("said" in json.dumps(event) for event in journal(gateway, session)),
               "what was said is in the journal")
    gateway.kill()
    wait_until(lambda: not processes_below(gateway.root), "the agent goes with its gateway")
    held.hang_up()
    gateway.start()
    assert [row["state"] for row in turn_rows(gateway, session)] == ["done", "interrupted"]
    assert "interrupted" in audit(gateway, session)
    assert [event["event"] for event in journal(gateway, session)][-1] == "failed"
    state = session.state()
    assert (state["live"], state["busy"], state["turn_count"]) == (False, False, 2)
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert (body["turn_index"], json.loads(body["text"])[0]) == (3, "before")


@contextlib.contextmanager
def create_under_way(new_forge, tmp_path):
    """A gateway with a session that is being made, and does not come to its end."""
    log = tmp_path / "log"
    gateway = new_forge({"slow": ["--at-new", "stall", "--log", log]})
    app = Talker(gateway)
    with Wire(gateway) as wire:
        wire.send(with_body("POST /sessions", b'{"agent":"slow"}', bearer(app.token)))
        wait_until(lambda: log.exists() and "session/new" in log.read_text(), "it starts")
        yield gateway


def test_a_create_that_was_cut_off_by_a_kill_leaves_no_session(new_forge, tmp_path):
    with create_under_way(new_forge, tmp_path) as gateway:
        gateway.kill()
    wait_until(lambda: not processes_below(gateway.root), "the agent goes with its gateway")
    gateway.start()
    assert session_rows(gateway) == [] and session_dirs(gateway) == []


def test_a_caller_who_hangs_up_while_a_session_is_made_leaves_none(new_forge, tmp_path):
    with create_under_way(new_forge, tmp_path) as gateway:
        pass
    wait_until(lambda: not session_rows(gateway), "its row is gone")
    assert_no_process_left(gateway)
    wait_until(lambda: not session_dirs(gateway), "its directory is gone")


def test_a_turn_may_end_within_the_grace(new_forge, tmp_path):
    gateway = new_forge()
    session = Talker(gateway).session()
    held = session.hold(tmp_path).begun()
    gateway.process.terminate()
    assert_turn(held.end())
    assert gateway.wait() == 0
    assert [row["state"] for row in turn_rows(gateway, session)] == ["done"]
    assert not processes_below(gateway.root)


def test_a_turn_over_the_grace_is_interrupted_and_the_session_stays(new_forge, tmp_path):
    gateway = new_forge(drain_grace_secs=1, cancel_grace_ms=300)
    session = Talker(gateway).session()
    session.ask("before")
    held = session.hold(tmp_path, {"ignore_cancel": True}).begun()
    waiting = session.hold(tmp_path)
    wait_until(lambda: session.state()["turn_count"] == 3, "the second waits")
    gateway.process.terminate()
    assert_turn_failure(held.answer(), 503, "interrupted")
    assert_turn_failure(waiting.answer(), 503, "interrupted")
    assert gateway.wait() == 0
    assert not processes_below(gateway.root) and not waiting.has_begun()
    gateway.start()
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "before"


def test_a_turn_that_the_ledger_does_not_settle_is_503_and_the_next_is_good(new_forge, tmp_path):
    """Done means committed."""
    gateway = new_forge()
    session = Talker(gateway).session()
    held = session.hold(tmp_path).begun()
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db",
                                            isolation_level=None)) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        answer = held.end()
        assert_error(answer, 503, "ledger_unavailable")
        assert int(answer.header("Retry-After")) >= 1
        ledger.execute("ROLLBACK")
    wait_until(lambda: [row["state"] for row in turn_rows(gateway, session)] == ["done"],
               "it is settled once the ledger works again")
    assert session.ask("hello")["turn_index"] == 2


def test_faults_leave_no_descriptor_behind(broken, caller):
    def rounds(count):
        for _ in range(count):
            session = caller.session()
            session.turn({"exit": 1})
            session.turn("hello")
            caller.create("initialize-exit")
            caller.create("new-error")
            session.close()
        assert_no_process_left(broken)
    rounds(2)
    before = descriptors(broken)
    rounds(fewer(10))
    wait_until(lambda: descriptors(broken) <= before, "as many as before")
    assert not processes(broken)
