"""A real browser reads a whole turn, although its connection is cut again and again."""
import http.server
import json
import pathlib
import queue
import shutil
import socket
import subprocess
import threading
import urllib.parse

import pytest

from gateway import wait_until
from sessions import Talker, journal, session_gateway

PAGE = pathlib.Path(__file__).with_name("stream_page.html")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EVENTS = 3000
CUTS = 4
CUT_BYTES = 100_000  # of a stream, then it breaks
RESULT_SECONDS_MAX = 120


class PageProxy(http.server.ThreadingHTTPServer):
    """A proxy in front of the gateway, in one origin with the page: serves the page, passes all
    else on, and breaks the first streams in the middle of an event."""

    daemon_threads = True

    def __init__(self, gateway, token):
        super().__init__(("127.0.0.1", 0), Visit)
        self.gateway = gateway
        self.token = token
        self.results = queue.Queue()
        self.cuts_left = CUTS
        self.last_ids = []  # as the browser has sent them
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Visit(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/page.html":
            return self.give(PAGE.read_bytes(), "text/html")
        return self.pass_on()

    def do_POST(self):
        if self.path == "/result":
            self.server.results.put(json.loads(self.body()))
            return self.give(b"{}", "application/json")
        return self.pass_on()

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def give(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def pass_on(self):
        """One request, and its answer byte for byte until it ends."""
        self.close_connection = True
        path = self.path.removeprefix("/with-token")
        headers = {name: self.headers[name] for name in (
            "Accept", "Authorization", "Content-Type", "Last-Event-ID") if self.headers[name]}
        if path != self.path:
            headers["Authorization"] = f"Bearer {self.server.token}"
        if "Last-Event-ID" in headers:
            self.server.last_ids.append(int(headers["Last-Event-ID"]))
        body = self.body()
        headers.update({"Host": "gateway.test", "Content-Length": len(body), "Connection": "close"})
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        address = (self.server.gateway.host, self.server.gateway.port)
        with socket.create_connection(address) as gateway:
            gateway.sendall(f"{self.command} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            self.relay(gateway)

    def relay(self, gateway):
        passed = 0
        while piece := gateway.recv(16_384):
            passed += len(piece)
            if passed > CUT_BYTES and self.server.cuts_left > 0:
                self.server.cuts_left -= 1
                self.wfile.write(piece[:len(piece) // 2])
                return
            self.wfile.write(piece)


@pytest.fixture(scope="session")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("there is no Chromium: scripts/install-packages browser installs it")
    return found


def visit(browser, place, url):
    """Opens the page without a window; it must be closed again."""
    with open(place / "browser.log", "wb") as log:
        return subprocess.Popen(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             f"--user-data-dir={place / 'profile'}", url],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={"HOME": str(place), "PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("how", ["fetch", "EventSource"])
def test_a_browser_gets_the_whole_turn_across_broken_connections(browser, tmp_path, how):
    with session_gateway(tmp_path) as gateway:
        app = Talker(gateway)
        session = app.session()
        proxy = PageProxy(gateway, app.token)
        prompt = json.dumps([{"count": EVENTS}])
        asked = {"how": how, "session": session.id, "token": app.token, "prompt": prompt}
        url = f"{proxy.url}/page.html#{urllib.parse.quote(json.dumps(asked))}"
        process = visit(browser, tmp_path, url)
        try:
            if how == "EventSource":  # which cannot ask for a turn
                session.ask(prompt)
            result = proxy.results.get(timeout=RESULT_SECONDS_MAX)
        finally:
            process.terminate()
            process.wait(timeout=30)
            proxy.shutdown()
            proxy.server_close()
        assert result["error"] is None
        kept = journal(gateway, session)
        assert [(event["id"], event["event"]) for event in kept] == [
            (event["id"], event["event"]) for event in result["heard"]]
        assert [event["data"] for event in kept] == [
            json.loads(event["data"]) for event in result["heard"]]
        assert len(kept) == EVENTS + 3 and (kept[0]["event"], kept[-1]["event"]) == ("turn", "done")
        assert result["connections"] == CUTS + 1
        assert len(proxy.last_ids) == CUTS and proxy.last_ids == sorted(proxy.last_ids)
        wait_until(lambda: not session.state()["busy"], "the turn is over")
