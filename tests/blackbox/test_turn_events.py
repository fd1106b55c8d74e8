"""A turn begins with what it was asked: the event `turn`, the list of turns, and a session's state."""
import json
import time

from agents import fake_env
from gateway import Gateway, wait_until
from sessions import (USAGE_KEYS, Talker, app, assert_same_refusal, change, forge, new_forge,
                      query)
from streams import CLOSING, page, stream_turn, tail

__all__ = ["app", "forge", "new_forge"]  # fixtures

TURN_KEYS = {"turn_index", "state", "code", "error", "stop_reason", "started_at", "ended_at",
             "duration_ms", "usage", "cost_usd", "first_event_id", "last_event_id", "prompt", "files"}


def turns(session, **parameters):
    answer = session.app.get(session.path + "/turns", **parameters)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"turns", "count", "next_after"} and body["count"] == len(body["turns"])
    assert all(set(turn) - {"prompt_truncated"} == TURN_KEYS for turn in body["turns"]), body
    return body


# The event

def test_a_stream_begins_with_the_prompt_and_the_first_id(app):
    session = app.session()
    before = int(time.time())
    with stream_turn(session, "Hello, how are you?\nFine?") as stream:
        rest = stream.rest()
    assert stream.opening.id == 1
    opening = stream.opening.json()
    assert before <= opening.pop("at") <= time.time() + 1
    assert opening == {"turn_index": 1, "prompt": "Hello, how are you?\nFine?", "files": []}
    assert [event.id for event in rest] == list(range(2, len(rest) + 2))
    with stream_turn(session, "again") as stream:
        stream.rest()
    assert stream.opening.id == rest[-1].id + 1
    assert stream.opening.json()["turn_index"] == 2


def test_a_page_that_reloads_has_the_questions_too(app):
    session = app.session()
    for prompt in ("first", "second"):
        session.ask(prompt)
    told = [(event["event"], event["data"].get("prompt")) for event in page(session)["events"]
            if event["event"] in ("turn", "done")]
    assert told == [("turn", "first"), ("done", None), ("turn", "second"), ("done", None)]
    session.close()
    with tail(session, after=0) as stream:
        assert [event.json()["prompt"] for event in stream.rest() if event.name == "turn"] == [
            "first", "second"]


def test_a_plain_answer_has_no_turn_event(app):
    session = app.session()
    for form in ("acp", "simple"):
        assert "first question" not in json.dumps(
            session.ask({"text": "an answer"}, event_format=form)["events"])
    assert not [event for event in session.ask("first question")["events"]
                if "turn_index" in event or event.get("event") == "turn"]


def test_files_are_named_as_the_agent_finds_them(app):
    session = app.session()
    tokens = [app.upload(name, b"x") for name in ("a.txt", "a.txt", "..", ".hidden")]
    with stream_turn(session, {"report": "process"}, files=tokens) as stream:
        done = stream.rest()[-1].json()
    names = stream.opening.json()["files"]
    assert names == ["a.txt", "a-2.txt", "attachment-1-3", "_hidden"]
    assert set(names) <= set(json.loads(done["text"])["files"])
    assert stream.opening.json()["prompt"] == '[{"report": "process"}]', "without the paths"


def test_a_waiting_turn_says_at_once_what_it_was_asked(app, tmp_path):
    """So a page shows it, and its caller has a number to come back with."""
    session = app.session()
    held = session.hold(tmp_path, {"text": "of the first"}).begun()
    with stream_turn(session, "the second") as stream:
        assert stream.opening.json()["prompt"] == "the second"
        assert session.state()["turns_waiting"] == 1
        number = stream.opening.id
    held.end()
    with tail(session, last_id=number) as stream:
        assert stream.until("done")[-1].json()["turn_index"] == 1
        assert stream.until("done")[-1].json()["turn_index"] == 2


def test_a_large_prompt_is_cut_where_it_is_kept(app):
    session = app.session()
    prompt = "é" * 200_000
    assert session.told(prompt) == "echo: " + prompt
    opening = page(session, limit=1)["events"][0]["data"]
    assert opening["prompt"] == "é" * (128 * 1024) and opening["prompt_truncated"] is True
    [turn] = turns(session)["turns"]
    assert turn["prompt"] == opening["prompt"] and turn["prompt_truncated"] is True


def test_no_prompt_is_kept_where_the_owner_wants_none(new_forge):
    forge = new_forge(keep_prompts="none")
    session = Talker(forge).session()
    with stream_turn(session, "the secret question", stream=True) as stream:
        stream.rest()
    assert set(stream.opening.json()) == {"turn_index", "at"}
    [turn] = turns(session)["turns"]
    assert (turn["prompt"], turn["files"]) == (None, [])
    assert session.state()["title"] is None
    rows = query(forge, "SELECT events FROM journal")
    opening = [line for row in rows for line in row["events"].splitlines() if '"event":"turn"' in line]
    assert opening and "secret" not in "".join(opening)


def test_events_say_when_they_happened(app, tmp_path):
    session = app.session()
    gate = tmp_path / "gate"
    before = int(time.time())
    with stream_turn(session, {"text": "one"}, {"wait_for": str(gate)}, {"text": "two"}) as stream:
        stream.expect("update")
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 0.3, "some time passes")
        gate.touch()
        stream.rest()
    events = page(session)["events"]
    assert all(before <= event["at"] <= time.time() + 1 for event in events)
    offsets = [event["offset_ms"] for event in events]
    assert offsets == sorted(offsets) and offsets[0] == 0
    assert offsets[-1] - offsets[1] >= 250
    assert turns(session)["turns"][0]["duration_ms"] >= 250


def test_events_of_an_older_gateway_have_the_time_of_their_block(new_forge):
    """Their lines say no time, and are told all the same."""
    forge = new_forge()
    session = Talker(forge).session()
    session.ask("x")
    forge.stop()
    for row in query(forge, "SELECT first_event_id, events FROM journal"):
        lines = [json.loads(line) for line in row["events"].splitlines()]
        old = "".join(f'{{"id":{line["id"]},"turn_index":1,"event":"{line["event"]}","data":'
                      f'{json.dumps(line["data"])}}}\n' for line in lines)
        change(forge, "UPDATE journal SET events = ?, bytes = ?, at = 1700000000 "
                      "WHERE first_event_id = ?", old, len(old), row["first_event_id"])
    forge.start()
    answer = session.app.get(session.path + "/events").json()
    assert [(event["at"], event["offset_ms"]) for event in answer["events"]] == [
        (1700000000, None)] * len(answer["events"])


# The list

def test_turns_are_listed_with_how_they_ended_and_what_they_were_asked(app):
    session = app.session()
    session.ask({"text": "hi"}, {"usage": {"inputTokens": 3, "outputTokens": 4}}, {"cost": 0.5})
    assert session.turn({"exit": 3}).status_code == 502
    body = turns(session)
    assert body["next_after"] is None
    done, failed = body["turns"]
    events = page(session)["events"]
    for turn in (done, failed):
        of_it = [event for event in events if event["turn_index"] == turn["turn_index"]]
        assert turn["first_event_id"] == of_it[0]["id"] and of_it[0]["event"] == "turn"
        assert turn["last_event_id"] == of_it[-1]["id"] and of_it[-1]["event"] in CLOSING
        assert turn["prompt"] == of_it[0]["data"]["prompt"]
        assert turn["duration_ms"] == of_it[-1]["data"]["duration_ms"]
        assert turn["started_at"] <= turn["ended_at"]
    assert (done["state"], done["code"], done["stop_reason"]) == ("done", None, "end_turn")
    assert set(done["usage"]) == USAGE_KEYS and done["usage"]["output_tokens"] == 4
    assert done["cost_usd"] == 0.5
    assert (failed["state"], failed["code"], failed["usage"]) == ("failed", "agent_exited", None)
    assert failed["error"]


def test_a_turn_that_runs_is_in_the_list(app, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    [turn] = turns(session)["turns"]
    assert (turn["state"], turn["ended_at"], turn["last_event_id"]) == ("accepted", None, None)
    assert turn["prompt"]
    held.end()


def test_the_list_has_pages(app):
    session = app.session()
    for number in range(5):
        session.ask(f"number {number}")
    found, after = [], 0
    while after is not None:
        body = turns(session, after=after, limit=2)
        assert len(body["turns"]) <= 2
        found += [turn["prompt"] for turn in body["turns"]]
        after = body["next_after"]
    assert found == [f"number {number}" for number in range(5)]
    answer = app.get(session.path + "/turns", limit=0)
    assert answer.status_code == 422, answer.text


def test_turns_of_others_are_absent(app, forge):
    session = app.session()
    session.ask("x")
    stranger = Talker(forge, "stranger-of-turns")
    paths = (session.path, "/sessions/00000000-0000-7000-8000-000000000000", "/sessions/no.id")
    assert_same_refusal([stranger.get(path + "/turns") for path in paths], 404,
                        "session_not_found")


# The state

def test_the_state_has_what_a_list_shows(app, tmp_path):
    session = app.session(effort="high", permission_mode="ask")
    state = session.state()
    assert (state["title"], state["effort"], state["permission_mode"]) == (None, "high", "ask")
    assert (state["last_event_id"], state["turns_waiting"], state["questions_open"],
            state["turn_started_at"], state["context"], state["delete_at"]) == (0, 0, 0, None, None, None)
    assert state["agent_version"] == "1.2.3"
    session.ask("  Fix the\ttests, please\nand say how")
    state = session.state()
    assert state["title"] == "Fix the tests, please"
    assert state["last_event_id"] == page(session)["events"][-1]["id"]
    session.ask({"update": {"sessionUpdate": "usage_update", "used": 116, "size": 200000}})
    assert session.state()["context"] == {"used": 116, "size": 200000}
    assert session.state()["title"] == "Fix the tests, please", "of the first prompt"
    held = session.hold(tmp_path, {"permission": {"kind": "edit", "title": "Write"}})
    wait_until(lambda: session.state()["questions_open"] == 1, "it asks")
    assert session.state()["turn_started_at"] is not None
    [question] = app.get(session.path + "/permissions").json()["permissions"]
    app.client().post(f"{session.path}/permissions/{question['id']}", json={"decision": "deny"})
    held.begun().end()
    session.close()
    state = session.state()
    assert state["delete_at"] == state["closed_at"] + 86400
    assert (state["agent_version"], state["context"]) == (None, None)


def test_an_app_may_name_its_session(app):
    session = app.session(meta={"title": "My ticket"})
    session.ask("something else")
    assert session.state()["title"] == "My ticket"
    [state] = [one for one in app.list()["sessions"] if one["session_id"] == session.id]
    assert state["title"] == "My ticket"
    other = app.session(meta={"title": 7})
    other.ask("asked")
    assert other.state()["title"] == "asked"


def test_titles_and_turns_are_there_after_a_restart(new_forge):
    forge = new_forge()
    session = Talker(forge).session()
    session.ask("Remember this")
    before = turns(session)
    forge.stop()
    forge.start()
    assert turns(session) == before
    assert session.state()["title"] == "Remember this"


# Runs

def test_prompts_of_runs_are_kept_only_if_the_owner_wants_that(tmp_path):
    for keep, expected in (("sessions", None), ("all", "What?" + "x" * (64 * 1024 - 5))):
        gateway = Gateway(tmp_path / keep, env=fake_env(keep_prompts=keep)).start()
        try:
            app = Talker(gateway)
            answer = app.client().post("/run", json={"prompt": "What?" + "x" * 70_000})
            assert answer.status_code == 200, answer.text
            run = app.get("/runs/" + answer.headers["X-Clawdforge-Run-Id"]).json()
            assert run["prompt"] == expected
            assert run.get("prompt_truncated") == (None if expected is None else True)
            [listed] = gateway.admin.get("/admin/runs").json()["runs"]
            assert listed["prompt"] == (expected and expected[:1024])
            kept = query(gateway, "SELECT prompt FROM runs")[0]["prompt"]
            assert kept == expected
            app.client().post("/run", json={"prompt": "short"})
            assert app.get("/runs").json()["runs"][0]["prompt"] == (expected and "short")
            assert "prompt_truncated" not in app.get("/runs").json()["runs"][0]
        finally:
            gateway.kill()
