"""Bytes that no honest client sends: each with its answer and what the connection does next.

REFUSED are shapes after which the connection must end: exactly one answer with one of the
statuses, then the end. Every one of them is followed by a request for /canary, so a shape that
hides a second request would show as a second answer or as a line in the log.
"""
import os
import threading
import time

import pytest

from answers import assert_error
from gateway import SLACK_SECONDS
from wire import GET_HEALTH, Wire, bearer, request

CANARY = b"GET /canary HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD_SECONDS_MAX = 10
LATEST_SECONDS = HEAD_SECONDS_MAX + 3 + SLACK_SECONDS
BAD = {400}
TRANSFER = {400, 501}
VERSION = {400, 505}  # where it depends on how far a parser got


def post(*headers, body=b"", version=b"HTTP/1.1"):
    """A POST without Content-Length; the token lets it reach the body's reader."""
    lines = [b"POST /admin/tokens " + version, b"Host: localhost", b"Authorization: Bearer @ADMIN@",
             *headers, b"", b""]
    return b"\r\n".join(lines) + body


def get(*headers, line=b"GET /healthz HTTP/1.1"):
    return b"\r\n".join([line, b"Host: localhost", *headers, b"", b""])


def length(value):
    return post(b"Content-Length:" + value, body=b"abc")


def coding(value):
    return post(b"Transfer-Encoding:" + value, body=b"3\r\nabc\r\n0\r\n\r\n")


def chunks(body):
    return post(b"Transfer-Encoding: chunked", body=body)


REFUSED = {
    # Two opinions about where the body ends
    "length, then chunked": (post(b"Content-Length: 5", b"Transfer-Encoding: chunked",
                                  body=b"0\r\n\r\n"), BAD),
    "chunked, then length": (post(b"Transfer-Encoding: chunked", b"Content-Length: 5",
                                  body=b"0\r\n\r\n"), BAD),
    "chunked and length 0": (post(b"Transfer-Encoding: chunked", b"Content-Length: 0",
                                  body=b"0\r\n\r\n"), BAD),
    "two different lengths": (post(b"Content-Length: 3", b"Content-Length: 4", body=b"abc"), BAD),
    "two different lengths in one": (length(b" 3, 4"), BAD),
    "length with a plus": (length(b" +3"), BAD),
    "length with a minus": (length(b" -3"), BAD),
    "length in hex": (length(b" 0x3"), BAD),
    "length with a point": (length(b" 3.0"), BAD),
    "length with an exponent": (length(b" 3e0"), BAD),
    "length over 64 bits": (length(b" 18446744073709551619"), {400, 413}),
    "length far over 64 bits": (length(b" 3" + b"0" * 60), {400, 413}),
    "length over 63 bits": (length(b" 9223372036854775811"), {400, 413}),
    "length of two numbers": (length(b" 3 3"), BAD),
    "length empty": (length(b""), BAD),
    "length with a semicolon": (length(b" 3;x"), BAD),
    "length with a trailing comma": (length(b" 3,"), BAD),
    "length in other digits": (length(b" \xd9\xa3"), BAD),
    "length with a vertical tab": (length(b" \x0b3"), BAD),
    "length with a space before the colon": (post(b"Content-Length : 3", body=b"abc"), BAD),
    "length with a tab before the colon": (post(b"Content-Length\t: 3", body=b"abc"), BAD),
    # Transfer codings
    "coding xchunked": (coding(b" xchunked"), TRANSFER),
    "coding chunked, identity": (coding(b" chunked, identity"), TRANSFER),
    "coding gzip, chunked": (coding(b" gzip, chunked"), TRANSFER),
    "coding chunked, gzip": (coding(b" chunked, gzip"), TRANSFER),
    "coding chunked, chunked": (coding(b" chunked, chunked"), TRANSFER),
    "coding identity": (coding(b" identity"), TRANSFER),
    "coding empty": (coding(b""), TRANSFER),
    "coding with a parameter": (coding(b" chunked;x=y"), TRANSFER),
    "coding with a vertical tab": (coding(b" \x0bchunked"), TRANSFER),
    "coding in quotes": (coding(b" \"chunked\""), TRANSFER),
    "coding with a trailing comma": (coding(b" chunked,"), TRANSFER),
    "coding with a space before the colon": (post(b"Transfer-Encoding : chunked",
                                                  body=b"0\r\n\r\n"), BAD),
    "two codings": (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked",
                         body=b"0\r\n\r\n"), TRANSFER),
    "two codings, one identity": (post(b"Transfer-Encoding: identity",
                                       b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), TRANSFER),
    "coding xchunked and a length": (post(b"Transfer-Encoding: xchunked", b"Content-Length: 3",
                                          body=b"abc"), TRANSFER),
    "chunked in HTTP/1.0": (post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n",
                                 version=b"HTTP/1.0"), TRANSFER),
    # Chunks
    "chunk size not hex": (chunks(b"zz\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk size negative": (chunks(b"-3\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk size with a plus": (chunks(b"+3\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk size with 0x": (chunks(b"0x3\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk size missing": (chunks(b"\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk size over 64 bits": (chunks(b"10000000000000003\r\nabc\r\n0\r\n\r\n"), {400, 413}),
    "chunk size of 63 bits": (chunks(b"7fffffffffffffff\r\nabc\r\n0\r\n\r\n"), {400, 413}),
    "chunk size with a bare LF": (chunks(b"3\nabc\r\n0\r\n\r\n"), BAD),
    "chunk with more data than its size": (chunks(b"3\r\nabcdef\r\n0\r\n\r\n"), BAD),
    "chunk without its end": (chunks(b"3\r\nabc0\r\n\r\n"), BAD),
    "chunk that ends in a bare LF": (chunks(b"3\r\nabc\n0\r\n\r\n"), BAD),
    "LF inside a chunk extension": (chunks(b"3;a\nb\r\nabc\r\n0\r\n\r\n"), BAD),
    "CR inside a chunk extension": (chunks(b"3;a\rb\r\nabc\r\n0\r\n\r\n"), BAD),
    "chunk extension without end": (chunks(b"3;" + b"a" * 100000), {400, 413, 431}),
    "trailers without end": (chunks(b"0\r\n" + b"X-A: b\r\n" * 20000 + b"\r\n"), {400, 413, 431}),
    "trailer without a colon": (chunks(b"0\r\nnonsense\r\n\r\n"), BAD),
    # The request line
    "version 2.0": (get(line=b"GET /healthz HTTP/2.0"), VERSION),
    "version 1.2": (get(line=b"GET /healthz HTTP/1.2"), VERSION),
    "version 1.10": (get(line=b"GET /healthz HTTP/1.10"), VERSION),
    "version 0.9": (get(line=b"GET /healthz HTTP/0.9"), VERSION),
    "version in lower case": (get(line=b"GET /healthz http/1.1"), VERSION),
    "version missing": (get(line=b"GET /healthz"), VERSION),
    "something after the version": (get(line=b"GET /healthz HTTP/1.1 x"), VERSION),
    "preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", VERSION),
    "space in the target": (get(line=b"GET /heal thz HTTP/1.1"), VERSION),
    "tab in the request line": (get(line=b"GET\t/healthz HTTP/1.1"), BAD),
    "two spaces in the request line": (get(line=b"GET  /healthz HTTP/1.1"), BAD),
    "no target": (get(line=b"GET HTTP/1.1"), BAD),
    "no method": (get(line=b" /healthz HTTP/1.1"), BAD),
    "NUL in the target": (get(line=b"GET /heal\x00thz HTTP/1.1"), BAD),
    "DEL in the target": (get(line=b"GET /heal\x7fthz HTTP/1.1"), BAD),
    "CR in the target": (get(line=b"GET /heal\rthz HTTP/1.1"), BAD),
    "a method of odd letters": (get(line=b"G@T /healthz HTTP/1.1"), BAD),
    "a method without end": (b"A" * 40000, {400, 414, 431}),
    "a target over 8 KiB": (get(line=b"GET /" + b"a" * 9000 + b" HTTP/1.1"), {414}),
    "a target without end": (b"GET /" + b"a" * 40000, {400, 414, 431}),
    "only a line's end, again and again": (b"\r\n" * 20000, {400, 431}),
    "a TLS greeting": (bytes.fromhex("16030100a5010000a10303") + b"\x01" * 160, BAD),
    "plain noise": (bytes(range(128, 256)) * 4 + b"\r\n\r\n", BAD),
    # Headers
    "lines that end in a bare LF": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", VERSION),
    "one line that ends in a bare LF": (b"GET /healthz HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n", BAD),
    "a bare CR in a value": (get(b"X-A: a\rb"), BAD),
    "a bare CR between headers": (get(b"X-A: a\rContent-Length: 30"), BAD),
    "a NUL in a value": (get(b"X-A: a\x00b"), BAD),
    "a NUL in a name": (get(b"X-\x00A: b"), BAD),
    "a folded line": (get(b"X-A: a", b" b"), BAD),
    "a folded first line": (b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n", BAD),
    "a folded coding": (post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"), BAD),
    "a line without a colon": (get(b"nonsense"), BAD),
    "a header without a name": (get(b": x"), BAD),
    "a space in a name": (get(b"X A: b"), BAD),
    "a bracket in a name": (get(b"X(A: b"), BAD),
    "a high byte in a name": (get(b"X\xffA: b"), BAD),
    "no Host": (b"GET /healthz HTTP/1.1\r\n\r\n", BAD),
    "two Hosts": (get(b"Host: y"), BAD),
    "a head over 16 KiB": (get(b"X-A: " + b"a" * 17000), {431}),
    "a head over 16 KiB in small fields": (get(*[b"X-A%d: " % i + b"a" * 300 for i in range(60)]),
                                           {431}),
    "101 header fields": (get(*[b"X-%d: a" % i for i in range(100)]), {431}),
    "a head without end": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 10000, {431}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_shape_is_refused_and_the_connection_ends(shared, name):
    shape, statuses = REFUSED[name]
    with Wire(shared) as wire:
        wire.send(shape.replace(b"@ADMIN@", shared.admin_token.encode()) + CANARY)
        answers = wire.read_to_close()
    assert len(answers) == 1, [answer.status for answer in answers]
    assert answers[0].status in statuses, answers[0].body
    assert answers[0].header("Connection").lower() == "close"
    assert_error(answers[0], answers[0].status, answers[0].json()["code"])
    assert shared.client().get("/healthz").status_code == 200


def test_no_hidden_request_was_ever_served(shared):
    """Runs after the table above, on the same gateway."""
    assert shared.client().get("/readyz").status_code == 200
    assert not [line for line in shared.requests_logged() if line.get("path") == "/canary"]
    names = {app["name"] for app in shared.admin.get("/admin/tokens").json()["tokens"]}
    assert names <= {"shared-app"}


CODES = {
    "length with a plus": "bad_request", "no Host": "bad_request", "version 2.0": None,
    "a target over 8 KiB": "uri_too_long", "101 header fields": "headers_too_large",
    "a head over 16 KiB": "headers_too_large",
}


@pytest.mark.parametrize("name", CODES)
def test_a_refusal_has_its_stable_code(shared, name):
    with Wire(shared) as wire:
        answer = wire.ask(REFUSED[name][0].replace(b"@ADMIN@", shared.admin_token.encode()))
    code = CODES[name] or {400: "bad_request", 505: "http_version_not_supported"}[answer.status]
    assert_error(answer, answer.status, code)


# Odd but harmless: whatever the answer, the next request is read where it begins.

HARMLESS = {
    "two equal lengths": (post(b"Content-Length: 2", b"Content-Length: 2", body=b"{}"), {400, 422}),
    "length with leading zeros": (post(b"Content-Length: 0002", body=b"{}"), {400, 422}),
    "coding in capitals": (post(b"Transfer-Encoding: CHUNKED", body=b"2\r\n{}\r\n0\r\n\r\n"),
                           {400, 422, 501}),
    "coding with blanks around": (post(b"Transfer-Encoding: \t chunked \t",
                                       body=b"2\r\n{}\r\n0\r\n\r\n"), {400, 422, 501}),
    "chunk size with leading zeros": (chunks(b"0000002\r\n{}\r\n0\r\n\r\n"), {400, 422}),
    "a leading empty line": (b"\r\n" + get(), {200, 400}),
    "a method in lower case": (get(line=b"get /healthz HTTP/1.1"), {400, 405, 501}),
    "an unknown method": (get(line=b"BREW /healthz HTTP/1.1"), {400, 405, 501}),
    "the whole server": (get(line=b"OPTIONS * HTTP/1.1"), {400, 404, 405}),
    "a tunnel": (get(line=b"CONNECT other.test:443 HTTP/1.1"), {400, 404, 405, 501}),
    "an absolute target": (get(line=b"GET http://x/healthz HTTP/1.1"), {200, 400, 404}),
    "an absolute target of another host": (get(line=b"GET http://other.test/healthz HTTP/1.1"),
                                        {200, 400, 404}),
    "a target without a slash": (get(line=b"GET healthz HTTP/1.1"), {400, 404}),
    "a fragment": (get(line=b"GET /healthz#x HTTP/1.1"), {200, 400, 404}),
    "high bytes in the target": (get(line=b"GET /\xff\xfe HTTP/1.1"), {400, 404}),
    "an encoded NUL": (get(line=b"GET /admin/tokens/%00 HTTP/1.1"), {400, 404, 405}),
    "a broken escape": (get(line=b"GET /%zz HTTP/1.1"), {400, 404}),
    "a climb out of the root": (get(line=b"GET /../../etc/passwd HTTP/1.1"), {400, 404}),
    "an encoded climb": (get(line=b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1"), {400, 404}),
    "an upgrade to HTTP/2": (get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c",
                                 b"HTTP2-Settings: AAMAAABkAAQAAP__"), {200, 400}),
    "an upgrade to a websocket": (get(b"Connection: Upgrade", b"Upgrade: websocket"), {200, 400}),
    "100 header fields": (get(*[b"X-%d: a" % i for i in range(99)]), {200}),
    "a head of almost 16 KiB": (get(b"X-A: " + b"a" * 16000), {200}),
    "a target of almost 8 KiB": (get(line=b"GET /" + b"a" * 8000 + b" HTTP/1.1"), {404}),
    "high bytes in a value": (get(b"X-A: \xff\xfe"), {200, 400}),
    "an empty value": (get(b"X-A:"), {200}),
    "no blank after the colon": (get(b"X-A:b"), {200}),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_an_odd_shape_leaves_the_connection_in_step_or_ends_it(shared, name):
    shape, statuses = HARMLESS[name]
    with Wire(shared) as wire:
        wire.send(shape.replace(b"@ADMIN@", shared.admin_token.encode())
                  + request("GET /readyz", "X-Request-Id: in-step", "Connection: close"))
        answers = wire.read_to_close()
    assert answers and answers[0].status in statuses, answers
    if answers[0].status == 200 or len(answers) > 1:
        assert [answer.header("X-Request-Id") for answer in answers[1:]] == ["in-step"]
        assert answers[1].status == 200
    else:
        assert answers[0].header("Connection").lower() == "close"


def test_two_tokens_in_one_request_are_refused(shared, shared_app):
    for first, second in ((shared_app, shared.admin_token), (shared.admin_token, shared_app),
                          (shared.admin_token, "nonsense"), ("nonsense", shared.admin_token)):
        with Wire(shared) as wire:
            answer = wire.ask(request("GET /admin/tokens", bearer(first), bearer(second)))
            assert answer.status in (400, 401), answer.body


def test_a_caller_that_hangs_up_anywhere_does_no_harm(shared):
    shape = post(b"Content-Length: 12", body=b'{"name":"x"}').replace(
        b"@ADMIN@", shared.admin_token.encode())
    for cut in range(1, len(shape) - 1, 3):
        with Wire(shared) as wire:
            wire.send(shape[:cut])
    assert shared.client().get("/healthz").status_code == 200
    assert "x" not in [app["name"] for app in shared.admin.get("/admin/tokens").json()["tokens"]]


def test_noise_never_brings_it_down(shared):
    for _ in range(200):
        with Wire(shared) as wire:
            wire.send(os.urandom(300) + b"\r\n\r\n")
            answers = wire.read_to_close()
            assert len(answers) <= 1
    assert shared.client().get("/healthz").status_code == 200


@pytest.mark.timeout(180)
def test_a_slow_head_costs_its_connection_after_ten_seconds(gateway):
    ended = {}

    def hold(name, first, drip):
        with Wire(gateway) as wire:
            began = time.monotonic()
            wire.send(first)
            wire.socket.settimeout(1)
            answers = []
            while time.monotonic() < began + LATEST_SECONDS + 1:
                try:
                    answers = wire.read_to_close()
                    break
                except TimeoutError:
                    wire.send(drip)
            ended[name] = (time.monotonic() - began, answers)

    half = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "
    cases = {"nothing": (b"", b""), "half a head": (half, b""), "a byte a second": (half, b"a")}
    threads = [threading.Thread(target=hold, args=(name, *case)) for name, case in cases.items()]
    with Wire(gateway) as idle:
        assert idle.ask(GET_HEALTH).status == 200
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert idle.ask(GET_HEALTH).status == 200, "a connection may wait between requests"
    for name, (seconds, answers) in ended.items():
        assert HEAD_SECONDS_MAX - 1 < seconds < LATEST_SECONDS, name
        if name != "nothing" or answers:
            assert [answer.status for answer in answers] == [408], name
            assert_error(answers[0], 408, "request_timeout")
