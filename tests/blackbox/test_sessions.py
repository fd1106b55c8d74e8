"""Sessions: create, turn, state, list and close; their fields, limits, statuses and bodies."""
import concurrent.futures
import json
import re
import time
import uuid

import pytest

from agents import App, fake_env
from answers import assert_error
from gateway import wait_until
from sessions import (BOTH_KINDS, STATE_KEYS, USAGE_KEYS, Session, Talker, agent_table, app,
                      assert_created, assert_no_process_left, assert_turn, audit, change, forge,
                      journal, new_forge, only_acp, query, session_rows, texts_of, turn_rows)
from wire import Wire, bearer, request, with_body

__all__ = ["app", "forge", "new_forge"]  # fixtures

KINDS = BOTH_KINDS

ABSENT = "00000000-0000-7000-8000-000000000000"
PATHS = [("POST", "/sessions"), ("GET", "/sessions"), ("GET", f"/sessions/{ABSENT}"),
         ("DELETE", f"/sessions/{ABSENT}"), ("POST", f"/sessions/{ABSENT}/turn"),
         ("GET", f"/sessions/{ABSENT}/files"), ("GET", f"/sessions/{ABSENT}/files/x")]


# Create

def test_a_session_is_created_with_exactly_these_fields(app, forge):
    body = assert_created(app.create(meta={"project": "x"}))
    assert (body["agent"], body["model"]) == ("fake", None)
    assert str(uuid.UUID(body["session_id"])) == body["session_id"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{16,}", body["session_id"])
    row, = [row for row in session_rows(forge) if row["session_id"] == body["session_id"]]
    assert (row["app_name"], row["agent"], row["turn_count"]) == ("app", "fake", 0)
    assert row["closed_at"] is None and row["created_at"] == body["created_at"]
    assert json.loads(row["meta"]) == {"project": "x"}
    assert row["agent_session_id"].removeprefix("acpx:").startswith("fake-")
    assert audit(forge, Session(app, body["session_id"])) == ["create"]


def test_an_empty_body_asks_for_claude(new_gateway, tmp_path):
    app = Talker(new_gateway(env=fake_env(claude_bin="/nowhere/claude")))
    for content in (b"", b"{}"):
        answer = app.client().post("/sessions", content=content)
        body = assert_error(answer, 503, "agent_not_found")
        assert "@anthropic-ai/claude-code" in body["detail"], "it says what to install"
    assert app.ids(include_closed=True) == []


def test_null_is_absent_and_unknown_fields_are_ignored(app):
    nulls = dict.fromkeys(["meta", "model", "system", "effort", "mcp_servers", "permission_mode"])
    session = app.session(**nulls, colour="red", session_id="mine")
    assert session.state()["meta"] == {}
    assert session.state()["model"] is None
    nulls = dict.fromkeys(["files", "timeout_secs", "event_format", "stream"])
    assert session.told("hello", **nulls, colour="red") == "echo: hello"


@pytest.mark.parametrize("meta", [
    {}, {"a": [1, None, {"b": "ü🦀"}]}, {"n": 12345678901234567890123}, {"x": 1.10},
    {"long": "x" * 16_000}])
def test_meta_is_kept_and_returned_as_it_is(app, meta):
    session = app.session(meta=meta)
    assert session.state()["meta"] == meta
    assert app.list(limit=1)["sessions"][0]["meta"] == meta


@pytest.mark.parametrize("fields, field", [
    ({"agent": ""}, "agent"), ({"agent": "a b"}, "agent"), ({"agent": "../x"}, "agent"),
    ({"agent": "x" * 65}, "agent"), ({"agent": 1}, "agent"),
    ({"meta": "x"}, "meta"), ({"meta": []}, "meta"), ({"meta": {"x": "y" * 17_000}}, "meta"),
    ({"model": ""}, "model"), ({"model": 5}, "model"), ({"model": "-x"}, "model"),
    ({"model": "a\nb"}, "model"), ({"model": "x" * 201}, "model"),
    ({"system": 5}, "system"), ({"system": "a\0b"}, "system"), ({"effort": "huge"}, "effort"),
    ({"permission_mode": "yolo"}, "permission_mode"), ({"permission_mode": 1}, "permission_mode"),
    ({"mcp_servers": {}}, "mcp_servers"), ({"mcp_servers": [1]}, "mcp_servers"),
    ({"mcp_servers": [{"name": "x"}]}, "mcp_servers"),
    ({"mcp_servers": [{"name": "x", "command": "y" * 70_000}]}, "mcp_servers")])
def test_a_wrong_field_of_create_is_named_and_nothing_starts(app, forge, fields, field):
    before = len(session_rows(forge))
    answer = app.create(**{"agent": "fake", **fields})
    errors = assert_error(answer, 422, "validation_failed")["errors"]
    assert [error["field"] for error in errors] == [field]
    assert len(session_rows(forge)) == before


def test_an_unknown_agent_is_422_and_names_the_ones_there_are(app, forge):
    before = len(session_rows(forge))
    answer = app.create("codecs")
    assert answer.status_code == 422, answer.text
    body = answer.json()
    assert body["code"] == "unknown_agent"
    assert all(name in body["detail"] for name in ("fake", "demo", "claude"))
    assert len(session_rows(forge)) == before


# acpx does not keep an effort beside a model: there it is refused, see test_session_acpx.py.
BOTH = {"acp": {"model": "m2", "effort": "low"}, "acpx": {"model": "m2"}}


def test_model_effort_and_servers_reach_the_agent(forge, agent_kind):
    app = Talker(forge, f"servers-{agent_kind}", mcp="any")
    servers = [{"name": "files", "command": "mcp-files", "args": ["--root", "."]},
               {"name": "web", "type": "http", "url": "http://127.0.0.1:1/mcp"}]
    session = app.session(**BOTH[agent_kind], mcp_servers=servers)
    assert session.state()["model"] == "m2"
    report = session.report("session")
    assert report["options"] == {"the-model": "m2",
                                 "the-effort": BOTH[agent_kind].get("effort", "medium")}
    stdio, http = report["opened_with"]["mcpServers"]
    assert stdio == {"name": "files", "command": "mcp-files", "args": ["--root", "."], "env": []}
    assert http == {"name": "web", "type": "http", "url": "http://127.0.0.1:1/mcp", "headers": []}


def test_the_created_answer_and_the_audit_tell_the_model(app, forge):
    body = assert_created(app.create(model="m2"))
    assert body["model"] == "m2"
    meta, = query(forge, "SELECT meta FROM session_events WHERE session_id = ?", body["session_id"])
    assert json.loads(meta["meta"])["model"] == "m2"


def test_an_unknown_model_is_422_and_leaves_nothing(app, forge):
    before = len(session_rows(forge))
    answer = app.create(model="m3")
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "unknown_model"
    assert "m1" in answer.json()["detail"]
    assert len(session_rows(forge)) == before


def test_a_system_prompt_comes_before_the_first_prompt_once(app):
    """An agent that has no place for it gets it as a text of its own."""
    session = app.session(system="Be brief.")
    script = json.dumps([{"report": "prompt"}])
    assert json.loads(session.told(script)) == ["Be brief.", script]
    assert json.loads(session.told(script)) == [script]


# Turn

def test_a_turn_has_exactly_these_fields(app, forge):
    session = app.session()
    body = session.ask("hello")
    assert (body["session_id"], body["turn_index"]) == (session.id, 1)
    assert (body["text"], body["stop_reason"]) == ("echo: hello", "end_turn")
    assert (body["usage"], body["cost_usd"]) == (None, None)
    assert "resumed" not in body
    chunk, end = body["events"]
    assert chunk["method"] == "session/update"
    assert chunk["params"]["update"]["content"] == {"type": "text", "text": "echo: hello"}
    assert end["result"] == {"stopReason": "end_turn"}


def test_turns_are_counted_from_one(app, forge):
    session = app.session()
    before = session.state()
    assert (before["turn_count"], before["last_turn_at"]) == (0, None)
    for index in (1, 2, 3):
        assert session.ask("hello")["turn_index"] == index
        assert session.state()["turn_count"] == index
    assert abs(session.state()["last_turn_at"] - time.time()) < 60
    assert audit(forge, session) == ["create", "turn", "turn", "turn"]
    assert [(row["turn_index"], row["state"]) for row in turn_rows(forge, session)] == [
        (1, "done"), (2, "done"), (3, "done")]


def test_a_conversation_is_one(app):
    session = app.session()
    session.ask("first")
    session.ask("second")
    assert json.loads(session.told({"recall": True}))[:2] == ["first", "second"]


RAW = ('{"jsonrpc":"2.0","method":"session/update","params":{"update":'
       '{"sessionUpdate":"_of_a_vendor","n":1.10,"big":123456789012345678901234567890,'
       '"deep":{"a":[[[{}]]]},"text":"\\u00e4\\/"}, "more" : [ 1,2 ]},"extra":true}')


def test_events_are_the_agents_own_messages_unchanged_and_in_order(app, agent_kind):
    session = app.session()
    answer = session.turn({"text": "one"}, {"raw": RAW}, {"flat": "two"},
                          {"update": {"sessionUpdate": "plan", "entries": []}},
                          {"permission": {"kind": "read", "title": "Look"}},
                          {"result": {"_meta": {"x": 1}}})
    body = assert_turn(answer)
    assert RAW in answer.text or agent_kind == "acpx", "byte for byte; acpx writes its own JSON"
    one, raw, two, plan, question, said, end = body["events"]
    assert (one["params"]["update"]["content"]["text"], raw) == ("one", json.loads(RAW))
    assert two["params"]["content"]["text"] == "two", "the nesting of older tools"
    assert plan["params"]["update"] == {"sessionUpdate": "plan", "entries": []}
    assert question["method"] == "session/request_permission"
    assert question["params"]["toolCall"]["title"] == "Look"
    assert end["result"] == {"stopReason": "end_turn", "_meta": {"x": 1}}
    assert body["text"] == "onetwo" + said["params"]["update"]["content"]["text"]


def test_lines_that_are_no_objects_are_skipped(app):
    body = app.session().ask({"text": "a"}, {"nonsense": 50}, {"text": "b"})
    assert body["text"] == "ab"
    assert len(body["events"]) == 3


def test_the_simple_format_is_what_older_clients_read(app):
    steps = [{"thought": "hm "}, {"thought": "well"}, {"text": "He"}, {"text": "llo"},
             {"flat": "!"},
             {"tool": {"name": "Read", "title": "Read x", "rawInput": {"path": "x"},
                       "result": [1]}},
             {"update": {"sessionUpdate": "plan", "entries": []}}, {"cost": 0.5}, {"text": " Bye"}]
    session = app.session()
    body = session.ask(*steps, event_format="simple")
    assert body["events"] == [
        {"type": "thinking", "content": "hm well"},
        {"type": "text", "content": "Hello!"},
        {"type": "tool_call", "name": "Read", "args": {"path": "x"}, "result": [1]},
        {"type": "text", "content": " Bye"}]
    assert (body["text"], body["stop_reason"]) == ("Hello! Bye", "end_turn")
    assert len(session.ask(*steps, event_format="acp")["events"]) == 11


def test_the_default_format_is_the_tokens_else_the_configured_one(new_forge):
    gateway = new_forge(event_format="simple")
    plain, raw = Talker(gateway), Talker(gateway, "raw", event_format="acp")
    assert plain.session().ask("x")["events"] == [{"type": "text", "content": "echo: x"}]
    session = raw.session()
    assert "jsonrpc" in session.ask("x")["events"][0]
    assert session.ask("x", event_format="simple")["events"][0]["type"] == "text"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "max_turn_requests", "cancelled",
                                    "something_new"])
def test_every_stop_reason_is_a_good_end(app, reason):
    assert app.session().ask({"stop": reason})["stop_reason"] == reason


def test_usage_and_cost_are_told_per_turn_and_summed_in_the_session(app, forge):
    session = app.session()
    usage = {"inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 3, "cachedWriteTokens": 2,
             "totalTokens": 19}
    body = session.ask({"usage": usage}, {"cost": 0.5})
    assert body["usage"] == {"input_tokens": 10, "output_tokens": 4, "cache_read_tokens": 3,
                             "cache_write_tokens": 2}
    assert body["cost_usd"] == 0.5
    assert session.ask({"usage": usage}, {"cost": 0.75})["cost_usd"] == 0.25, "it tells the sum"
    state = session.state()
    assert set(state["usage"]) == USAGE_KEYS
    assert (state["usage"]["input_tokens"], state["usage"]["output_tokens"]) == (20, 8)
    assert state["cost_usd"] == 0.75
    first, second = turn_rows(forge, session)
    assert (first["input_tokens"], first["cost_usd"], second["cost_usd"]) == (10, 0.5, 0.25)


def test_files_are_listed_in_front_of_the_prompt(app, forge):
    session = app.session()
    tokens = [app.upload("notes.txt", b"some notes"), app.upload("x.tar.gz", b"\x00\x01")]
    prompt = json.dumps([{"report": "prompt"}])
    told, = json.loads(session.told(prompt, files=tokens))
    assert told.endswith(prompt)
    first, second = told.removesuffix(prompt).split()
    assert first.startswith("/") and first.endswith(".txt") and second.endswith(".gz")
    assert first.startswith(str(session.work()))
    with open(first, "rb") as one, open(second, "rb") as two:
        assert (one.read(), two.read()) == (b"some notes", b"\x00\x01")
    told, = json.loads(session.told(prompt, files=[]))
    assert told == prompt, "with no files the prompt is as it was"
    told, = json.loads(session.told(prompt, files=tokens[:1]))
    assert told.split()[0] != first, "the files of another turn are others"


def test_an_unknown_or_foreign_file_is_404_and_takes_no_index(app, forge):
    session, own = app.session(), app.upload("a.txt", b"x")
    foreign = App(forge, "file-stranger").upload("b.txt", b"y")
    for files in (["ff_" + "A" * 43], [own, foreign], ["../x"]):
        assert_error(session.turn("hello", files=files), 404, "file_not_found")
    assert session.ask("hello")["turn_index"] == 1


@pytest.mark.parametrize("fields, field", [
    ({}, "prompt"), ({"prompt": None}, "prompt"), ({"prompt": 5}, "prompt"),
    ({"prompt": " \n"}, "prompt"), ({"files": "ff_x"}, "files"), ({"files": [1]}, "files"),
    ({"files": ["ff_x"] * 33}, "files"), ({"timeout_secs": 4}, "timeout_secs"),
    ({"timeout_secs": 3601}, "timeout_secs"), ({"timeout_secs": "60"}, "timeout_secs"),
    ({"timeout_secs": 5.5}, "timeout_secs"), ({"event_format": "xml"}, "event_format"),
    ({"event_format": 1}, "event_format"), ({"stream": "yes"}, "stream")])
def test_a_wrong_field_of_a_turn_is_named_and_takes_no_index(app, fields, field):
    session = app.session()
    body = fields if "prompt" in fields or not fields else {"prompt": "x", **fields}
    answer = app.client().post(session.path + "/turn", json=body)
    errors = assert_error(answer, 422, "validation_failed")["errors"]
    assert [error["field"] for error in errors] == [field]
    assert session.ask("hello")["turn_index"] == 1


def test_the_body_is_checked_before_the_session_is_looked_for(app):
    client = app.client()
    path = f"/sessions/{ABSENT}/turn"
    assert_error(client.post(path, content=b"{"), 400, "bad_json")
    assert_error(client.post(path, json={}), 422, "validation_failed")
    assert_error(client.post(path, json={"prompt": "x"}), 404, "session_not_found")


def test_a_large_prompt_and_a_long_answer_pass_whole(app):
    prompt = "The quick brown 🦊 jumps. " * 30_000
    body = app.session().ask(prompt)
    assert texts_of(body["events"]) == ["echo: " + prompt]
    assert body["text"] == "echo: " + prompt


def test_a_text_over_a_mebibyte_is_cut_and_says_so(app):
    body = app.session().ask({"text": "ä" * 400_000}, {"text": "b" * 400_000}, {"text": "c"})
    assert body["text_truncated"] is True
    assert len(body["text"].encode()) <= 1024 * 1024
    assert body["text"].startswith("ä" * 400_000) and set(body["text"]) == {"ä", "b"}
    assert len(texts_of(body["events"])) == 3, "the events are whole"


def test_odd_text_comes_out_as_it_went_in(app):
    session = app.session()
    for text in ("a\r\nb\0c\u2028\u0007", "🦀\"\\", "\ufffd", "/etc/passwd", "--help",
                 "@x", "$(id)"):
        assert session.told(text) == "echo: " + text


@pytest.mark.parametrize("mode, kind, outcome", [
    (None, "read", "allow-once"), (None, "search", "allow-once"), (None, "execute", "reject-once"),
    (None, "edit", "reject-once"), ("approve_reads", None, "reject-once"),
    ("approve_all", "execute", "allow-once"), ("approve_all", None, "allow-once"),
    ("deny_all", "read", "reject-once")])
def test_a_permission_is_answered_by_the_sessions_mode(app, mode, kind, outcome):
    session = app.session(permission_mode=mode)
    asked = {"title": "Do it", **({"kind": kind} if kind else {})}
    assert session.told({"permission": asked}) == f"permission: {outcome}"


def test_a_mode_that_finds_no_option_to_choose_cancels_the_question(app):
    only = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    told = app.session(permission_mode="deny_all").told(
        {"permission": {"kind": "execute", "options": only}})
    assert told == "permission: cancelled"
    told = app.session(permission_mode="approve_all").told(
        {"permission": {"kind": "execute", "options": only}})
    assert told == "permission: yes"


def test_the_gateways_mode_is_for_sessions_that_name_none(new_forge):
    app = Talker(new_forge(permission_mode="deny_all"))
    read = {"permission": {"kind": "read"}}
    assert app.session().told(read) == "permission: reject-once"
    assert app.session(permission_mode="approve_reads").told(read) == "permission: allow-once"


def test_the_agents_table_sets_environment_and_mode(new_forge):
    more = agent_table("tuned", [], env='["PASSED_ON", "NOT_THERE"]',
                       set_env='{ OF_THE_TABLE = "yes" }', permission_mode='"approve_all"')
    gateway = new_forge(more=more)
    gateway.stop()
    gateway.env.update({"PASSED_ON": "on", "OWNER_SECRET": "x" * 20, "LANG": "C.UTF-8"})
    gateway.start()
    session = Talker(gateway).session("tuned")
    env = session.report("process")["env"]
    assert (env["PASSED_ON"], env["OF_THE_TABLE"], env["LANG"]) == ("on", "yes", "C.UTF-8")
    assert not {"OWNER_SECRET", "NOT_THERE"} & set(env)
    assert not [name for name in env if name.startswith("CLAWDFORGE_")]
    assert session.told({"permission": {"kind": "execute"}}) == "permission: allow-once"


def test_an_agent_works_in_a_directory_of_its_own(app, forge):
    first, second = app.session(), app.session()
    reports = [session.report("process") for session in (first, second)]
    for session, report in zip((first, second), reports):
        assert report["cwd"] == str(session.work())
        assert report["env"]["TMPDIR"].startswith(f"{forge.data_dir}/sessions/{session.id}/")
        assert report["files"] == [] and report["descriptors"] == []
        assert session.report("session")["opened_with"]["cwd"] == str(session.work())


# The journal

def test_everything_said_is_in_the_journal_in_order(app, forge):
    session = app.session()
    session.ask({"text": "a"}, {"thought": "b"}, {"flood": 500}, {"late": "too late"})
    wait_until(lambda: len(journal(forge, session)) == 506, "the late one is there")
    session.ask("second")
    events = journal(forge, session)
    assert events[0]["id"] == 1
    kinds = [(event["turn_index"], event["event"]) for event in events]
    assert kinds == [(1, "turn")] + [(1, "update")] * 503 + [
        (1, "done"), (1, "update"), (2, "turn"), (2, "update"), (2, "update"), (2, "done")]
    done = events[504]["data"]
    assert set(done) >= {"ok", "session_id", "turn_index", "text", "stop_reason", "duration_ms",
                         "usage", "cost_usd"} and "events" not in done
    assert texts_of([events[505]["data"]]) == ["too late"]
    assert session.row()["last_event_id"] == len(events)


def test_what_is_said_late_or_between_turns_is_no_part_of_an_answer(new_forge):
    gateway = new_forge({"chatty": ["--chatty"]})
    session = Talker(gateway).session("chatty")

    def late():
        return [event["turn_index"] for event in journal(gateway, session)
                if "after a turn" in json.dumps(event) or texts_of([event["data"]]) == ["b"]]
    assert session.ask({"text": "a"}, {"late": "b"})["text"] == "a"
    wait_until(lambda: late() == [1, 1], "both belong to the turn that they follow")
    assert session.ask("c")["text"] == "echo: c"
    wait_until(lambda: late() == [1, 1, 2], "this one to the second")


# State, list, close

def test_the_state_is_flat_and_whole(app):
    session = app.session(model="m1", meta={"a": 1})
    state = session.state()
    assert set(state) == STATE_KEYS
    assert (state["session_id"], state["agent"], state["model"]) == (session.id, "fake", "m1")
    assert (state["app_name"], state["meta"], state["turn_count"]) == ("app", {"a": 1}, 0)
    assert (state["closed_at"], state["close_reason"], state["last_turn_at"]) == (None,) * 3
    assert (state["live"], state["busy"]) == (True, False)
    assert (set(state["usage"]), state["cost_usd"]) == (USAGE_KEYS, None)


def test_a_session_is_busy_while_a_turn_runs(app, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    state = session.state()
    assert (state["busy"], state["live"]) == (True, True)
    wait_until(lambda: session.state()["turn_count"] == 1, "it is counted")
    assert session.state()["last_turn_at"] is not None, "set at the turn's start"
    assert_turn(held.end())
    assert session.state()["busy"] is False


def test_the_list_has_only_open_ones_of_the_caller_newest_first(forge):
    mine, other = Talker(forge, "lister"), Talker(forge, "other-lister")
    other.session()
    sessions = [mine.session() for _ in range(5)]
    ids = [session.id for session in reversed(sessions)]
    assert mine.ids() == ids
    sessions[2].close()
    assert mine.ids() == [one for one in ids if one != sessions[2].id]
    for yes in ("true", "1"):
        assert mine.ids(include_closed=yes) == ids
    for no in ("false", "0"):
        assert len(mine.ids(include_closed=no)) == 4
    listed = {state["session_id"]: state for state in mine.list(include_closed=1)["sessions"]}
    assert listed[sessions[0].id] == sessions[0].state()
    assert listed[sessions[2].id]["closed_at"] is not None


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_the_pages_hold_every_session_once(forge, limit):
    app = Talker(forge, f"pager-{limit}")
    ids = [app.session().id for _ in range(4)][::-1]
    found, cursor, pages = [], {}, 0
    while pages < 10:
        page = app.list(limit=limit, **cursor)
        found += [state["session_id"] for state in page["sessions"]]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert found == ids
    assert pages == -(-4 // limit), "no empty page at the end"


@pytest.mark.parametrize("query_text, field", [
    ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"),
    ("cursor=nonsense", "cursor"), ("include_closed=yes", "include_closed"),
    ("include_closed=", "include_closed")])
def test_a_bad_parameter_of_the_list_is_422(app, query_text, field):
    errors = assert_error(app.client().get("/sessions?" + query_text), 422,
                          "validation_failed")["errors"]
    assert [error["field"] for error in errors] == [field]


def test_close_is_idempotent_and_ends_the_agent(app, forge):
    session = app.session()
    session.ask("hello")
    pid = session.pid()
    assert pid is not None
    assert session.close() == {"ok": True}
    assert not session.processes(), "when it is answered the tree is gone"
    for _ in range(2):
        assert session.close() == {"ok": True, "already_closed": True}
    state = session.state()
    assert abs(state["closed_at"] - time.time()) < 60
    assert state["close_reason"]
    assert (state["live"], state["busy"]) == (False, False)
    assert_error(session.turn("hello"), 410, "session_closed")
    assert session.state()["turn_count"] == 1
    assert audit(forge, session) == ["create", "turn", "close"]


def test_two_closes_at_once_are_both_good(app):
    session = app.session()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        bodies = list(pool.map(lambda _: session.close(), range(4)))
    assert sorted(len(body) for body in bodies) == [1, 2, 2, 2], bodies
    assert audit(app.gateway, session).count("close") == 1


def test_close_ends_what_the_agent_has_started(app, tmp_path):
    session, pids = app.session(), tmp_path / "pids"
    session.ask({"children": ["plain", "setsid", "daemon", "bare", "stubborn"],
                 "child_pids": str(pids)})
    assert len(session.processes()) >= 6
    session.close()
    assert not session.processes()


def test_a_deleted_body_and_query_are_not_looked_at(app):
    session = app.session()
    answer = app.client().request("DELETE", session.path + "?force=1", content=b"not json")
    assert answer.json() == {"ok": True}


# Who may, and how

@pytest.mark.parametrize("method, path", PATHS)
def test_only_an_app_may(forge, method, path):
    body = {"content": b"{}"} if method == "POST" else {}
    assert_error(forge.client().request(method, path, **body), 401, "unauthorized")
    assert_error(forge.client("cf_" + "x" * 43).request(method, path, **body), 401, "unauthorized")
    assert_error(forge.admin.request(method, path, **body), 403, "wrong_token_kind")


@pytest.mark.parametrize("method, path, allowed", [
    ("PUT", "/sessions", {"GET", "HEAD", "POST"}), ("DELETE", "/sessions", {"GET", "HEAD", "POST"}),
    ("POST", f"/sessions/{ABSENT}", {"GET", "HEAD", "DELETE"}),
    ("GET", f"/sessions/{ABSENT}/turn", {"POST"}),
    ("POST", f"/sessions/{ABSENT}/files", {"GET", "HEAD"})])
def test_a_wrong_method_is_405(app, method, path, allowed):
    answer = app.client().request(method, path)
    assert_error(answer, 405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", ["/sessions/", f"/sessions/{ABSENT}/", "/sessions//turn",
                                  f"/sessions/{ABSENT}/turn/", f"/sessions/{ABSENT}/other"])
def test_no_other_path_is_there(app, path):
    for method in ("GET", "POST"):
        answer = app.client().request(method, path, content=b"{}")
        assert answer.status_code == 404, answer.text


@pytest.mark.parametrize("name", ["x", "a.b", "%2e%2e", "x" * 200, "a%00b", "a%2Fb", "ü"])
def test_an_id_that_none_can_have_is_404(app, name):
    client = app.client()
    answers = [client.get(f"/sessions/{name}"), client.delete(f"/sessions/{name}"),
               client.post(f"/sessions/{name}/turn", json={"prompt": "x"})]
    assert {answer.status_code for answer in answers} <= {400, 404}


def test_dots_that_a_client_would_resolve_are_404(app):
    with Wire(app.gateway) as wire:
        for line in ("GET /sessions/..", "DELETE /sessions/..", "GET /sessions/../turns"):
            assert wire.ask(request(line, bearer(app.token))).status in (400, 404)


# The whole of it

def test_a_session_survives_a_restart_with_its_settings(new_forge, agent_kind):
    gateway = new_forge()
    app = Talker(gateway, mcp="any")
    session = app.session(**BOTH[agent_kind], meta={"a": 1}, permission_mode="approve_all",
                          mcp_servers=[{"name": "n", "command": "c"}])
    session.ask("before")
    gateway.restart()
    state = session.state()
    assert (state["live"], state["busy"], state["turn_count"]) == (False, False, 1)
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert (body["turn_index"], json.loads(body["text"])[0]) == (2, "before")
    assert "(replayed)" not in json.dumps(body["events"]), "history is not part of a turn"
    report = session.report("session")
    assert report["options"] == {"the-model": "m2",
                                 "the-effort": BOTH[agent_kind].get("effort", "medium")}
    assert report["opened_with"]["mcpServers"][0]["name"] == "n"
    assert session.told({"permission": {"kind": "execute"}}) == "permission: allow-once"
    assert assert_turn(session.turn("warm again")).get("resumed") is None
    assert "(replayed)" not in json.dumps(journal(gateway, session))
    session.close()
    assert_no_process_left(gateway)


@only_acp
def test_a_system_prompt_outlives_a_restart_for_an_agent_that_forgets(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session("no-load", system="Be brief.")
    session.ask("before")
    gateway.restart()
    assert session.report("prompt")[0] == "Be brief."


def test_a_sleeping_session_is_closed_after_a_restart_without_being_started(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    gateway.restart()
    assert session.close() == {"ok": True}
    assert session.close() == {"ok": True, "already_closed": True}


def test_the_demo_talks_without_any_login(new_gateway):
    app = Talker(new_gateway())
    session = app.session("demo", system="Be brief.", model="demo-large", effort="max")
    assert session.told("Hello there") == "You said: Hello there"
    assert session.told("What do you remember?") == "I remember:\n1. Hello there"
    assert "demo-large" in session.told("model") and "max" in session.told("model")
    assert "Be brief." in session.told("system")
    kinds = [event["params"]["update"]["sessionUpdate"]
             for event in session.ask("think plan tool")["events"] if "params" in event]
    assert kinds == ["agent_thought_chunk", "plan", "tool_call", "tool_call_update",
                     "agent_message_chunk", "usage_update"]
    assert session.told("permission") == "I was not allowed to execute."
    assert session.told("permission read") == "I was allowed to read."
    assert len(session.ask("long 2000")["events"]) == 2002
    body = session.ask("slow 2")
    assert body["text"].count("Slowly") == 2 and body["duration_ms"] >= 200
    assert body["cost_usd"] == 0 and body["usage"]["input_tokens"] == 6


def test_the_demo_remembers_over_a_crash_and_a_restart(new_gateway):
    app = Talker(new_gateway())
    session = app.session("demo", system="Be brief.", model="demo-large")
    session.ask("remember the colour blue")
    assert session.turn("crash").status_code == 502
    body = assert_turn(session.turn("what do you remember?"), resumed=True)
    assert "the colour blue" in body["text"]
    app.gateway.restart()
    assert "the colour blue" in assert_turn(session.turn("what do you remember?"), True)["text"]
    assert "demo-large" in session.told("model")
    assert "Be brief." in session.told("system")


def test_the_admin_lists_sessions_and_their_events(new_forge):
    gateway = new_forge()
    one, two = Talker(gateway, "one"), Talker(gateway, "two")
    session, _ = one.session(meta={"a": 1}), two.session()
    session.ask("x")
    session.close()
    listed = gateway.admin.get("/admin/sessions").json()
    assert (listed["count"], listed["next_cursor"]) == (2, None)
    state, = gateway.admin.get("/admin/sessions", params={"app": "one"}).json()["sessions"]
    assert state["session_id"] == session.id and state["app_name"] == "one"
    events = gateway.admin.get("/admin/events", params={"app": "one"}).json()["events"]
    assert [event["event"] for event in events] == ["close", "turn", "create", "token_mint"], \
        "newest first"
    assert [event["session_id"] for event in events] == [session.id] * 3 + [None]
    assert all(isinstance(event["meta"], dict) for event in events)


def test_odd_rows_of_another_program_break_no_answer(new_forge):
    gateway = new_forge()
    app = Talker(gateway)
    session = app.session()
    for column, value in (("meta", "no json"), ("meta", "[]"), ("model", b"\xff"),
                          ("cost_usd", "dear"), ("input_tokens", "many"), ("agent", "\x01\"")):
        change(gateway, f"UPDATE sessions SET {column} = ? WHERE session_id = ?", value, session.id)
        assert app.get(session.path).status_code in (200, 503), column
        assert app.get("/sessions").status_code in (200, 503), column


def test_many_sessions_talk_at_once(forge):
    app = Talker(forge, "crowd")

    def talk(number):
        session = app.session()
        for turn in range(3):
            assert session.told(f"{number}-{turn}") == f"echo: {number}-{turn}"
        prompts = json.loads(session.told({"recall": True}))
        session.close()
        return prompts[:3]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(talk, range(24)))
    assert heard == [[f"{number}-{turn}" for turn in range(3)] for number in range(24)]


def test_health_counts_open_sessions(new_forge):
    gateway = new_forge()
    app = Talker(gateway)
    sessions = [app.session() for _ in range(3)]
    client = gateway.client()
    for left in (3, 2):
        wait_until(lambda left=left: client.get("/healthz").json()["open_sessions"] == left,
                   f"{left} are open")
        sessions.pop().close()


def test_http_1_0_and_a_pipelined_request_are_served(app):
    session = app.session()
    body = json.dumps({"prompt": "hello"}).encode()
    turn = with_body(f"POST {session.path}/turn", body, bearer(app.token))
    with Wire(app.gateway) as wire:
        wire.send(turn + turn + request("GET " + session.path, bearer(app.token)))
        answers = [wire.read() for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert [answer.json()["turn_index"] for answer in answers[:2]] == [1, 2]
    assert answers[2].json()["turn_count"] == 2
    with Wire(app.gateway) as wire:
        wire.send(turn.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1))
        assert wire.read().json()["turn_index"] == 3
        assert wire.read() is None


def test_a_system_prompt_outlives_a_restart_until_it_is_heard(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session(system="Be brief.")
    gateway.restart()
    assert session.report("prompt")[0] == "Be brief."
    gateway.restart()
    assert len(session.report("prompt")) == 1, "the agent that loads its conversation has it"
