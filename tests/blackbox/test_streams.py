"""Streams: each event once and in order, whatever happens to the connection or the gateway."""
import contextlib
import json
import random
import re
import sqlite3
import threading
import time

import pytest

from agents import fewer, gauge
from answers import assert_error
from faults import LEDGER, new_faulty, shim
from gateway import SANITIZED, SECONDS_MAX, SLACK_SECONDS, wait_until
from sessions import (Talker, app, assert_same_refusal, change, forge, journal, journal_blocks,
                      new_forge, query, sweep, turn_rows)
from streams import (CLOSING, Event, Stream, assert_one_apart, message_of, messages, page,
                     stream_turn, tail)
from wire import Wire, bearer, request

__all__ = ["app", "forge", "new_faulty", "new_forge", "shim"]  # fixtures

COMMITS = "clawdforge_ledger_commit_seconds_count"


def numbers(count):
    return [str(number) for number in range(count)]


def kept(gateway, session):
    """What the ledger has, in the shape of what a stream tells."""
    with_text = []
    for _, lines in journal_blocks(gateway, session):
        for line in lines.splitlines():
            event = json.loads(line)
            text = line.split(',"data":', 1)[1][:-1]
            with_text.append(Event(event["id"], event["event"], text))
    return with_text


def newest(gateway, session):
    return query(gateway, "SELECT last_event_id FROM sessions WHERE session_id = ?",
                 session.id)[0]["last_event_id"]


def assert_turn_stream(events, pieces, closing="done"):
    """A whole turn of these pieces of the message, and one closing event at its end."""
    assert_one_apart(events)
    assert messages(events) == pieces
    assert [event.name for event in events if event.name in CLOSING] == [closing]
    assert events[-1].name == closing
    return events[-1].json()


# What a stream is

def test_a_turn_is_in_the_ledger_when_its_stream_begins(app, forge, tmp_path):
    """Who has been told that it was accepted may come back for its end after a crash."""
    session = app.session()
    for index in range(1, fewer(20) + 1):
        gate = tmp_path / f"gate-{index}"
        with stream_turn(session, {"wait_for": str(gate)}) as stream:
            assert stream.status == 200
            assert [row["turn_index"] for row in turn_rows(forge, session)][-1:] == [index]
            gate.touch()
            assert stream.rest()[-1].name == "done"


def test_a_turn_is_told_as_it_happens_and_closed_once(app, forge):
    session = app.session()
    with stream_turn(session, {"text": "one"}, {"thought": "hm"}, {"text": "two"},
                     {"usage": {"inputTokens": 3, "outputTokens": 4}}) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "content-length" not in stream.headers
        events = stream.rest()
    assert stream.comments, "a caller sees at once that he is heard"
    done = assert_turn_stream(events, ["one", "two"])
    assert (stream.opening.id, events[0].id) == (1, 2)
    assert set(done) == {"ok", "session_id", "turn_index", "text", "stop_reason", "duration_ms",
                         "usage", "cost_usd"}
    assert (done["ok"], done["session_id"], done["turn_index"]) == (True, session.id, 1)
    assert (done["text"], done["stop_reason"]) == ("onetwo", "end_turn")
    assert [stream.opening, *events] == kept(forge, session)


def test_a_stream_tells_the_same_json_as_a_plain_answer(app):
    plain, streamed = app.session(), app.session()
    script = ({"text": "one"}, {"tool": {"rawInput": {"a": 1}, "result": {"b": 2}}}, {"text": "é"})
    answer = plain.ask(*script)
    told = stream_turn(streamed, *script).rest()

    def without_ids(events):
        return [json.loads(json.dumps(event).replace(session_id, "")) for event, session_id in (
            (event, event.get("params", {}).get("sessionId", "-")) for event in events)]
    assert without_ids(answer["events"]) == without_ids([event.json() for event in told[:-1]])
    body = told[-1].json()
    assert set(answer) - set(body) == {"events"}
    assert {key for key in answer if key != "events" and answer[key] != body[key]} <= {
        "session_id", "duration_ms"}


def test_the_accept_header_asks_for_a_stream_unless_the_body_says_no(app):
    session = app.session()
    for field, accept, is_stream in (("", "text/event-stream", True),
                                     ("", "application/json, Text/Event-Stream;q=0.5", True),
                                     ("", "*/*", False), (',"stream":false', "text/event-stream",
                                                          False), (',"stream":true', "*/*", True)):
        answer = app.client().post(session.path + "/turn", headers={
            "Accept": accept, "Content-Type": "application/json"}, content=f'{{"prompt":"x"{field}}}')
        kind = "text/event-stream" if is_stream else "application/json"
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind), accept
    assert_error(app.client().post(session.path + "/turn", json={"prompt": "x", "stream": "yes"}),
                 422, "validation_failed")


def test_a_refused_turn_is_no_stream(app, forge):
    session = app.session()
    session.close()
    answer = app.client().post(session.path + "/turn", json={"prompt": "x", "stream": True})
    assert_error(answer, 410, "session_closed")


def test_a_failed_turn_closes_with_failed(app):
    session = app.session()
    events = stream_turn(session, {"text": "half"}, {"exit": 3}).rest()
    failed = assert_turn_stream(events, ["half"], "failed")
    assert (failed["ok"], failed["code"], failed["turn_index"]) == (False, "agent_exited", 1)
    assert set(failed) == {"ok", "session_id", "turn_index", "error", "stderr", "code", "detail",
                           "stop_reason", "duration_ms"}
    events = stream_turn(session, {"sleep_until_cancel": True}, timeout_secs=5).rest()
    assert assert_turn_stream(events, [], "failed")["code"] == "timeout"


def test_a_waiting_turn_tells_only_its_own_events(app, forge, tmp_path):
    session = app.session()
    held = session.hold(tmp_path, {"text": "of the first"}).begun()
    with stream_turn(session, {"text": "of the second"}) as stream:
        wait_until(lambda: session.state()["turn_count"] == 2, "it waits")
        held.end()
        events = stream.rest()
    assert messages(events) == ["of the second"]
    assert events[-1].json()["turn_index"] == 2
    assert {event["turn_index"] for event in journal(forge, session)
            if event["id"] in [told.id for told in events]} == {2}


def test_a_waiting_turn_whose_time_ends_is_closed_too(app, tmp_path):
    session = app.session()
    held = session.hold(tmp_path).begun()
    events = stream_turn(session, "x", timeout_secs=5).rest()
    assert assert_turn_stream(events, [], "failed")["code"] == "queue_timeout"
    held.end()


def test_a_caller_who_hangs_up_does_not_end_a_streamed_turn(app, forge, tmp_path):
    session = app.session()
    gate = tmp_path / "gate"
    running = stream_turn(session, {"text": "one"}, {"wait_for": str(gate)}, {"text": "two"})
    assert message_of(running.expect()) == "one"
    waiting = stream_turn(session, {"text": "three"})
    wait_until(lambda: session.state()["turn_count"] == 2, "it waits")
    running.close()
    waiting.close()
    gate.touch()
    wait_until(lambda: not session.state()["busy"], "both have ended")
    assert [row["state"] for row in turn_rows(forge, session)] == ["done", "done"]
    assert messages(kept(forge, session)) == ["one", "two", "three"]


def test_late_words_keep_their_turn_and_follow_its_end(app, forge):
    session = app.session()
    events = stream_turn(session, {"text": "in time"}, {"late": "too late"}).rest()
    assert_turn_stream(events, ["in time"])
    with tail(session, after=events[-1].id) as stream:
        late = stream.expect("update")
    assert (late.id, message_of(late)) == (events[-1].id + 1, "too late")
    assert journal(forge, session)[-1]["turn_index"] == 1


def test_words_outside_of_a_turn_belong_to_none(new_forge):
    forge = new_forge(agents={"chatty": ["--chatty"]})
    session = Talker(forge).session("chatty")
    with tail(session) as stream:
        first = stream.expect("update")
    assert first.id == 1 and "outside of any turn" in first.text
    assert page(session)["events"][0]["turn_index"] == 0


# Nothing is lost

def script_in_parts(place, parts, size):
    """Steps that say 0 to size - 1 again and again, and wait between for these gates."""
    gates = [place / f"part-{number}" for number in range(parts - 1)]
    steps = [{"count": size}]
    for gate in gates:
        steps += [{"wait_for": str(gate)}, {"count": size}]
    return steps, gates


def test_a_client_cut_off_a_hundred_times_gets_every_event_once(app, forge, tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    parts, size = 20, fewer(250)
    total = parts * size
    session = app.session()
    steps, gates = script_in_parts(tmp_path, parts, size)
    # The agent goes on at places of its own, so that cuts fall into what was and what comes.
    goes_on = {number * size - choose.randrange(size // 2): gate
               for number, gate in enumerate(gates, 1)}
    cuts = set(choose.sample(range(1, total), fewer(100)))
    received = []
    stream = stream_turn(session, *steps)
    while not received or received[-1].name != "done":
        received.append(stream.expect())
        if len(received) in goes_on:
            goes_on[len(received)].touch()
        if len(received) in cuts:
            stream.close()
            stream = tail(session, last_id=received[-1].id)
    stream.close()
    assert_turn_stream(received, numbers(size) * parts)
    assert received[0].id == 2
    assert received == kept(forge, session)[1:]


@pytest.mark.timeout(300)
def test_a_gateway_killed_ten_times_keeps_what_it_has_told(new_forge, tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    forge = new_forge()
    session = Talker(forge).session()
    count = fewer(5000)
    last_id = 0
    for turn in range(1, fewer(10) + 1):
        received = []
        stream = stream_turn(session, {"count": count}, {"wait_for": str(tmp_path / "never")})
        last_id += 1
        assert stream.opening.id == last_id, "it goes on where the last turn ended"
        enough = choose.randrange(count)
        while len(received) < enough:
            received.append(stream.expect())
        forge.kill()
        while (event := stream.next()) is not None:
            received.append(event)
        stream.close()
        forge.start()
        with tail(session, last_id=last_id + len(received)) as stream:
            received += stream.until("failed")
        failed = assert_turn_stream(received, numbers(len(received) - 1), "failed")
        assert (failed["code"], failed["turn_index"]) == ("interrupted", turn)
        assert received[0].id == last_id + 1
        last_id = received[-1].id
    events = stream_turn(session, {"count": count}).rest()
    assert events[0].id == last_id + 2
    assert_turn_stream(events, numbers(count))
    assert_one_apart(kept(forge, session), 1)


def test_no_event_is_told_before_it_is_written(app, forge, tmp_path):
    session = app.session()
    with contextlib.closing(sqlite3.connect(
            f"file:{forge.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        stream = stream_turn(session, {"count": 2000})
        while (event := stream.next()) is not None:
            written = ledger.execute("SELECT MAX(last_event_id) FROM journal WHERE session_id = ?",
                                     [session.id]).fetchone()[0]
            assert written is not None and written >= event.id


def test_nothing_is_told_while_the_ledger_cannot_write(app, forge, tmp_path):
    session = app.session()
    gate, said = tmp_path / "gate", tmp_path / "said"
    stream = stream_turn(session, {"text": "before"}, {"wait_for": str(gate)}, {"text": "after"},
                         {"touch": str(said)})
    assert message_of(stream.expect()) == "before"
    with contextlib.closing(sqlite3.connect(forge.data_dir / "clawdforge.db",
                                            isolation_level=None)) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        gate.touch()
        wait_until(said.exists, "the agent has said it")
        stream.wire.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            stream.next()
        ledger.execute("ROLLBACK")
    stream.wire.socket.settimeout(SECONDS_MAX)
    assert messages(stream.rest()) == ["after"]


def test_a_long_turn_costs_few_commits_and_its_first_event_waits_for_none(new_faulty, tmp_path):
    """The events that come during a commit go together into the next one. Here each commit takes a
    tenth of a second, so that many come during each, however slow the machine is."""
    forge, faults = new_faulty()
    session = Talker(forge).session()
    session.ask("warm")
    gate = tmp_path / "gate"
    with faults.set(scope=LEDGER, sync_millis=100):
        with stream_turn(session, {"text": "first"}, {"wait_for": str(gate)},
                         {"count": 10_000}) as stream:
            assert message_of(stream.expect()) == "first", "no second event had to push it out"
            before = gauge(forge, COMMITS)
            gate.touch()
            assert_turn_stream(stream.rest(), numbers(10_000))
    assert gauge(forge, COMMITS) - before < 10_000 / 10


def test_what_an_agent_says_in_one_breath_is_not_too_much_for_a_reader_who_reads(new_forge):
    forge = new_forge(reader_buffer_bytes=1024)
    session = Talker(forge).session()
    count = fewer(20_000)
    assert_turn_stream(stream_turn(session, {"count": count}).rest(), numbers(count))
    events = stream_turn(session, {"big_line": 3_000_000}).rest()
    assert len(events[0].text) > 2_900_000 and events[-1].name == "done"


# Pages

def test_the_journal_comes_in_pages(app, forge):
    session = app.session()
    session.ask({"count": 250})
    all_events = journal(forge, session)
    found, after, sizes = [], 0, []
    while True:
        body = page(session, after=after, limit=100)
        assert "gap" not in body
        sizes.append(len(body["events"]))
        if not body["events"]:
            assert body["next_after"] == after
            break
        assert body["next_after"] == body["events"][-1]["id"]
        found += body["events"]
        after = body["next_after"]
    assert found == all_events
    assert sizes == [100, 100, len(all_events) - 200, 0]
    assert len(page(session)["events"]) == 100, "unless the caller says otherwise"
    assert page(session, limit=1000)["events"] == all_events
    assert page(session, after=7, limit=1)["events"] == [all_events[7]]


def test_a_page_of_a_session_that_has_said_nothing_is_empty(app):
    assert page(app.session()) == {"events": [], "next_after": 0}


def test_a_closed_session_has_its_pages(app, forge):
    session = app.session()
    session.ask("x")
    session.close()
    assert page(session)["events"] == journal(forge, session)


@pytest.mark.parametrize("query_text", ["after=-1", "after=x", "after=1.5", "limit=0",
                                        "limit=1001", "limit=", "after=9223372036854775808"])
def test_a_page_that_cannot_be_is_refused(app, query_text):
    session = app.session()
    assert_error(app.client().get(f"{session.path}/events?{query_text}"), 422, "validation_failed")


def test_what_lies_beyond_the_newest_is_refused(app, forge):
    session = app.session()
    session.ask("x")
    last = newest(forge, session)
    assert page(session, after=last)["events"] == []
    for headers in ({}, {"Accept": "text/event-stream"},
                    {"Accept": "text/event-stream", "Last-Event-ID": str(last + 1)}):
        answer = app.client().get(f"{session.path}/events?after={last + 1}", headers=headers)
        assert_error(answer, 422, "validation_failed")
    answer = app.client().get(f"{session.path}/events?after={last + 1}",
                              headers={"Last-Event-ID": "0"})
    assert_error(answer, 422, "validation_failed")


def test_the_last_event_id_beats_after(app):
    session = app.session()
    session.ask({"count": 10})
    with tail(session, after=2) as stream:
        assert stream.expect().id == 3
    with tail(session, after=2, last_id=5) as stream:
        assert stream.expect().id == 6
    with tail(session, last_id=0) as stream:
        assert stream.expect().id == 1
    assert page(session, after=2)["events"][0]["id"] == 3


@pytest.mark.parametrize("last_id", ["x", "-1", "1.5", "1 2", "9223372036854775808"])
def test_a_last_event_id_that_is_none_is_refused(app, last_id):
    session = app.session()
    answer = app.client().get(session.path + "/events", headers={
        "Accept": "text/event-stream", "Last-Event-ID": last_id})
    assert_error(answer, 422, "validation_failed")


# What retention takes

def spoken(gateway, turns=4):
    """A session of several turns, each a block of the journal."""
    session = Talker(gateway, f"app-{time.monotonic_ns()}").session()
    for turn in range(turns):
        session.ask({"text": f"turn {turn + 1}"})
    return session, journal(gateway, session)


def gap_of(event):
    assert (event.name, event.id) == ("gap", None)
    body = event.json()
    assert set(body) == {"from", "to"}
    return body["from"], body["to"]


def test_what_was_removed_is_told_as_a_gap(forge):
    session, events = spoken(forge)
    removed = [event["id"] for event in events if event["turn_index"] <= 2][-1]
    change(forge, "DELETE FROM journal WHERE session_id = ? AND turn_index <= 2", session.id)
    with tail(session) as stream:
        assert gap_of(stream.expect()) == (1, removed)
        assert [event.id for event in stream.take(2)] == [removed + 1, removed + 2]
    with tail(session, last_id=removed - 1) as stream:
        assert gap_of(stream.expect()) == (removed, removed)
    with tail(session, last_id=removed) as stream:
        assert stream.expect("turn").id == removed + 1
    body = page(session, limit=1)
    assert body["gap"] == {"from": 1, "to": removed}
    assert (body["events"], body["next_after"]) == ([events[removed]], removed + 1)


def test_a_hole_in_the_middle_is_told_where_it_is(forge):
    session, events = spoken(forge)
    removed = [event["id"] for event in events if event["turn_index"] == 2]
    change(forge, "DELETE FROM journal WHERE session_id = ? AND turn_index = 2", session.id)
    with tail(session) as stream:
        before = stream.take(removed[0] - 1)
        assert gap_of(stream.expect()) == (removed[0], removed[-1])
        assert stream.expect().id == removed[-1] + 1
    assert [event.id for event in before] == list(range(1, removed[0]))
    first = page(session)
    assert "gap" not in first, "it begins the next page"
    assert first["next_after"] == removed[0] - 1
    second = page(session, after=first["next_after"])
    assert second["gap"] == {"from": removed[0], "to": removed[-1]}
    assert [event["id"] for event in second["events"]] == [
        event["id"] for event in events if event["turn_index"] > 2]


def test_when_all_was_removed_the_tail_goes_on_behind_it(forge):
    session, events = spoken(forge, 1)
    change(forge, "DELETE FROM journal WHERE session_id = ?", session.id)
    assert page(session) == {"events": [], "next_after": events[-1]["id"],
                             "gap": {"from": 1, "to": events[-1]["id"]}}
    with tail(session) as stream:
        assert gap_of(stream.expect()) == (1, events[-1]["id"])
        session.ask({"text": "more"})
        stream.expect("turn")
        assert message_of(stream.expect("update")) == "more"


@pytest.mark.parametrize("setting", ["journal_max_age_secs", "journal_max_bytes_per_session"])
def test_retention_leaves_a_gap(new_forge, setting):
    value = {"journal_max_age_secs": 1, "journal_max_bytes_per_session": 1024}[setting]
    forge = new_forge(**{setting: value}, sweep_interval_secs=3600)
    session, events = spoken(forge)
    session.ask({"text": "x" * 2000})

    def is_trimmed():
        sweep(forge)
        kept_events = journal(forge, session)
        return not kept_events or kept_events[0]["id"] > len(events)
    wait_until(is_trimmed, "the old events are removed")
    with tail(session) as stream:
        first, last = gap_of(stream.expect())
        assert first == 1 and last >= len(events)
        session.ask({"text": "after it"})
        told = [stream.expect()]
        while message_of(told[-1]) != "after it":
            told.append(stream.expect())
    assert_one_apart(told, last + 1)


# Many readers

def test_a_reader_who_comes_while_a_turn_runs_misses_nothing(app, tmp_path):
    session = app.session()
    steps, gates = script_in_parts(tmp_path, 5, 100)
    first = stream_turn(session, *steps)
    late = []
    for gate in gates:
        late.append(tail(session))
        gate.touch()
    received = first.rest()
    assert_turn_stream(received, numbers(100) * 5)
    for stream in late:
        assert stream.until("done") == [first.opening, *received]
        stream.close()


ABSENT = 10
READER_BUFFER_BYTES = 1024 * 1024
# For all the readers that do not keep up; the rest is what two such turns may differ by.
GROWN_BYTES_MAX = (ABSENT + 1) * READER_BUFFER_BYTES + 8 * 1024 * 1024


def peak_bytes(gateway):
    """The most memory that it ever had."""
    with open(f"/proc/{gateway.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024


def through_lags(session, events):
    """A busy machine may keep an eager reader away for so long that it is cut; it goes on from there."""
    while events[-1].name == "lagged":
        events.pop()
        with tail(session, last_id=events[-1].id) as again:
            while (event := again.next()) is not None:
                events.append(event)
                if event.name in ("done", "lagged"):
                    break
    return events


@pytest.mark.timeout(240)
def test_slow_late_and_absent_readers_cost_the_turn_nothing(new_forge):
    forge = new_forge()
    session = Talker(forge).session()
    count, piece_bytes = fewer(20_000), 4_000
    assert SANITIZED or count * piece_bytes > 4 * GROWN_BYTES_MAX, "what is kept would show"
    script = ({"flood": count, "piece_bytes": piece_bytes},)
    for _ in range(2):  # so that what a turn costs by itself is there
        through_lags(session, stream_turn(session, *script).rest())
    begun = time.monotonic()
    alone = through_lags(session, stream_turn(session, *script).rest())
    seconds_alone = time.monotonic() - begun
    before, first_id = peak_bytes(forge), alone[-1].id + 2  # after what it is asked

    slow_end = threading.Event()
    slow = tail(session, last_id=first_id - 2, buffer_bytes=4096)
    absent = [tail(session, last_id=first_id - 2, buffer_bytes=4096) for _ in range(ABSENT)]
    slow_events = []

    def read_slowly():
        while not slow_end.wait(0.05) and (event := slow.next()) is not None:
            slow_events.append(event)
    reader = threading.Thread(target=read_slowly)
    reader.start()
    begun = time.monotonic()
    turn = stream_turn(session, *script)
    eager = through_lags(session, turn.rest())
    seconds = time.monotonic() - begun
    grown = peak_bytes(forge) - before
    slow_end.set()
    reader.join()
    assert len(messages(eager)) == count and eager[-1].name == "done"
    assert_one_apart(eager, first_id)
    assert seconds < 5 * seconds_alone + SLACK_SECONDS, "the turn ends in its own time"
    assert SANITIZED or grown < GROWN_BYTES_MAX, grown  # a sanitizer keeps what was freed
    if slow_events[-1].name == "lagged":  # where the turn takes long enough for that
        slow_events.pop()
    whole = [turn.opening, *eager]
    assert slow_events == whole[:len(slow_events)]
    with tail(session, last_id=first_id - 2) as late:
        assert late.take(len(whole)) == whole
    for stream in (slow, *absent):
        stream.close()


def test_a_reader_who_does_not_read_is_told_that_it_lags(new_forge, tmp_path):
    forge = new_forge(reader_buffer_bytes=1024 * 1024)
    session = Talker(forge).session()
    stream = tail(session, buffer_bytes=4096)
    begun = time.monotonic()
    session.ask({"text": "the first"})
    stream.expect("turn")
    assert message_of(stream.expect()) == "the first"
    for _ in range(2):  # more than the sockets hold, so that one piece cannot be sent
        session.ask({"flood": fewer(100_000)})
    wait_until(lambda: time.monotonic() - begun > 3, "it has been away for long")
    received = []
    while (event := stream.next()) is not None:
        received.append(event)
    assert stream.is_whole
    assert (received[-1].name, received[-1].id, received[-1].text) == ("lagged", None, "{}")
    last = assert_one_apart(received[:-1])
    assert last < newest(forge, session)
    with tail(session, last_id=last) as back:
        rest = back.take(newest(forge, session) - last)
    assert_one_apart(received[:-1] + rest)
    stream.close()


# How streams end

def test_the_tail_of_a_closed_session_ends_after_its_last_event(app, forge):
    session = app.session()
    session.ask("x")
    session.close()
    events = tail(session).rest()
    assert events == kept(forge, session)
    # EventSource comes back with the last id, and stops when it is told so.
    answer = tail(session, last_id=events[-1].id)
    assert answer.status == 204
    answer.close()
    with tail(session, last_id=events[-2].id) as stream:
        assert (stream.status, stream.rest()) == (200, events[-1:])
    silent = app.session()
    silent.close()
    assert tail(silent).status == 204
    assert page(silent) == {"events": [], "next_after": 0}


def test_a_session_closed_under_its_readers_tells_them(app, tmp_path):
    session = app.session()
    turn = stream_turn(session, {"text": "x"}, {"wait_for": str(tmp_path / "never")})
    follower = tail(session)
    assert follower.expect() == turn.opening
    assert message_of(turn.expect()) == message_of(follower.expect()) == "x"
    session.close()
    rest = turn.rest()
    assert [event.name for event in rest] == ["failed"]
    assert rest[0].json()["code"] == "session_closed"
    assert follower.rest() == rest
    idle = app.session()
    follower = tail(idle)
    idle.close()
    assert follower.rest() == []


def revoke(forge, session):
    forge.admin.delete(f"/admin/tokens/{session.app.name}").raise_for_status()


def rotate(forge, session):
    forge.admin.post(f"/admin/tokens/{session.app.name}/rotate").raise_for_status()


def delete_row(forge, session):
    assert change(forge, "DELETE FROM tokens WHERE name = ?", session.app.name) == 1


@pytest.mark.parametrize("way", [revoke, rotate, delete_row])
def test_streams_end_with_their_token(forge, tmp_path, way):
    caller = Talker(forge, f"{way.__name__.replace('_', '-')}")
    session, gate = caller.session(), tmp_path / "gate"
    turn = stream_turn(session, {"text": "x"}, {"wait_for": str(gate)}, {"text": "secret"})
    follower = tail(session)
    assert follower.expect() == turn.opening
    assert message_of(turn.expect()) == message_of(follower.expect()) == "x"
    way(forge, session)
    # Both streams end while the turn still waits for the gate: it is not the turn's end that ends them.
    heard = [event for stream in (turn, follower) for event in stream.rest()]
    gate.touch()
    assert not messages(heard)
    assert {event.name for event in heard} <= {"failed"}
    for stream in (turn, follower):
        assert stream.comments[-1] == "the token is not valid any more"
    assert forge.whoami(caller.token) == 401


def test_a_rotated_token_reads_on(forge, tmp_path):
    caller = Talker(forge, "reads-on")
    session, gate = caller.session(), tmp_path / "gate"
    turn = stream_turn(session, {"text": "x"}, {"wait_for": str(gate)}, {"text": "y"})
    first = turn.expect()
    token = forge.admin.post("/admin/tokens/reads-on/rotate").json()["token"]
    assert turn.rest() == []
    gate.touch()
    with tail(session, last_id=first.id, token=token) as stream:
        events = [first, *stream.until("done")]
    assert_turn_stream(events, ["x", "y"])


def test_a_tail_ends_when_another_program_has_closed_or_deleted_the_session(forge, app):
    for statement in ("UPDATE sessions SET closed_at = 1 WHERE session_id = ?",
                      "DELETE FROM sessions WHERE session_id = ?"):
        session = app.session()
        with tail(session) as stream:
            change(forge, statement, session.id)
            sweep(forge)
            assert stream.rest() == []


def test_a_draining_gateway_says_goodbye_and_lets_turns_end(new_forge, tmp_path):
    forge = new_forge(drain_grace_secs=20)
    session = Talker(forge).session()
    gate = tmp_path / "gate"
    turn = stream_turn(session, {"text": "x"}, {"wait_for": str(gate)}, {"text": "y"})
    follower = tail(session)
    idle = tail(Talker(forge, "other").session())
    assert follower.expect() == turn.opening
    assert message_of(turn.expect()) == message_of(follower.expect()) == "x"
    forge.process.terminate()
    for stream in (follower, idle):
        goodbye, = stream.rest()
        assert (goodbye.id, goodbye.name) == (None, "shutdown")
    gate.touch()
    rest = turn.rest()
    assert messages(rest) == ["y"] and rest[-1].name == "done"
    assert forge.wait() == 0
    forge.start()
    with tail(session, last_id=2) as stream:
        assert stream.until("done") == rest


def test_a_turn_that_outlasts_the_drain_gets_its_closing_event(new_forge, tmp_path):
    forge = new_forge(drain_grace_secs=0, cancel_grace_ms=200)
    session = Talker(forge).session()
    turn = stream_turn(session, {"text": "x"}, {"wait_for": str(tmp_path / "never")})
    assert message_of(turn.expect()) == "x"
    assert forge.stop() == 0
    rest = turn.rest()
    assert [event.name for event in rest if event.name != "update"] == ["failed"]
    assert rest[-1].json()["code"] == "interrupted"
    forge.start()
    with tail(session, last_id=2) as stream:
        assert stream.until("failed") == rest


# HTTP

def old_request(line, *headers):
    return "\r\n".join([line + " HTTP/1.0", *headers, "", ""]).encode()


def test_an_old_client_gets_the_stream_without_chunks(app, forge):
    session = app.session()
    session.ask("x")
    stream = Stream(forge, old_request(f"GET {session.path}/events", bearer(app.token),
                                       "Accept: text/event-stream"))
    assert stream.status == 200 and not stream.is_chunked
    assert stream.headers["connection"] == "close"
    assert stream.until("done") == kept(forge, session)
    session.close()
    assert stream.rest() == []


def test_head_tells_the_head_alone(app, forge):
    session = app.session()
    session.ask("x")
    with Wire(forge) as wire:
        for _ in range(2):
            answer = wire.ask(request(f"HEAD {session.path}/events", bearer(app.token),
                                      "Accept: text/event-stream"), to_head=True)
            assert answer.status == 200
            assert answer.header("Content-Type") == "text/event-stream"
            assert answer.header("Cache-Control") == "no-store"
        answer = wire.ask(request(f"HEAD {session.path}/events", bearer(app.token)), to_head=True)
        assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
        assert wire.ask(request("GET /healthz")).status == 200, "nothing lies in between"


def test_a_connection_goes_on_after_a_stream(app, forge):
    session = app.session()
    stream = stream_turn(session, "x")
    stream.rest()
    assert stream.wire.ask(request("GET /healthz")).status == 200


def test_an_idle_stream_shows_that_it_lives(app):
    session = app.session()
    with tail(session) as stream:
        begun = time.monotonic()
        assert stream._more() and stream.text == b":\n\n"
        first = time.monotonic()
        stream.text = b""
        assert stream._more() and stream.text == b":\n\n"
        second = time.monotonic()
        assert first - begun < second - first, "the first does not wait for the time between two"
        assert second - begun < 15 + SLACK_SECONDS


def test_other_apps_sessions_do_not_exist(app, forge):
    session = app.session()
    session.ask("x")
    stranger = Talker(forge, "stranger-of-streams").client()
    paths = [session.path, "/sessions/00000000-0000-7000-8000-000000000000", "/sessions/no.id"]
    for accept in ("application/json", "text/event-stream"):
        assert_same_refusal([stranger.get(path + "/events", headers={"Accept": accept})
                             for path in paths], 404, "session_not_found")
    assert_same_refusal([stranger.post(path + "/turn", json={"prompt": "x", "stream": True})
                         for path in paths], 404, "session_not_found")
