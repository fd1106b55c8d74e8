"""Streams in the format `simple`: the shapes of older SDKs, with the numbers of the journal."""
from answers import assert_error
from sessions import Talker, app, forge, new_forge
from streams import Stream, page, stream_turn
from wire import bearer, request

__all__ = ["app", "forge", "new_forge"]  # fixtures

SCRIPT = ({"thought": "hm"}, {"text": "one"}, {"update": {"sessionUpdate": "plan", "entries": []}},
          {"text": "two"},
          {"tool": {"toolCallId": "t1", "title": "Read", "rawInput": {"path": "a"}, "result": {"b": 2}}},
          {"text": "three"})
TOLD = [{"type": "thinking", "content": "hm"}, {"type": "text", "content": "one"},
        {"type": "text", "content": "two"},
        {"type": "tool_call", "name": "Read", "args": {"path": "a"}, "result": {"b": 2}},
        {"type": "text", "content": "three"}]


def tail_simple(session, last_id=None, name="simple"):
    headers = [bearer(session.app.token), "Accept: text/event-stream"]
    if last_id is not None:
        headers.append(f"Last-Event-ID: {last_id}")
    return Stream(session.app.gateway,
                  request(f"GET {session.path}/events?event_format={name}", *headers))


def updates(events):
    return [event.json() for event in events if event.name == "update"]


def test_a_turn_is_told_in_simple_shapes(app):
    session = app.session()
    stream = stream_turn(session, *SCRIPT, event_format="simple")
    events = stream.rest()
    assert updates(events) == TOLD
    assert [event.name for event in events if event.name != "update"] == ["done"]
    assert events[-1].json()["text"] == "onetwothree"
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    kept = {event["id"]: event for event in page(session)["events"]}
    assert ids[-1] == max(kept), "the numbers are those of the journal"
    assert all(kept[event.id]["event"] == event.name for event in events)


def test_the_tail_tells_the_same(app):
    session = app.session()
    told = stream_turn(session, *SCRIPT, event_format="simple")
    events = [told.opening, *told.rest()]
    with tail_simple(session) as stream:
        assert stream.until("done") == events


def test_a_reader_that_comes_back_loses_nothing_and_gets_nothing_twice(app):
    """Wherever it is cut, also between a tool's call and its end."""
    session = app.session()
    told = stream_turn(session, *SCRIPT, event_format="simple")
    events = [told.opening, *told.rest()]
    for last in range(events[0].id, events[-1].id):
        with tail_simple(session, last) as stream:
            assert stream.until("done") == [event for event in events if event.id > last], last


def test_a_reader_that_comes_back_while_a_tool_runs_is_told_of_all_of_it(app, tmp_path):
    session = app.session()
    gate = tmp_path / "gate"
    call = {"sessionUpdate": "tool_call", "toolCallId": "x", "title": "Build", "kind": "execute",
            "status": "in_progress", "rawInput": {"command": "make"}}
    end = {"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "completed",
           "rawOutput": "built"}
    with stream_turn(session, {"text": "a"}, {"update": call}, {"text": "b"}, {"wait_for": str(gate)},
                     {"update": end}, event_format="simple") as stream:
        assert updates(stream.take(2)) == [{"type": "text", "content": "a"},
                                           {"type": "text", "content": "b"}]
        last = page(session)["events"][-1]["id"]
    with tail_simple(session, last) as stream:
        gate.touch()
        rest = stream.until("done")
    assert updates(rest) == [{"type": "tool_call", "name": "Build", "args": {"command": "make"},
                              "result": "built"}]


def test_large_messages_are_told_too(app):
    session = app.session()
    events = stream_turn(session, {"big_line": 600_000}, {"text": "end"}, event_format="simple").rest()
    first, last = updates(events)
    assert first["type"] == "text" and len(first["content"]) > 500_000
    assert last == {"type": "text", "content": "end"}


def test_a_stream_is_simple_only_if_its_request_says_so(new_forge):
    """Programs that read streams today go on reading them, whatever their token's format is."""
    forge = new_forge(event_format="simple")
    session = Talker(forge).session()
    assert session.ask("x")["events"][0]["type"] == "text"
    assert "jsonrpc" in stream_turn(session, "x").rest()[0].json()
    with tail_simple(session, name="acp") as stream:
        assert "jsonrpc" in stream.until("update")[-1].json()


def test_a_format_that_is_none_is_refused(app):
    session = app.session()
    get = app.client().get
    for query, accept in (("event_format=xml", "text/event-stream"), ("event_format=simple", "*/*")):
        assert_error(get(f"{session.path}/events?{query}", headers={"Accept": accept}), 422,
                     "validation_failed")
    assert get(f"{session.path}/events?event_format=acp").status_code == 200
