"""The door itself: framing, connections, methods, bodies, the order of the checks."""
import json
import re
import socket

import pytest

from answers import assert_error
from gateway import SANITIZED, wait_until
from wire import GET_HEALTH, Wire, bearer, request, with_body

WRONG_TOKEN = "cf_" + "A" * 43


@pytest.fixture(scope="module")
def admin(shared):
    return bearer(shared.admin_token)


def mint_bytes(admin, name, *headers):
    return with_body("POST /admin/tokens", json.dumps({"name": name}).encode(), admin, *headers)


# Connections

def test_a_connection_serves_many_requests(shared):
    with Wire(shared) as wire:
        for _ in range(20):
            answer = wire.ask(GET_HEALTH)
            assert (answer.version, answer.status) == ("HTTP/1.1", 200)
            assert (answer.header("Connection") or "keep-alive").lower() == "keep-alive"


def test_connection_close_is_obeyed(shared):
    with Wire(shared) as wire:
        answer = wire.ask(request("GET /healthz", "Connection: close"))
        assert answer.status == 200
        assert answer.header("Connection").lower() == "close"
        assert wire.read() is None


def test_pipelined_requests_are_answered_in_order(shared, admin):
    with Wire(shared) as wire:
        wire.send(request("GET /healthz", "X-Request-Id: one")
                  + mint_bytes(admin, "piped", "X-Request-Id: two")
                  + request("GET /nowhere", "X-Request-Id: three")
                  + request("GET /readyz", "X-Request-Id: four"))
        answers = [wire.read() for _ in range(4)]
    assert [a.status for a in answers] == [200, 200, 404, 200]
    assert [a.header("X-Request-Id") for a in answers] == ["one", "two", "three", "four"]


def test_a_long_pipeline_is_answered_completely(shared):
    with Wire(shared) as wire:
        wire.send(GET_HEALTH * 500)
        assert [wire.read().status for _ in range(500)] == [200] * 500


def test_a_reader_that_does_not_read_is_held_back(gateway):
    piece = request("GET /openapi.json") * 1000
    with Wire(gateway) as wire:
        wire.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            for _ in range(64 * 1024 * 1024 // len(piece)):
                wire.socket.sendall(piece)
        assert gateway.client().get("/healthz").status_code == 200
        status = (f"/proc/{gateway.process.pid}/status")
        resident_kb = int(re.search(r"VmRSS:\s+(\d+) kB", open(status).read()).group(1))
        assert SANITIZED or resident_kb < 48 * 1024


def test_a_request_may_arrive_byte_by_byte(shared):
    with Wire(shared) as wire:
        wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request("GET /healthz"):
            wire.send(bytes([byte]))
        assert wire.read().status == 200


def test_end_of_input_after_a_request_still_gets_the_answer(shared):
    with Wire(shared) as wire:
        wire.send(GET_HEALTH)
        wire.socket.shutdown(socket.SHUT_WR)
        assert [a.status for a in wire.read_to_close()] == [200]


def test_http_1_0_is_served_and_closed(shared):
    for extra in (b"", b"Connection: keep-alive\r\n"):
        with Wire(shared) as wire:
            wire.send(b"GET /healthz HTTP/1.0\r\n" + extra + b"\r\n")
            answers = wire.read_to_close()
        assert [a.status for a in answers] == [200]
        assert answers[0].header("Connection").lower() == "close"
        assert answers[0].header("Transfer-Encoding") is None


def test_connections_over_the_limit_get_503(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_MAX_CONNECTIONS": "8"})
    held = [Wire(gateway) for _ in range(8)]
    assert [wire.ask(GET_HEALTH).status for wire in held] == [200] * 8
    with Wire(gateway) as one_more:
        one_more.send(GET_HEALTH)
        answers = one_more.read_to_close()
    assert len(answers) == 1
    assert_error(answers[0], 503, "too_many_connections")
    assert answers[0].header("Connection").lower() == "close"
    held.pop().socket.close()

    def has_room():
        with Wire(gateway) as wire:
            answer = wire.ask(GET_HEALTH)
            return answer is not None and answer.status == 200
    wait_until(has_room, "the place of a closed connection is free again")
    assert [wire.ask(GET_HEALTH).status for wire in held] == [200] * 7
    for wire in held:
        wire.socket.close()


# Methods and paths

@pytest.mark.parametrize("path", [
    "/nowhere", "/ui", "/ui/", "/ui/a/b", "/docs/a/b", "/healthz/", "//healthz", "/Healthz", "/healthz/x", "/admin", "/admin/tokens/",
    "/admin/tokens/x/y", "/admin/tokens/x/rotate/", "/whoami/", "/healthz%2F", "/healthz;x",
    "/./healthz", "/admin/../healthz", "/run/x/y"])
def test_an_unknown_path_is_404_whatever_the_method_and_token(shared, path):
    for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS"):
        with Wire(shared) as wire:
            answer = wire.ask(request(f"{method} {path}"), to_head=method == "HEAD")
            assert answer.status == 404, method
            if method != "HEAD":
                assert_error(answer, 404, "path_not_found")
            assert answer.header("Location") is None
            assert wire.ask(GET_HEALTH).status == 200


@pytest.mark.parametrize("path, allowed", [
    ("/", {"GET", "HEAD"}), ("/ui/x", {"GET", "HEAD"}), ("/docs", {"GET", "HEAD"}), ("/docs/", {"GET", "HEAD"}), ("/healthz", {"GET", "HEAD"}), ("/readyz", {"GET", "HEAD"}), ("/metrics", {"GET", "HEAD"}),
    ("/openapi.json", {"GET", "HEAD"}), ("/whoami", {"GET", "HEAD"}),
    ("/admin/tokens", {"GET", "HEAD", "POST"}), ("/admin/tokens/x", {"DELETE", "PATCH"}),
    ("/admin/tokens/x/rotate", {"POST"})])
def test_a_wrong_method_is_405_with_allow_before_any_token_is_asked_for(shared, path, allowed):
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - allowed:
        with Wire(shared) as wire:
            answer = wire.ask(request(f"{method} {path}"))
            assert_error(answer, 405, "method_not_allowed")
            assert set(answer.header("Allow").replace(" ", "").split(",")) == allowed
            assert wire.ask(GET_HEALTH).status == 200


def test_a_query_does_not_change_the_path(shared):
    client = shared.client()
    assert client.get("/healthz?x=1&y=%00").status_code == 200
    assert client.get("/nowhere?/healthz").status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/whoami",
                                  "/admin/tokens"])
def test_head_has_the_headers_of_get_and_no_body(shared, admin, path):
    with Wire(shared) as wire:
        got = wire.ask(request(f"GET {path}", admin, "X-Request-Id: same"))
        head = wire.ask(request(f"HEAD {path}", admin, "X-Request-Id: same"), to_head=True)
        assert wire.ask(GET_HEALTH).status == 200, "a body would be in the way here"
    without_date = [[h for h in a.headers if h[0].lower() != "date"] for a in (got, head)]
    assert (head.status, without_date[1]) == (got.status, without_date[0])
    assert head.header("Content-Length") == str(len(got.body))


def test_an_error_to_head_has_no_body_either(shared):
    with Wire(shared) as wire:
        answer = wire.ask(request("HEAD /whoami"), to_head=True)
        assert answer.status == 401
        assert int(answer.header("Content-Length")) > 0
        assert wire.ask(GET_HEALTH).status == 200


# Request ids

@pytest.mark.parametrize("wanted", ["a", "A.b_c-9", "x" * 128])
def test_a_sane_request_id_is_echoed_in_answer_body_and_log(shared, wanted):
    answer = shared.client().get("/nowhere", headers={"X-Request-Id": wanted})
    assert answer.headers["X-Request-Id"] == wanted
    assert answer.json()["request_id"] == wanted
    wait_until(lambda: [line for line in shared.requests_logged()
                        if line["request_id"] == wanted and line["status"] == 404],
               "the log line with the id")


@pytest.mark.parametrize("odd", [b"", b"x" * 129, b"a b", b"a\"b", b"\xc3\xa9", b"a/b", b"a\tb"])
def test_an_odd_request_id_is_replaced(shared, odd):
    with Wire(shared) as wire:
        answer = wire.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + odd + b"\r\n\r\n")
    assert answer.status == 200
    assert answer.header("X-Request-Id").encode("latin-1") != odd
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", answer.header("X-Request-Id"))


def test_every_answer_has_an_id_of_its_own(shared):
    client = shared.client()
    ids = {client.get("/healthz").headers["X-Request-Id"] for _ in range(50)}
    assert len(ids) == 50


def test_the_log_line_of_a_request_says_what_happened(shared):
    shared.client().get("/whoami", headers={"X-Request-Id": "for-the-log"})
    line = wait_until(lambda: [entry for entry in shared.requests_logged()
                               if entry["request_id"] == "for-the-log"], "the log line")[0]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/whoami", 401)
    assert 0 <= line["duration_ms"] < 60000


# The order of the checks

def test_path_comes_before_method_and_method_before_token(shared):
    client = shared.client(WRONG_TOKEN)
    assert_error(client.put("/nowhere"), 404, "path_not_found")
    assert_error(client.put("/admin/tokens"), 405, "method_not_allowed")
    assert_error(client.post("/admin/tokens", content=b"{"), 401, "unauthorized")


def test_the_kind_of_token_comes_before_the_body_and_the_body_before_the_object(shared, shared_app):
    client = shared.client(shared_app)
    assert_error(client.post("/admin/tokens", content=b"{"), 403, "wrong_token_kind")
    assert_error(client.delete("/admin/tokens/absent"), 403, "wrong_token_kind")
    assert_error(shared.admin.post("/admin/tokens", content=b"{"), 400, "bad_json")
    assert_error(shared.admin.delete("/admin/tokens/absent"), 404, "token_not_found")


def test_the_address_comes_before_everything(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32"})
    far = {"X-Forwarded-For": "198.51.100.1"}
    for client in (gateway.client(), gateway.admin):
        for method, path in (("GET", "/nowhere"), ("PUT", "/healthz"), ("GET", "/healthz"),
                             ("GET", "/metrics"), ("GET", "/whoami"), ("POST", "/admin/tokens")):
            assert_error(client.request(method, path, headers=far), 403, "address_not_allowed")


@pytest.mark.parametrize("value", [
    None, "", "Bearer", "Bearer ", "Bearer x", "Basic Zm9v", "Token cf_x", WRONG_TOKEN,
    "Bearer " + WRONG_TOKEN, "Bearer " + WRONG_TOKEN + " x", "Bearer cf_" + "A" * 5000])
def test_no_or_a_wrong_token_is_one_and_the_same_401(shared, value):
    headers = ["X-Request-Id: same"]
    with Wire(shared, source="127.0.0.9") as wire:
        without = wire.ask(request("GET /whoami", *headers))
        if value is not None:
            headers.append(f"Authorization: {value}")
        answer = wire.ask(request("GET /whoami", *headers))
    assert_error(answer, 401, "unauthorized")
    assert answer.header("WWW-Authenticate") == "Bearer"
    assert answer.body == without.body


def test_the_scheme_of_the_token_is_case_insensitive(shared, shared_app):
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = shared.client().get("/whoami", headers={"Authorization": f"{scheme} {shared_app}"})
        assert answer.status_code == 200


def test_a_caller_that_leaves_in_the_middle_of_its_body_is_logged(gateway):
    with Wire(gateway) as wire:
        go_on = wire.ask(request("POST /admin/tokens", bearer(gateway.admin_token),
                                 "Content-Length: 20", "Expect: 100-continue",
                                 "X-Request-Id: gone-early"), to_head=True)
        assert go_on.status == 100
    wait_until(lambda: [line for line in gateway.requests_logged()
                        if line["request_id"] == "gone-early" and line["status"] == 499],
               "the request is logged")


def test_a_failure_is_logged_with_its_path_also_where_requests_are_not(new_gateway):
    gateway = new_gateway(flags=["--log-level", "warn", "--max-connections", "1"])
    with Wire(gateway) as first, Wire(gateway) as second:
        assert first.ask(GET_HEALTH).status == 200
        assert second.ask(GET_HEALTH).status == 503
    wait_until(lambda: gateway.requests_logged(), "the failure is logged")
    assert [(line["method"], line["path"], line["status"])
            for line in gateway.requests_logged()] == [("GET", "/healthz", 503)]
