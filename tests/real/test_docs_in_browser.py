"""A real browser searches the documents, below a path of a proxy and under the policy that the gateway sends."""
import http.server
import re
import shutil
import subprocess
import threading
import urllib.request

import pytest

from gateway import Gateway

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PREFIX = "/some/where"


class BelowAPath(http.server.BaseHTTPRequestHandler):
    """Takes the path away that the gateway does not know of, and passes the rest on with all headers of the answer."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith(PREFIX + "/"):
            self.server.strays.append(self.path)
            return self.send_error(404)
        request = urllib.request.Request(self.server.gateway.url + self.path.removeprefix(PREFIX),
                                         headers={"Accept-Encoding": self.headers.get("Accept-Encoding", "")})
        try:
            answer = urllib.request.build_opener(AsItIs).open(request)
        except urllib.error.HTTPError as refused:
            answer = refused
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("connection", "date", "server"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read())


class AsItIs(urllib.request.HTTPRedirectHandler):
    """The browser follows, not the proxy."""

    def redirect_request(self, *_):
        return None


@pytest.fixture
def gateway(tmp_path):
    gateway = Gateway(tmp_path / "gateway").start()
    yield gateway
    gateway.finish()


@pytest.fixture
def proxy(gateway):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BelowAPath)
    server.gateway, server.strays = gateway, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def shown(proxy, tmp_path):
    """What a browser shows at a path when its scripts have ended, and what it complains of."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("there is no Chromium: scripts/install-packages browser installs it")

    def show(path):
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}",
             "--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom",
             f"http://127.0.0.1:{proxy.server_address[1]}{PREFIX}{path}"],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not complaints, "\n".join(complaints)
        assert not [path for path in proxy.strays if path != "/favicon.ico"], "a link left the path of the proxy"
        return done.stdout
    return show


def test_a_search_finds_the_section(shown):
    page = shown("/docs/?q=drain_grace_secs")
    found = re.findall(r'<a [^>]*role="option"[^>]*>', page)
    assert found and any("operations.html#" in link for link in found), found
    assert "<mark>drain_grace_secs</mark>" in page


def test_words_that_are_nowhere_are_said_as_text(shown):
    page = shown("/docs/reference.html?q=%3Cimg%20src%3Dx%3E%20nowhere-at-all")
    assert "Nothing has all of these words: &lt;img src=x&gt; nowhere-at-all" in page


def test_the_way_to_the_documents_stays_below_the_path(shown):
    assert "<title>clawdforge</title>" in shown("/docs")
