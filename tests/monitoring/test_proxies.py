"""The examples of contrib/ in front of a real gateway: streams, uploads, kept connections, the caller's address."""
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

from gateway import REPO, SECONDS_MAX, wait_until

NAME = "forge.example.com"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return unused.getsockname()[1]


def certificate(place):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(place / "key.pem"),
                    "-out", str(place / "cert.pem")], check=True, capture_output=True, timeout=SECONDS_MAX)


def nginx(place, gateway, port):
    """The example with the places of this test."""
    text = (REPO / "contrib/nginx/clawdforge.conf").read_text()
    for old, new in (("127.0.0.1:8800", f"127.0.0.1:{gateway.port}"), ("listen 443 ssl http2", f"listen 127.0.0.1:{port} ssl http2"),
                     ("/etc/ssl/forge.example.com.pem", str(place / "cert.pem")),
                     ("/etc/ssl/private/forge.example.com.key", str(place / "key.pem"))):
        assert old in text, f"the example does not have {old} any more"
        text = text.replace(old, new)
    temporary = "".join(f"{kind}_temp_path {place}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""  # so that its workers may use this directory
    (place / "nginx.conf").write_text(
        f"{user} pid {place}/pid; error_log {place}/error.log; daemon off; worker_processes 1;\nevents {{}}\n"
        f"http {{ access_log off;\n{temporary}{text}}}\n")
    return ["nginx", "-p", str(place), "-e", str(place / "error.log"), "-c", str(place / "nginx.conf")], {}


def caddy(place, gateway, port):
    text = (REPO / "contrib/caddy/Caddyfile").read_text()
    assert "127.0.0.1:8800" in text and re.search(rf"^{NAME} \{{$", text, re.M)
    text = text.replace("127.0.0.1:8800", f"127.0.0.1:{gateway.port}")
    text = re.sub(rf"^{NAME} \{{$", f"https://{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {place}/cert.pem {place}/key.pem", text, flags=re.M)
    (place / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    return (["caddy", "run", "--adapter", "caddyfile", "--config", str(place / "Caddyfile")],
            {"HOME": str(place), "XDG_DATA_HOME": str(place), "XDG_CONFIG_HOME": str(place)})


class Proxy:
    def __init__(self, command, environment, place, port):
        self.port, self.place = port, place
        self.log = open(place / "proxy.log", "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env={**os.environ, **environment})
        wait_until(self.is_up, "the proxy listens")

    def is_up(self):
        assert self.process.poll() is None, (self.place / "proxy.log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def curl(self, path, *arguments):
        done = subprocess.run(
            ["curl", "-sS", "--max-time", str(SECONDS_MAX), "--cacert", str(self.place / "cert.pem"), "--resolve",
             f"{NAME}:{self.port}:127.0.0.1", *arguments, f"https://{NAME}:{self.port}{path}"],
            capture_output=True, text=True, timeout=SECONDS_MAX + 5)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=SECONDS_MAX)
        self.log.close()


@pytest.fixture(params=[nginx, caddy], ids=lambda make: make.__name__)
def front(request, new_gateway, tmp_path):
    name = request.param.__name__
    if shutil.which(name) is None:
        assert name != "nginx", "nginx is not there: scripts/install-packages monitoring"
        pytest.skip("there is no caddy")
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32", "CLAWDFORGE_ALLOW_HOSTS": NAME})
    place = tmp_path / "proxy"
    place.mkdir()
    certificate(place)
    port = free_port()
    command, environment = request.param(place, gateway, port)
    proxy = Proxy(command, environment, place, port)
    proxy.gateway = gateway
    proxy.token = gateway.mint("app")["token"]
    yield proxy
    proxy.stop()


@pytest.mark.timeout(120)
def test_the_proxy_passes_on_what_apps_ask_for_and_nothing_of_the_owner(front):
    bearer = ("-H", f"Authorization: Bearer {front.token}")
    assert json.loads(front.curl("/healthz"))["ok"] is True
    assert json.loads(front.curl("/run", "--json", '{"prompt":"Hello","agent":"demo"}', *bearer))["result"] == "You said: Hello"
    for path in ("/admin/tokens", "/metrics"):
        status = front.curl(path, "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Authorization: Bearer {front.gateway.admin_token}")
        assert status == "404"


@pytest.mark.timeout(120)
def test_the_callers_address_is_its_own_whatever_it_says(front):
    token = front.gateway.mint("elsewhere", ip_cidrs=["10.1.2.0/24"])["token"]
    # The caller claims the allowed address; the proxy says where it really is.
    answer = front.curl("/whoami", "-H", f"Authorization: Bearer {token}", "-H", "X-Forwarded-For: 10.1.2.3")
    assert json.loads(answer)["code"] == "address_not_allowed"
    own = front.gateway.mint("here", ip_cidrs=["127.0.0.1/32"])["token"]
    assert json.loads(front.curl("/whoami", "-H", f"Authorization: Bearer {own}"))["name"] == "here"


@pytest.mark.timeout(120)
def test_an_upload_goes_through_as_it_comes(front, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(os.urandom(1 << 20) * 24)
    answer = front.curl("/files", "-F", f"file=@{large}", "-H", f"Authorization: Bearer {front.token}")
    assert json.loads(answer)["size"] == large.stat().st_size


@pytest.mark.timeout(120)
def test_events_are_not_gathered(front):
    """The first event is here while the agent still waits for an answer: nothing is kept back until the end."""
    session = json.loads(front.curl("/sessions", "--json", '{"agent":"demo","permission_mode":"ask"}', "-H",
                                    f"Authorization: Bearer {front.token}"))["session_id"]
    stream = subprocess.Popen(
        ["curl", "-sSN", "--max-time", "60", "--cacert", str(front.place / "cert.pem"), "--resolve",
         f"{NAME}:{front.port}:127.0.0.1", "--json", '{"prompt":"permission edit","stream":true}', "-H",
         f"Authorization: Bearer {front.token}", f"https://{NAME}:{front.port}/sessions/{session}/turn"],
        stdout=subprocess.PIPE, text=True)
    try:
        for line in stream.stdout:
            if line.startswith("event: permission"):
                break
        data = json.loads(stream.stdout.readline().partition(": ")[2])
        answer = front.curl(f"/sessions/{session}/permissions/{data['id']}", "--json", '{"decision":"allow"}', "-H",
                            f"Authorization: Bearer {front.token}")
        assert json.loads(answer) == {"ok": True}
        assert "event: done" in stream.stdout.read()
    finally:
        stream.kill()
        stream.wait()
        stream.stdout.close()


@pytest.mark.timeout(120)
def test_connections_to_the_gateway_are_kept(front):
    calls = 20
    for _ in range(calls):
        front.curl("/healthz")
    metrics = front.gateway.admin.get("/metrics").text
    open_now = int(re.search(r"^clawdforge_http_connections (\d+)", metrics, re.M)[1])
    # Each call was a connection to the proxy; if it closed its own each time, only this client's would be open.
    assert 1 < open_now < calls, metrics


def test_caddy_takes_its_example(tmp_path):
    if shutil.which("caddy") is None:
        pytest.skip("there is no caddy")
    done = subprocess.run(["caddy", "validate", "--adapter", "caddyfile", "--config", str(REPO / "contrib/caddy/Caddyfile")],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 0 and "Valid configuration" in done.stdout + done.stderr, done.stderr
