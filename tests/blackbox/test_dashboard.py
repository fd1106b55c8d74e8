"""The dashboard's page and files: what a browser gets, what others get, and under which headers."""
import gzip
import re

import pytest

from answers import assert_error
from gateway import wait_until
from wire import Wire, bearer, is_draining, request

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Encoding": "identity"}
POLICY = {
    "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' blob: data:",
    "font-src": "'self'", "connect-src": "'self'", "manifest-src": "'self'", "base-uri": "'none'",
    "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'",
    "trusted-types": "'none'"}
HEADERS = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
           "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}


def page_of(gateway, **headers):
    return gateway.client().get("/", headers=BROWSER | headers)


def files_of(gateway):
    return re.findall(r'(?:href|src)="([^"]+)"', page_of(gateway).text)


def test_a_browser_gets_the_page_and_others_get_links(shared):
    page = page_of(shared)
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.text.lower().startswith("<!doctype html>")
    for accept in ("*/*", "application/json", "text/html;q=0", ""):
        answer = shared.client().get("/", headers={"Accept": accept})
        assert answer.status_code == 200, accept
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Vary"] == "Accept"
        assert answer.json()["name"] == "clawdforge"
        assert answer.json()["version"] == shared.client().get("/healthz").json()["version"]
        for link in answer.json()["links"].values():
            assert shared.admin.get(f"/{link}").status_code == 200, link


def test_the_page_names_its_files_relatively_and_all_are_there(shared):
    files = files_of(shared)
    assert len(files) == 3, "script, style, icon: four requests with the page"
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for name in files:
        assert re.fullmatch(r"ui/[a-z]+-[A-Z2-7]{16}\.[a-z]+", name), name
        answer = shared.client().get(f"/{name}")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == types[name.rpartition(".")[2]]
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_every_answer_of_the_page_has_its_policy_and_only_that(shared):
    for path in ["/"] + [f"/{name}" for name in files_of(shared)]:
        for headers in (BROWSER, BROWSER | {"If-None-Match": "*"}):
            answer = shared.client().get(path, headers=headers)
            policies = answer.headers.get_list("Content-Security-Policy")
            assert len(policies) == 1, path
            assert dict(part.strip().split(" ", 1) for part in policies[0].split(";")) == POLICY
            assert {name: answer.headers.get_list(name) for name in HEADERS} == {
                name: [value] for name, value in HEADERS.items()}
            assert "camera=()" in answer.headers["Permissions-Policy"]
            assert len(answer.headers.get_list("Cache-Control")) == 1
            assert "Set-Cookie" not in answer.headers


def test_the_page_has_no_inline_script_or_style(shared):
    page = page_of(shared).text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)


def test_both_forms_are_the_same_and_have_their_own_tags(shared):
    for path in ["/"] + [f"/{name}" for name in files_of(shared)]:
        plain = shared.client().get(path, headers=BROWSER)
        assert "Content-Encoding" not in plain.headers
        with Wire(shared) as wire:
            packed = wire.ask(request(f"GET {path}", "Accept: text/html", "Accept-Encoding: gzip, br"))
        assert packed.header("Content-Encoding") == "gzip"
        assert gzip.decompress(packed.body) == plain.content
        assert len(packed.body) == int(packed.header("Content-Length")) < len(plain.content)
        assert packed.header("ETag") != plain.headers["ETag"]
        assert "Accept-Encoding" in plain.headers["Vary"]


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_what_the_browser_has_is_not_sent_again(shared, coding):
    for path in ["/"] + [f"/{name}" for name in files_of(shared)]:
        headers = BROWSER | {"Accept-Encoding": coding}
        tag = shared.client().get(path, headers=headers).headers["ETag"]
        assert re.fullmatch(r'"[A-Z2-7]{16}(-gzip)?"', tag)
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            answer = shared.client().get(path, headers=headers | {"If-None-Match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["ETag"] == tag
            assert "Content-Length" not in answer.headers
        for other in ('"other"', tag.strip('"'), tag[:-1], ""):
            assert shared.client().get(path, headers=headers | {"If-None-Match": other}).status_code == 200


def test_head_says_what_get_would(shared):
    for path in ["/"] + [f"/{name}" for name in files_of(shared)]:
        got = shared.client().get(path, headers=BROWSER)
        head = shared.client().head(path, headers=BROWSER)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("Content-Length", "Content-Type", "ETag", "Cache-Control"):
            assert head.headers[name] == got.headers[name]


@pytest.mark.parametrize("name", [
    "index.html", "main.js", "nothing", "..%2Findex.html", "%2e%2e", "main-AAAAAAAAAAAAAAAA.js", "x" * 2000])
def test_what_is_not_a_file_of_the_page_is_404(shared, name):
    answer = shared.client().get(f"/ui/{name}", headers=BROWSER)
    assert_error(answer, 404, "path_not_found")
    assert answer.headers["Content-Type"] == "application/json"


def test_a_page_of_another_name_cannot_read_it(shared):
    for path in ("/", "/ui/x"):
        with Wire(shared) as wire:
            answer = wire.ask(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: evil.example\r\nAccept: text/html\r\n\r\n")
        assert_error(answer, 421, "host_not_allowed")


def test_a_draining_gateway_still_shows_it(gateway):
    """So that a page that is opened just then can say what happens."""
    busy, idle = Wire(gateway), Wire(gateway)
    busy.send(request("POST /admin/tokens", bearer(gateway.admin_token), "Content-Length: 15") + b"{")
    idle.send(b"GET / HTTP/1.1\r\n")
    # One io thread: when these are answered, it has seen the halves before them.
    assert [gateway.client().get("/healthz").status_code for _ in range(3)] == [200] * 3
    gateway.process.terminate()
    wait_until(lambda: is_draining(gateway), "it drains")
    answer = idle.ask(b"Host: localhost\r\nAccept: text/html\r\n\r\n")
    assert (answer.status, answer.header("Content-Type")) == (200, "text/html; charset=utf-8")
    busy.socket.close()
    assert gateway.wait() == 0
