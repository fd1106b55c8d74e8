"""What a hostile app, or a hostile agent that it drives, does to a gateway. Each attack runs in a
process of its own until it is told to end, and at most ATTACK_SECONDS_MAX.

An attack is a function that takes (gateway, token, is_over) and goes on until is_over() says so. It
takes no notice of how it is answered: being refused is what should happen to it."""
import contextlib
import itertools
import json
import multiprocessing
import os
import socket
import threading
import time

from wire import bearer, request, with_body

ATTACK_SECONDS_MAX = 60
MIB = 1024 * 1024
HOSTILE_MODEL = "hostile-model"


class Attack:
    """Goes on in a process of its own while the `with` block lasts."""

    def __init__(self, gateway, token, function):
        self.end = multiprocessing.Event()
        self.process = multiprocessing.Process(
            target=_go_on, args=(function, gateway, token, self.end), daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.process.join(10)
        if self.process.is_alive():  # it waits for an answer that does not come
            self.process.kill()
            self.process.join()


def _go_on(function, gateway, token, end):
    # A hostile app's own work is done on another machine: here it must not take the processor
    # from the gateway and from the well-behaved app.
    os.nice(19)
    until = time.monotonic() + ATTACK_SECONDS_MAX
    function(gateway, token, lambda: end.is_set() or time.monotonic() > until)


def _each_in_a_thread(count, work, is_over):
    """Calls work(number) again and again, in `count` threads."""
    def go_on(number):
        while not is_over():
            with contextlib.suppress(OSError, AssertionError, ValueError):
                work(number)

    threads = [threading.Thread(target=go_on, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _connect(gateway, receive_bytes=None):
    connection = socket.socket()
    connection.settimeout(20)
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.connect((gateway.host, gateway.port))
    return connection


def _ask(gateway, data):
    """Sends a request and reads its answer, whatever it is; gives its body."""
    with contextlib.closing(_connect(gateway)) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        answer = b""
        while piece := connection.recv(1 << 20):
            answer += piece
    return answer.partition(b"\r\n\r\n")[2]


def _post(gateway, token, path, body):
    return _ask(gateway, with_body(f"POST {path}", json.dumps(body).encode(), bearer(token),
                                   "Connection: close"))


def _session(gateway, token, agent="fake", **fields):
    return json.loads(_post(gateway, token, "/sessions", {"agent": agent, **fields}))["session_id"]


def _session_at_last(gateway, token, is_over, **fields):
    """The same, tried again while it is refused."""
    while not is_over():
        with contextlib.suppress(OSError, KeyError, ValueError):
            return _session(gateway, token, **fields)
        time.sleep(0.05)
    return "none"


def _turn(gateway, token, session_id, *steps):
    return _post(gateway, token, f"/sessions/{session_id}/turn", {"prompt": json.dumps(list(steps))})


# By an app alone

def large_bodies(gateway, token, is_over):
    """JSON as large as a body may be, with members that the gateway does not know."""
    filler = ",".join(f'"k{number}":[1,2,3]' for number in range(700_000))
    body = ('{"prompt":"x","agent":"demo","junk":{' + filler + "}}").encode()[:15 * MIB]
    data = with_body("POST /run", body, bearer(token), "Connection: close")
    _each_in_a_thread(4, lambda _: _ask(gateway, data), is_over)


def tiny_chunks(gateway, token, is_over):
    """A body in chunks of one byte."""
    head = request("POST /run", bearer(token), "Transfer-Encoding: chunked", "Connection: close")
    data = head + b"1\r\nx\r\n" * 1_000_000 + b"0\r\n\r\n"
    _each_in_a_thread(4, lambda _: _ask(gateway, data), is_over)


def held_bodies(gateway, token, is_over):
    """Bodies that never get whole, on as many connections as there may be."""
    head = with_body("POST /run", b"x" * (15 * MIB), bearer(token))
    held = []

    def hold(_):
        connection = _connect(gateway)
        held.append(connection)
        connection.sendall(head[:-1])

    with contextlib.suppress(OSError):
        for number in range(100):
            if is_over():
                break
            hold(number)
    while not is_over():
        time.sleep(0.1)
    for connection in held:
        connection.close()


def wrong_tokens(gateway, token, is_over):
    data = request("POST /run", bearer("cf_wrong"), "Content-Length: 0", "Connection: close")
    _each_in_a_thread(8, lambda _: _ask(gateway, data), is_over)


def refused_requests(gateway, token, is_over):
    """Requests that cost the caller little: 404s, 422s, one after another on one connection."""
    data = request("GET /nowhere", bearer(token)) + with_body("POST /run", b"{}", bearer(token))

    def flood(_):
        with contextlib.closing(_connect(gateway)) as connection:
            while not is_over():
                connection.sendall(data * 50)
                connection.recv(1 << 20)

    _each_in_a_thread(8, flood, is_over)


def all_sessions(gateway, token, is_over):
    """Opens sessions for as long as it gets any."""
    _each_in_a_thread(4, lambda _: (_session(gateway, token, "demo"), time.sleep(0.05)), is_over)


def all_runs(gateway, token, is_over):
    """Asks for more runs at once than there are places."""
    _each_in_a_thread(40, lambda _: _post(gateway, token, "/run", {"agent": "demo", "prompt": "x"}),
                      is_over)


def many_uploads(gateway, token, is_over):
    form = (b'--cut\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            + b"x" * 2000 + b"\r\n--cut--\r\n")
    data = with_body("POST /files", form, bearer(token), "Connection: close",
                     "Content-Type: multipart/form-data; boundary=cut")
    _each_in_a_thread(16, lambda _: _ask(gateway, data), is_over)


def replays(gateway, token, is_over):
    """Reads a long journal again and again."""
    session_id = _session_at_last(gateway, token, is_over)
    _turn(gateway, token, session_id, {"flood": 20_000, "piece_bytes": 200})
    data = request(f"GET /sessions/{session_id}/events?after=0&limit=1000", bearer(token),
                   "Connection: close")
    _each_in_a_thread(8, lambda _: _ask(gateway, data), is_over)


def stalled_readers(gateway, token, is_over):
    """Streams of a session that says much, on connections that are not read."""
    session_id = _session_at_last(gateway, token, is_over)
    stream = request(f"GET /sessions/{session_id}/events", bearer(token), "Accept: text/event-stream")
    held = []
    with contextlib.suppress(OSError):
        for _ in range(40):
            held.append(_connect(gateway, receive_bytes=4096))
            held[-1].sendall(stream)
    while not is_over():
        with contextlib.suppress(OSError, ValueError):
            _turn(gateway, token, session_id, {"big_line": 20 * MIB})
    for connection in held:
        connection.close()


def unread_answers(gateway, token, is_over):
    """Answers of many megabytes that are not read."""
    session_id = _session_at_last(gateway, token, is_over)
    _turn(gateway, token, session_id, {"flood": 1000, "piece_bytes": 16_000})
    data = request(f"GET /sessions/{session_id}/events?after=0&limit=1000", bearer(token))
    held = []
    for _ in range(200):
        if is_over():
            break
        with contextlib.suppress(OSError):
            held.append(_connect(gateway, receive_bytes=4096))
            held[-1].sendall(data)
    while not is_over():
        time.sleep(0.1)
    for connection in held:
        connection.close()


def used_up_model(gateway, token, is_over):
    """A model whose allowance is used up, asked for again and again."""
    prompt = json.dumps({"known": "rate_limited"})
    _each_in_a_thread(2, lambda _: _post(gateway, token, "/run", {
        "agent": "claude", "model": HOSTILE_MODEL, "prompt": prompt}), is_over)


# By an agent that an app drives

def _turns(gateway, token, is_over, *steps, count=2):
    ids = [_session_at_last(gateway, token, is_over) for _ in range(count)]
    _each_in_a_thread(count, lambda number: _turn(gateway, token, ids[number], *steps), is_over)


def long_lines(gateway, token, is_over):
    _turns(gateway, token, is_over, {"big_line": 31 * MIB})


def floods(gateway, token, is_over):
    _turns(gateway, token, is_over, {"flood": 50_000})


def nonsense_lines(gateway, token, is_over):
    _turns(gateway, token, is_over, {"nonsense": 50_000}, {"text": "x"})


def tool_kinds(gateway, token, is_over):
    """Tools of kinds that the protocol does not have, each with a name of a megabyte."""
    steps = [{"update": {"sessionUpdate": "tool_call", "toolCallId": f"t{number}" + "i" * MIB,
                         "title": "t" * MIB, "kind": f"k{number}" + "k" * MIB}}
             for number in range(4)]
    _turns(gateway, token, is_over, *steps)


def large_questions(gateway, token, is_over):
    session_id = _session_at_last(gateway, token, is_over, permission_mode="ask")
    steps = [{"permissions": [{"kind": "k" * MIB, "title": "t" * MIB}] * 8}]
    with contextlib.suppress(OSError, ValueError):
        _turn(gateway, token, session_id, *steps)
    while not is_over():
        time.sleep(0.1)


def long_stderr(gateway, token, is_over):
    """Text to mask: 15 MiB on standard error of a run that fails."""
    prompt = json.dumps({"stderr_bytes": 15 * MIB, "exit": 1, "silent": True})
    _each_in_a_thread(2, lambda _: _post(gateway, token, "/run", {"agent": "claude",
                                                                "prompt": prompt}), is_over)


def many_files(gateway, token, is_over):
    """Sessions whose agents leave many files, closed again and again."""
    def once(number):
        session_id = _session(gateway, token)
        _turn(gateway, token, session_id, {"many_files": 5000})
        _ask(gateway, request(f"DELETE /sessions/{session_id}", bearer(token), "Connection: close"))

    _each_in_a_thread(2, once, is_over)


def stopped_launchers(gateway, token, is_over):
    """Agents that stop the launcher above them."""
    for _ in itertools.count():
        if is_over():
            break
        with contextlib.suppress(OSError, ValueError, KeyError):
            session_id = _session(gateway, token)
            _turn(gateway, token, session_id, {"stop_parent": True}, {"text": "x"})
            _ask(gateway, request(f"DELETE /sessions/{session_id}", bearer(token),
                                  "Connection: close"))


BY_APPS = (large_bodies, tiny_chunks, held_bodies, wrong_tokens, refused_requests, all_sessions,
           all_runs, many_uploads, replays, stalled_readers, unread_answers, used_up_model)
BY_AGENTS = (long_lines, floods, nonsense_lines, tool_kinds, large_questions, long_stderr,
             many_files, stopped_launchers)
ALL = BY_APPS + BY_AGENTS
