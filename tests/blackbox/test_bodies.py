"""Request bodies: JSON, types, sizes, chunks, Expect."""
import json

import pytest

from answers import assert_error
from wire import GET_HEALTH, Wire, bearer, request, with_body

WRONG_TOKEN = "cf_" + "A" * 43
BODY_BYTES_MAX = 65536


@pytest.fixture(scope="module")
def admin(shared):
    return bearer(shared.admin_token)


@pytest.fixture
def small(new_gateway):
    return new_gateway(env={"CLAWDFORGE_MAX_BODY_BYTES": str(BODY_BYTES_MAX)})


def mint_text(name, **fields):
    return json.dumps({"name": name, **fields}).encode()


def chunked(*pieces, extension=b"", trailer=b""):
    chunks = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
    return b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"


# JSON

@pytest.mark.parametrize("body", [
    b'{', b'nonsense', b'{"name":}', b'{"name":"x"} x', b"{'name':'x'}", b'{"name":"\xff"}',
    b'{"name":"a\x01b"}', b'\xef\xbb\xbf{"name":"x"}', b'{"name":"x",}', b'\x00', b'{"name":NaN}',
    b'{"name":"\\ud800"}', b'{"name":"x"}{"name":"y"}', b' '])
def test_what_is_not_json_is_400(shared, admin, body):
    with Wire(shared) as wire:
        answer = wire.ask(with_body("POST /admin/tokens", body, admin))
        # White space alone may count as an empty body, which lacks the name.
        if body == b" " and answer.status == 422:
            assert_error(answer, 422, "validation_failed")
        else:
            assert_error(answer, 400, "bad_json")
        assert wire.ask(GET_HEALTH).status == 200


@pytest.mark.parametrize("body", [b"[]", b"\"x\"", b"1", b"null", b"true"])
def test_what_is_not_an_object_is_refused(shared, body):
    answer = shared.admin.post("/admin/tokens", content=body)
    assert (answer.status_code, answer.json()["code"]) in ((400, "bad_json"),
                                                           (422, "validation_failed"))


def nested(depth):
    """An object of this depth, the object itself counted."""
    return b'{"name":"deep","x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_depth_is_limited_at_32(gateway):
    assert gateway.admin.post("/admin/tokens", content=nested(32)).status_code == 200
    assert_error(gateway.admin.post("/admin/tokens", content=nested(33)), 400, "bad_json")


@pytest.mark.parametrize("body", [
    b'{"name":"x","y":' + b"[" * 100000, b'{"a":' * 100000 + b"1" + b"}" * 100000])
def test_a_bottomless_body_is_refused_and_does_no_harm(shared, body):
    assert_error(shared.admin.post("/admin/tokens", content=body), 400, "bad_json")
    assert shared.client().get("/healthz").status_code == 200


def test_of_a_key_given_twice_the_last_one_counts(shared):
    answer = shared.admin.post("/admin/tokens", content=b'{"name":"first","name":"second-one"}')
    assert answer.json()["name"] == "second-one"


def test_unknown_fields_are_ignored_and_null_means_absent(shared):
    answer = shared.admin.post("/admin/tokens", json={
        "name": "with-nulls", "ip_cidrs": None, "event_format": None, "max_sessions": None,
        "max_runs": None, "colour": {"of": ["nothing"]}, "NAME": 3})
    assert answer.status_code == 200
    assert answer.json()["ip_cidrs"] == []


def test_an_empty_body_is_an_empty_object(shared):
    for client_call in (lambda: shared.admin.post("/admin/tokens"),
                        lambda: shared.admin.post("/admin/tokens", json={}),
                        lambda: shared.admin.post("/admin/tokens", json={"name": None})):
        body = assert_error(client_call(), 422, "validation_failed")
        assert [error["field"] for error in body["errors"]] == ["name"]


def test_an_empty_body_is_enough_where_nothing_is_required(gateway):
    first = gateway.mint("rotated")
    assert gateway.admin.post("/admin/tokens/rotated/rotate").json()["token"] != first["token"]
    assert gateway.admin.post("/admin/tokens/rotated/rotate", json={}).status_code == 200


# Types

@pytest.mark.parametrize("kind", [
    "text/plain", "multipart/form-data; boundary=x", "application/xml", "json", "application/jsonx",
    "application/x-www-form-urlencoded", "text/html, application/json"])
def test_another_type_of_body_is_415(shared, kind):
    answer = shared.admin.post("/admin/tokens", content=mint_text("other-type"),
                               headers={"Content-Type": kind})
    assert_error(answer, 415, "unsupported_content_type")


@pytest.mark.parametrize("number, kind", enumerate([
    None, "application/json", "application/json; charset=utf-8", "Application/JSON",
    "application/json;charset=UTF-8"]))
def test_json_and_no_type_at_all_are_taken(shared, number, kind):
    headers = {"Content-Type": kind} if kind else {}
    body = mint_text(f"type-{number}")
    answer = shared.admin.post("/admin/tokens", content=body, headers=headers)
    assert answer.status_code == 200, answer.text


# Sizes

def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_413(small):
    admin = small.admin
    body = mint_text("at-the-limit")
    body += b" " * (BODY_BYTES_MAX - len(body))
    assert admin.post("/admin/tokens", content=body).status_code == 200
    assert_error(admin.post("/admin/tokens", content=body + b" "), 413, "body_too_large")


def test_an_announced_huge_body_is_refused_before_it_comes(small):
    with Wire(small) as wire:
        answer = wire.ask(request("POST /admin/tokens", bearer(small.admin_token),
                                  "Content-Length: 1000000000000"))
        assert_error(answer, 413, "body_too_large")
        assert answer.header("Connection").lower() == "close"


def test_a_caller_that_sends_the_huge_body_anyway_still_reads_the_413(small):
    with Wire(small) as wire:
        answer = wire.ask(with_body("POST /admin/tokens", b"x" * (1 << 20),
                                    bearer(small.admin_token)))
        assert_error(answer, 413, "body_too_large")


def test_a_chunked_body_over_the_limit_is_413(small):
    with Wire(small) as wire:
        answer = wire.ask(request("POST /admin/tokens", bearer(small.admin_token),
                                  "Transfer-Encoding: chunked",
                                  body=chunked(*[b"x" * 1024] * (BODY_BYTES_MAX // 1024 + 1))))
        assert_error(answer, 413, "body_too_large")


def test_many_tiny_chunks_count_by_what_they_hold(small):
    body = mint_text("tiny-chunks") + b" " * 5000
    with Wire(small) as wire:
        pieces = [bytes([byte]) for byte in body]
        answer = wire.ask(request("POST /admin/tokens", bearer(small.admin_token),
                                  "Transfer-Encoding: chunked", body=chunked(*pieces)))
        assert answer.status == 200
        assert wire.ask(GET_HEALTH).status == 200


# Chunks

@pytest.mark.parametrize("number, extension, trailer", [
    (0, b"", b""), (1, b";a=b", b""), (2, b";a=\"b c\"", b""), (3, b"", b"X-Late: yes\r\n")])
def test_chunks_are_joined_and_the_next_request_is_served(shared, admin, number, extension,
                                                          trailer):
    text = mint_text(f"chunked-{number}")
    with Wire(shared) as wire:
        wire.send(request("POST /admin/tokens", admin, "Transfer-Encoding: chunked", body=chunked(
            text[:3], text[3:4], text[4:], extension=extension, trailer=trailer)) + GET_HEALTH)
        assert wire.read().json()["name"] == f"chunked-{number}"
        assert wire.read().status == 200


def test_a_trailer_cannot_bring_a_token(shared):
    with Wire(shared) as wire:
        trailer = f"Authorization: Bearer {shared.admin_token}\r\n".encode()
        answer = wire.ask(request("POST /admin/tokens", "Transfer-Encoding: chunked",
                                  body=chunked(mint_text("by-trailer"), trailer=trailer)))
        assert_error(answer, 401, "unauthorized")


# What a refused request leaves on the connection

def test_after_a_refusal_the_body_is_not_taken_for_a_request(shared, shared_app):
    hidden = request("GET /canary-in-a-body")
    for line, token in (("POST /nowhere", None), ("PUT /healthz", None),
                        ("POST /admin/tokens", None), ("POST /admin/tokens", shared_app)):
        headers = [bearer(token)] if token else []
        with Wire(shared) as wire:
            wire.send(with_body(line, hidden, *headers)
                      + request("GET /readyz", "X-Request-Id: end"))
            first, second = wire.read(), wire.read()
            assert first.status in (401, 403, 404, 405)
            assert (second.status, second.header("X-Request-Id")) == (200, "end")
    assert all(line.get("path") != "/canary-in-a-body" for line in shared.requests_logged())


def test_a_body_on_get_is_passed_over(shared):
    with Wire(shared) as wire:
        wire.send(with_body("GET /healthz", request("GET /canary-on-get"))
                  + request("GET /healthz", "Transfer-Encoding: chunked",
                            body=chunked(request("GET /canary-on-get")))
                  + request("GET /readyz", "X-Request-Id: end"))
        answers = [wire.read() for _ in range(3)]
        assert [a.status for a in answers] == [200, 200, 200]
        assert answers[2].header("X-Request-Id") == "end"


# Expect

def test_100_continue_comes_before_the_body(shared, admin):
    body = mint_text("expected")
    with Wire(shared) as wire:
        go_on = wire.ask(request("POST /admin/tokens", admin, f"Content-Length: {len(body)}",
                                 "Expect: 100-continue"))
        assert go_on.status == 100
        assert wire.ask(body).json()["name"] == "expected"
        assert wire.ask(GET_HEALTH).status == 200


def test_a_body_that_does_not_wait_for_100_is_taken_too(shared, admin):
    with Wire(shared) as wire:
        answer = wire.ask(with_body("POST /admin/tokens", mint_text("impatient"), admin,
                                    "Expect: 100-Continue"))
        if answer.status == 100:
            answer = wire.read()
        assert answer.status == 200


@pytest.mark.parametrize("line, token, extra, status, code", [
    ("POST /nowhere", None, "Content-Length: 9", 404, "path_not_found"),
    ("PUT /healthz", None, "Content-Length: 9", 405, "method_not_allowed"),
    ("POST /admin/tokens", None, "Content-Length: 9", 401, "unauthorized"),
    ("POST /admin/tokens", "app", "Content-Length: 9", 403, "wrong_token_kind"),
    ("POST /admin/tokens", "admin", "Content-Length: 99999999", 413, "body_too_large"),
    ("POST /admin/tokens", "admin", "Content-Length: 9\r\nContent-Type: text/plain", 415,
     "unsupported_content_type")])
def test_a_refused_request_gets_no_100(shared, shared_app, line, token, extra, status, code):
    tokens = {"app": shared_app, "admin": shared.admin_token}
    headers = [bearer(tokens[token])] if token else []
    with Wire(shared) as wire:
        answer = wire.ask(request(line, *headers, extra, "Expect: 100-continue"))
        assert_error(answer, status, code)


def test_another_expectation_is_417(shared, admin):
    with Wire(shared) as wire:
        assert_error(wire.ask(with_body("POST /admin/tokens", mint_text("never"), admin,
                                        "Expect: tea")), 417, "expectation_failed")


def test_http_1_0_never_gets_100(shared, admin):
    body = mint_text("old-and-expecting")
    with Wire(shared) as wire:
        wire.send(f"POST /admin/tokens HTTP/1.0\r\n{admin}\r\nExpect: 100-continue\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert [answer.status for answer in wire.read_to_close()] == [200]
