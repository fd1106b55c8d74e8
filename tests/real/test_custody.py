"""The real command line with a login of its own kind, whose endpoint is a stand-in on the real names.

Nothing redirects the program but the names of the hosts: so these tests run in a network and a mount
namespace of their own, with an /etc/hosts in which the hosts are loopback, and an authority of their own for TLS.
The first test starts the others in there.
"""
import base64
import concurrent.futures
import http.client
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading

import pytest

from conftest import CLAUDE, RealGateway
from gateway import Gateway, wait_until
from logins import TokenService, tokens_in
from model_api import ModelApi, scripted, tool

INSIDE = "CLAWDFORGE_TEST_INSIDE"
HOSTS = ("api.anthropic.com", "platform.claude.com", "console.anthropic.com", "claude.ai",
         "mcp-proxy.anthropic.com", "statsig.anthropic.com")
SOON = 303
KEEPER_SECONDS_MAX = 180  # it may take 120 s, and is then tried again

inside = pytest.mark.skipif(INSIDE not in os.environ, reason="started by test_in_a_world_of_their_own")


@pytest.mark.skipif(INSIDE in os.environ, reason="it starts the others")
@pytest.mark.timeout(600)
def test_in_a_world_of_their_own(tmp_path):
    if os.geteuid() != 0 or shutil.which("openssl") is None:
        pytest.skip("only root can give the hosts other addresses, and openssl makes the authority")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost " + " ".join(HOSTS) + "\n")
    script = (f"ip link set lo up && mount --bind '{hosts}' /etc/hosts && exec \"$@\"")
    done = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-ec", script, "sh", sys.executable, "-m", "pytest", "-q", "-rA",
         "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tmp_path}/inside", __file__],
        env={**os.environ, INSIDE: "1"}, capture_output=True, text=True, timeout=580)
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]


def make_authority(place):
    """A certificate for all hosts, and the authority that has signed it."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=place)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
            "-out", "ca.pem", "-days", "2", "-subj", "/CN=stand-in authority")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "host.key", "-out",
            "host.csr", "-subj", "/CN=" + HOSTS[0])
    (place / "names").write_text("subjectAltName=" + ",".join("DNS:" + host for host in HOSTS))
    openssl("x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            "host.pem", "-days", "2", "-extfile", "names")
    return place / "ca.pem", place / "host.pem", place / "host.key"


class World:
    """The hosts of the maker: tokens by a TokenService, messages by the model's stand-in."""

    def __init__(self, place, model):
        self.tokens = TokenService()
        self.model = model
        self.asked = []  # host and path of each request
        self.authority, certificate, key = make_authority(place)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), self.handler())
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.tokens.close()

    def renew(self, body):
        fields = json.loads(body)
        status, answer = self.tokens.exchange(fields["refresh_token"])
        if status == 200:
            answer = {"token_type": "Bearer", "scope": "user:inference user:profile", **answer}
        return status, json.dumps(answer).encode()

    def ask_model(self, method, path, headers, body):
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens.check(token)[0] != 200:
            return 401, {"Content-Type": "application/json"}, json.dumps(
                {"type": "error", "error": {"type": "authentication_error", "message": "Invalid token"}}).encode()
        connection = http.client.HTTPConnection(self.model.url.removeprefix("http://"), timeout=60)
        passed = {name: value for name, value in headers.items()
                  if name.lower() not in ("host", "authorization", "accept-encoding", "connection")}
        connection.request(method, path, body, {**passed, "x-api-key": "stand-in"})
        answer = connection.getresponse()
        return answer.status, {"Content-Type": answer.headers["Content-Type"]}, answer.read()

    def handler(world):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                world.asked.append((self.headers["Host"], self.path))
                if self.path.startswith("/v1/oauth/token"):
                    status, answer = world.renew(body)
                    return self.answer(status, {"Content-Type": "application/json"}, answer)
                if self.path.startswith("/v1/messages"):
                    return self.answer(*world.ask_model("POST", self.path, self.headers, body))
                self.answer(404, {"Content-Type": "application/json"}, b"{}")

            def do_GET(self):
                world.asked.append((self.headers["Host"], self.path))
                self.answer(404, {"Content-Type": "application/json"}, b"{}")

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        return Handler


@pytest.fixture
def world(tmp_path):
    model = ModelApi(tmp_path).start()
    (tmp_path / "tls").mkdir()
    made = World(tmp_path / "tls", model)
    yield made
    made.close()
    model.stop()


@pytest.fixture
def new_kept(world, tmp_path):
    made = []

    def make(seconds, place="kept", **env):
        gateway = Gateway(tmp_path / "house", env={
            "CLAWDFORGE_CLAUDE_BIN": str(CLAUDE), "NODE_EXTRA_CA_CERTS": str(world.authority),
            "CLAWDFORGE_MAX_CONCURRENT_RUNS": "20", **env})
        made.append(gateway)
        directory = gateway.data_dir / "login" / "claude" if place == "kept" else gateway.root / ".claude"
        world.tokens.log_in(directory, seconds, subscriptionType="max",
                            scopes=["user:inference", "user:profile"])
        gateway.login_dir = directory
        return RealGateway(gateway.start(), world.model)

    yield make
    for gateway in made:
        gateway.finish()


def state(house):
    return house.gateway.client().get("/healthz").json()["claude_login"]["state"]


@inside
def test_an_expired_login_is_renewed_by_the_keeper_alone(new_kept, world):
    house = new_kept(-60)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: house.run(f"hello {number}"), range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4, answers[0].text
    assert (world.tokens.refreshes, world.tokens.reuses) == (1, 0)
    assert tokens_in(house.gateway.login_dir)["accessToken"] == world.tokens.access


@inside
def test_a_session_takes_up_what_was_renewed_in_its_life(new_kept, world):
    """The old token is refused; the agent reads the new one by itself."""
    house = new_kept(SOON)
    talk = house.talk(agent="claude")
    talk.say("my fruit is a plum")
    try:
        wait_until(lambda: world.tokens.refreshes >= 1, "the keeper renews it", KEEPER_SECONDS_MAX)
    except AssertionError as late:
        raise AssertionError(f"{late}: {state(house)}\n{house.gateway.stderr()[-4000:]}") from None
    wait_until(lambda: tokens_in(house.gateway.login_dir)["accessToken"] == world.tokens.access, "it is saved")
    with world.tokens.lock:
        world.tokens.old.clear()
    talk.say("which fruit?")
    assert (world.tokens.refreshes, world.tokens.reuses) == (1, 0)
    talk.close()


@inside
def test_the_login_of_the_owner_is_used_where_it_lies(new_kept, world):
    house = new_kept(-60, place="own")
    projects = house.gateway.root / ".claude" / "projects" / "-private"
    projects.mkdir(parents=True)
    (projects / "talk.jsonl").write_text("the owner's own words")
    # Claude itself asks before it touches this directory, where it sees that a command does.
    plain = f"cat {projects}/talk.jsonl; touch {house.gateway.login_dir}/planted; echo ran-$((40 + 2))"
    command = f"echo {base64.b64encode(plain.encode()).decode()} | base64 -d | sh"
    answer = house.run(scripted("look", tool("Bash", command=command, description="look"), {"text": "done"}),
                       permission_mode="approve_all")
    assert answer.status_code == 200, answer.text
    sent = world.model.sent_text()
    assert "ran-42" in sent, "the command was run"
    assert "the owner's own words" not in sent
    assert not (house.gateway.login_dir / "planted").exists()
    assert (world.tokens.refreshes, world.tokens.reuses) == (1, 0)


@inside
def test_the_owners_connectors_are_never_asked_for(new_kept, world):
    """Row 24."""
    house = new_kept(8 * 3600)
    assert house.run("hello").status_code == 200
    talk = house.talk(agent="claude")
    talk.say("hello")
    talk.close()
    assert not [ask for ask in world.asked if "mcp" in ask[0] or "mcp_servers" in ask[1]]
