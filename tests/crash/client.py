"""Calls whose answers may never come, because the gateway can be killed at any instant."""
import json
import select

from streams import Stream
from wire import Wire, bearer, request, with_body

# Less than between two comments, which would keep a stream going for ever.
SILENCE_SECONDS_MAX = 12


class Lost(Exception):
    """No whole answer came: whether it was done is not known."""


class Answered:
    def __init__(self, status, headers, body, raw):
        self.status = status
        self.headers = headers
        self.body = body
        self.raw = raw

    @property
    def code(self):
        return self.body.get("code") if isinstance(self.body, dict) else None

    def __repr__(self):
        return f"{self.status} {str(self.body)[:400]}"


class Pending:
    """A request that is on its way; its answer is asked for later, or never."""

    def __init__(self, gateway, data, source=None):
        try:
            self.wire = Wire(gateway, source)
        except OSError as error:
            raise Lost(str(error)) from None
        self.wire.send(data)

    def answer(self):
        try:
            answer = self.wire.read()
        except (OSError, AssertionError, ValueError) as error:
            raise Lost(str(error)) from None
        finally:
            self.wire.socket.close()
        if answer is None:
            raise Lost("closed without an answer")
        headers = {name.lower(): value for name, value in answer.headers}
        return Answered(answer.status, headers, json.loads(answer.body), answer.body)

    def is_answered(self):
        """Whether something of an answer has come, or the end of the connection."""
        return bool(select.select([self.wire.socket], [], [], 0)[0])

    def hang_up(self):
        self.wire.socket.close()


def send(gateway, token, line, body=None, *headers):
    if body is None:
        return Pending(gateway, request(line, bearer(token), *headers))
    return Pending(gateway, with_body(line, json.dumps(body).encode(), bearer(token), *headers))


def call(gateway, token, line, body=None, *headers):
    return send(gateway, token, line, body, *headers).answer()


def upload(gateway, token, content, ttl_secs):
    form = (b'--cut\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            + content + b"\r\n--cut--\r\n")
    kind = "Content-Type: multipart/form-data; boundary=cut"
    return Pending(gateway, with_body(f"POST /files?ttl_secs={ttl_secs}", form, bearer(token), kind)).answer()


def status_from(gateway, token, source):
    """What a token gets, asked from an address of its own."""
    return Pending(gateway, request("GET /whoami", bearer(token)), source).answer().status


class LiveStream:
    """A stream of events that may break off; `refusal` if there is none."""

    def __init__(self, gateway, data):
        try:
            self.stream = Stream(gateway, data)
            self.stream.wire.socket.settimeout(SILENCE_SECONDS_MAX)
            self.refusal = self._refusal() if self.stream.status != 200 else None
        except (OSError, AssertionError, ValueError) as error:
            raise Lost(str(error)) from None

    def _refusal(self):
        length = int(self.stream.headers.get("content-length", "0"))
        body = json.loads(self.stream.wire._exactly(length))
        self.close()
        return Answered(self.stream.status, self.stream.headers, body)

    def next(self):
        """The next event as (id, name, data); none at the end."""
        try:
            event = self.stream.next()
        except (OSError, AssertionError, ValueError) as error:
            raise Lost(str(error)) from None
        if event is None and not self.stream.is_whole:
            raise Lost("the stream broke off")
        return event and (event.id, event.name, event.json())

    def close(self):
        self.stream.close()


def stream_turn(gateway, token, session_id, body):
    data = json.dumps({**body, "stream": True}).encode()
    return LiveStream(gateway, with_body(f"POST /sessions/{session_id}/turn", data, bearer(token)))


def stream_events(gateway, token, session_id, last_id):
    return LiveStream(gateway, request(
        f"GET /sessions/{session_id}/events", bearer(token), "Accept: text/event-stream",
        f"Last-Event-ID: {last_id}"))
