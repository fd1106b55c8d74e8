"""Server-sent events off a raw connection, as they come."""
import collections
import json
import time
from typing import NamedTuple

from sessions import as_prompt
from wire import Wire, bearer, request, with_body

CLOSING = {"done", "failed"}


class Event(NamedTuple):
    id: int | None
    name: str
    text: str

    def json(self):
        return json.loads(self.text)


class Stream:
    """One answer that is a stream. Reads only when it is asked for the next event."""

    def __init__(self, gateway, data, buffer_bytes=None):
        self.wire = Wire(gateway, receive_bytes=buffer_bytes) if buffer_bytes else Wire(gateway)
        self.wire.send(data)
        head = self.wire._until(b"\r\n\r\n")
        assert head is not None, "no answer"
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {name.lower(): value.strip()
                        for name, value in (line.split(":", 1) for line in lines[1:])}
        self.is_chunked = self.headers.get("transfer-encoding") == "chunked"
        self.text = b""
        self.ready = collections.deque()
        self.comments = []  # their texts
        self.opening = None  # the first event of a turn's stream
        self.is_whole = False  # it came to its end, and was not cut

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.wire.socket.close()

    def next(self):
        """The next event; none when nothing more comes."""
        while not self.ready:
            if not self._more():
                assert self.text == b"" or not self.is_whole, f"half an event: {self.text!r}"
                return None
            if b"\n\n" in self.text:
                *blocks, self.text = self.text.split(b"\n\n")
                self.ready.extend(filter(None, map(self._event_in, blocks)))
        return self.ready.popleft()

    def _event_in(self, block):
        fields = {}
        for line in block.decode().split("\n"):
            if line.startswith(":"):
                self.comments.append(line[1:].strip())
                continue
            if not line:
                continue
            name, value = line.split(": ", 1)
            assert name in ("id", "event", "at", "offset_ms", "data") and name not in fields, block
            fields[name] = value
        if not fields:
            return None
        number = int(fields["id"]) if "id" in fields else None
        # What happened at a time says so.
        assert ("at" in fields) == (number is not None), block
        assert number is None or abs(int(fields["at"]) - time.time()) < 3600, block
        assert int(fields.get("offset_ms", 0)) >= 0, block
        return Event(number, fields["event"], fields["data"])

    def _more(self):
        if self.is_whole:
            return False
        if not self.is_chunked:
            more = bool(self.wire.buffer) or self.wire._fill()
            self.text, self.wire.buffer = self.text + self.wire.buffer, b""
            self.is_whole = not more
            return more
        line = self.wire._until(b"\r\n")
        if line is None:
            return False
        size = int(line, 16)
        try:
            self.text += self.wire._exactly(size)
            assert self.wire._exactly(2) == b"\r\n"
        except AssertionError:
            return False  # cut inside of a piece
        self.is_whole = size == 0
        return size > 0

    def take(self, count):
        return [self.expect() for _ in range(count)]

    def expect(self, name=None):
        """The next event, which must come, and be this."""
        event = self.next()
        assert event is not None, "the stream has ended"
        assert name is None or event.name == name, event
        return event

    def until(self, name):
        """All up to and with the first of this name."""
        found = [self.expect()]
        while found[-1].name != name:
            found.append(self.expect())
        return found

    def rest(self):
        """All until it ends, which it must do in good order."""
        found = []
        while (event := self.next()) is not None:
            found.append(event)
        assert self.is_whole, "it was cut"
        return found


def stream_turn(session, *steps, headers=(), gateway=None, buffer_bytes=None, **fields):
    body = json.dumps({"prompt": as_prompt(steps), "stream": True, **fields}).encode()
    data = with_body(f"POST {session.path}/turn", body, bearer(session.app.token), *headers)
    stream = Stream(gateway or session.app.gateway, data, buffer_bytes)
    if stream.status == 200:  # every stream of a turn begins with what it was asked
        stream.opening = stream.expect("turn")
    return stream


def tail(session, after=None, last_id=None, token=None, buffer_bytes=None):
    query = "" if after is None else f"?after={after}"
    headers = [bearer(token or session.app.token), "Accept: text/event-stream"]
    if last_id is not None:
        headers.append(f"Last-Event-ID: {last_id}")
    return Stream(session.app.gateway, request(f"GET {session.path}/events{query}", *headers),
                  buffer_bytes)


def page(session, **parameters):
    """One page of the journal, in the promised shape."""
    answer = session.app.get(session.path + "/events", **parameters)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) - {"gap"} == {"events", "next_after"}
    for event in body["events"]:
        assert set(event) == {"id", "turn_index", "at", "offset_ms", "event", "data"}
        assert (event["offset_ms"] is None) == (event["turn_index"] == 0), event
    return body


def message_of(event):
    """The text of a piece of the agent's message; none for any other event."""
    update = event.json().get("params", {}).get("update", {}) if event.name == "update" else {}
    if update.get("sessionUpdate") != "agent_message_chunk":
        return None
    return update["content"]["text"]


def messages(events):
    return [text for text in map(message_of, events) if text is not None]


def assert_one_apart(events, first=None):
    """Numbers grow by one; gives the last."""
    ids = [event.id for event in events]
    assert ids == list(range(ids[0], ids[0] + len(ids))), ids
    assert first is None or ids[0] == first
    return ids[-1]
