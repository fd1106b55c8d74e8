"""A raw connection: sends any bytes, reads the answers one by one."""
import json
import socket
from typing import NamedTuple

from gateway import SECONDS_MAX


class Answer(NamedTuple):
    version: str
    status: int
    headers: list
    body: bytes

    def header(self, name):
        values = [v for n, v in self.headers if n.lower() == name.lower()]
        assert len(values) <= 1, f"{name} is there {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)


class Wire:
    def __init__(self, gateway, source=None, family=socket.AF_INET, receive_bytes=None):
        self.socket = socket.socket(family)
        self.socket.settimeout(SECONDS_MAX)
        if receive_bytes:  # so that little is under way when it does not read
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((gateway.host.strip("[]"), gateway.port))
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends all; that the other side has closed in the meantime shows when reading."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def ask(self, data, to_head=False):
        self.send(data)
        return self.read(to_head)

    def read(self, to_head=False):
        """The next answer, or None when the other side has closed. `to_head`: has no body."""
        head = self._until(b"\r\n\r\n")
        if head is None:
            assert self.buffer == b"", f"half an answer: {self.buffer!r}"
            return None
        lines = head.decode("latin-1").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        headers = []
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        answer = Answer(version, int(status), headers, b"")
        if to_head or answer.status < 200 or answer.status in (204, 304):
            return answer
        if (answer.header("Transfer-Encoding") or "") == "chunked":
            return answer._replace(body=self._chunks())
        length = answer.header("Content-Length")
        assert length is not None, f"an answer without a length: {lines}"
        return answer._replace(body=self._exactly(int(length)))

    def read_to_close(self):
        """All answers until the other side closes; fails if it does not."""
        answers = []
        while (answer := self.read()) is not None:
            answers.append(answer)
        return answers

    def _fill(self):
        try:
            piece = self.socket.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.buffer += piece
        return bool(piece)

    def _until(self, mark):
        while mark not in self.buffer:
            if not self._fill():
                return None
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def _exactly(self, count):
        while len(self.buffer) < count:
            assert self._fill(), "closed inside a body"
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def _chunks(self):
        body = b""
        while True:
            line = self._until(b"\r\n")
            assert line is not None, "closed inside a chunked body"
            size = int(line, 16)
            body += self._exactly(size)
            assert self._exactly(2) == b"\r\n"
            if size == 0:
                return body


def request(line, *headers, body=b""):
    """Bytes of a request: request("GET /healthz", "X-Y: z"). Host comes by itself."""
    fields = ["Host: localhost", *headers]
    head = "\r\n".join([line + " HTTP/1.1", *fields, "", ""])
    return head.encode("latin-1") + body


def with_body(line, body, *headers):
    return request(line, f"Content-Length: {len(body)}", *headers, body=body)


def bearer(token):
    return f"Authorization: Bearer {token}"


GET_HEALTH = request("GET /healthz")


def is_draining(gateway):
    """A caller who comes now is not let in, not answered, or told so."""
    try:
        with Wire(gateway) as wire:
            answer = wire.ask(request("GET /readyz"))
    except ConnectionRefusedError:
        return True
    return answer is None or answer.status == 503
