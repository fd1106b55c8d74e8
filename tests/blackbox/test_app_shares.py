"""One app cannot take all connections, streams or disk space of the gateway from the others."""
import contextlib
import shutil

import pytest

from agents import assert_success, loud_skip
from answers import assert_error
from gateway import wait_until
from sessions import Talker, change, new_forge, sweep
from streams import Stream
from wire import Wire, bearer, request

CONNECTIONS = 16
SHARE = 12  # three quarters


def who(app):
    return request("GET /whoami", bearer(app.token))


@contextlib.contextmanager
def connections(app, count):
    """So many, each of which has shown the app's token once, and then rests."""
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(app.gateway)) for _ in range(count)]
        assert [wire.ask(who(app)).status for wire in wires] == [200] * count
        yield wires


def event_stream(app, session):
    accept = "Accept: text/event-stream"
    return Stream(app.gateway, request(f"GET {session.path}/events", bearer(app.token), accept))


def assert_closed(wire, answer, code):
    assert_error(answer, 429, code)
    assert int(answer.header("Retry-After")) >= 1
    assert answer.header("Connection").lower() == "close"
    assert wire.read() is None


def test_an_app_holds_at_most_three_quarters_of_the_connections(new_forge):
    gateway = new_forge(max_connections=CONNECTIONS)
    greedy, modest = Talker(gateway, "greedy"), Talker(gateway, "modest")
    with connections(greedy, SHARE) as wires:
        with Wire(gateway) as refused:
            assert_closed(refused, refused.ask(who(greedy)), "too_many_app_connections")
        with Wire(gateway) as other:
            assert other.ask(who(modest)).status == 200
        assert [wire.ask(who(greedy)).status for wire in wires] == [200] * SHARE, "these are its own"
        wires.pop().socket.close()

        def has_room():
            with Wire(gateway) as wire:
                return wire.ask(who(greedy)).status == 200
        wait_until(has_room, "a connection that has ended does not count")


def test_a_connection_belongs_to_the_app_that_used_it_last(new_forge):
    gateway = new_forge(max_connections=CONNECTIONS, max_connections_per_app=2)
    first, second = Talker(gateway, "first"), Talker(gateway, "second")
    with connections(first, 2) as wires:
        assert wires[0].ask(who(second)).status == 200
        with connections(first, 1):
            assert_closed(wires[0], wires[0].ask(who(first)), "too_many_app_connections")


def test_with_few_connections_one_app_may_have_all(new_forge):
    gateway = new_forge(max_connections=4)
    app = Talker(gateway)
    with connections(app, 4):
        pass


@pytest.mark.parametrize("ask", ["events", "turn"])
def test_an_app_has_no_more_streams_than_it_may(new_forge, ask):
    gateway = new_forge(max_event_streams_per_app=2)
    app, other = Talker(gateway, "app"), Talker(gateway, "other")
    session, others = app.session(), other.session()
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(event_stream(app, session)) for _ in range(2)]
        assert [stream.status for stream in streams] == [200, 200]
        if ask == "events":
            answer = app.client().get(f"{session.path}/events", headers={"Accept": "text/event-stream"})
        else:
            answer = app.client().post(f"{session.path}/turn", json={"prompt": "hello", "stream": True})
        assert_error(answer, 429, "too_many_streams")
        assert int(answer.headers["Retry-After"]) >= 1
        assert app.get(session.path).json()["turn_count"] == 0, "a refused turn is not accepted"
        assert app.get(f"{session.path}/events").status_code == 200, "a page is not a stream"
        with event_stream(other, others) as stream:
            assert stream.status == 200
        streams.pop().close()

        def has_room():
            session.turn("hello")  # that a reader has gone shows when there is something to tell it
            with event_stream(app, session) as stream:
                return stream.status == 200
        wait_until(has_room, "a stream that has ended does not count")


# Space on the disk

def post_file(app, size):
    return app.client().post("/files", files={"file": ("a.bin", b"x" * size)})


def test_an_apps_uploads_together_have_a_limit(new_forge):
    gateway = new_forge(max_upload_bytes_per_app=1_000_000)
    greedy, modest = Talker(gateway, "greedy"), Talker(gateway, "modest")
    assert post_file(greedy, 600_000).status_code == 200
    refused = post_file(greedy, 600_000)
    assert_error(refused, 429, "uploads_full")
    assert int(refused.headers["Retry-After"]) >= 1
    assert post_file(modest, 600_000).status_code == 200
    assert post_file(greedy, 300_000).status_code == 200, "what was refused does not count"
    gateway.restart()
    assert_error(post_file(greedy, 600_000), 429, "uploads_full")
    change(gateway, "UPDATE uploads SET expires_at = 1 WHERE app_name = 'greedy'")
    sweep(gateway)
    assert post_file(greedy, 600_000).status_code == 200


def test_what_an_apps_sessions_keep_has_a_limit(new_forge):
    gateway = new_forge(max_journal_bytes_per_app=1_000_000, sweep_interval_secs=86_400)
    greedy, modest = Talker(gateway, "greedy"), Talker(gateway, "modest")
    closed, session = greedy.session(), greedy.session()
    closed.ask({"flood": 30, "piece_bytes": 10_000})  # and once more in the closing event
    closed.close()
    session.ask({"flood": 30, "piece_bytes": 10_000})
    for refused in (session.turn("more"), session.turn("more", stream=True), greedy.create()):
        assert_error(refused, 429, "journal_quota_full")
        assert int(refused.headers["Retry-After"]) >= 1
    assert modest.session().told("hello") == "echo: hello"
    assert len(greedy.get(session.path + "/events", after=0, limit=1000).json()["events"]) >= 30
    gateway.restart()
    assert_error(greedy.create(), 429, "journal_quota_full")
    change(gateway, "UPDATE sessions SET closed_at = 1 WHERE closed_at IS NOT NULL")
    sweep(gateway)
    assert session.told("again") == "echo: again", "what was deleted does not count"


def test_the_last_of_the_disk_is_for_runs_and_sessions(new_forge, tmp_path):
    floor = shutil.disk_usage(tmp_path).free + (16 << 30)
    if floor > 1 << 40:
        loud_skip("the disk has more free space than the floor can be")
    gateway = new_forge(min_free_disk_bytes=floor)
    app = Talker(gateway)
    refused = post_file(app, 10)
    assert_error(refused, 503, "disk_low")
    assert int(refused.headers["Retry-After"]) >= 1
    assert_success(app.run({}))
    assert app.session().told("hello") == "echo: hello"
