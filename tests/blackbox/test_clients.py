"""The clients of clients/, in Python and TypeScript, against a real gateway, and against the API's description."""
import base64
import fcntl
import hashlib
import hmac
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
import yaml

from gateway import REPO, SECONDS_MAX, clean_environment, wait_until
from sessions import session_options
from workspaces import repository, workspace

APPS = pathlib.Path(__file__).parent / "client_apps"
PYTHON = REPO / "clients/python/clawdforge.py"
TYPESCRIPT = REPO / "clients/typescript/clawdforge.ts"
# What no client has, and why. An entry that ends in a slash holds for all that is below it.
LEFT_OUT = {
    "/admin/": "the owner's: the command line `clawdforge` does it",
    "/ui/": "browsers read it",
    "/docs": "people read it",
    "/docs/": "people read it",
    "/metrics": "Prometheus reads it",
    "/openapi.json": "tools read it",
}


# The contract

def routes_of_the_api():
    description = yaml.safe_load((REPO / "docs/openapi.yaml").read_text())
    return {(method.upper(), path) for path, item in description["paths"].items()
            for method in item if method in ("get", "post", "put", "patch", "delete")}


def routes_of(source):
    return set(re.findall(r"""["'](GET|POST|PUT|PATCH|DELETE)["'],\s*["'](/[^"']*)["']""", source.read_text()))


def is_left_out(path):
    return path == "/" or any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in LEFT_OUT)


def fields_of(schema, schemas):
    """The properties of a schema, with those of all that it is made of."""
    if "$ref" in schema:
        return fields_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    fields = set(schema.get("properties", {}))
    for part in schema.get("allOf", []) + schema.get("oneOf", []):
        fields |= fields_of(part, schemas)
    return fields


def schemas_of_the_api():
    description = yaml.safe_load((REPO / "docs/openapi.yaml").read_text())
    schemas = description["components"]["schemas"]
    fields = {name: fields_of(schema, schemas) for name, schema in schemas.items()}
    fields["SessionFile"] = set(schemas["SessionFileList"]["properties"]["files"]["items"]["properties"])
    return fields


def python_types():
    text = PYTHON.read_text()
    types = {}
    for name, bases, body in re.findall(r"^class (\w+)\(([^)]*)\):\n((?:    \w+: .*\n)+)", text, re.M):
        inherited = set().union(*(types.get(base.strip(), set()) for base in bases.split(",")))
        types[name] = inherited | set(re.findall(r"^    (\w+):", body, re.M))
    return {name: fields for name, fields in types.items() if not name.startswith("_") and name != "Event"}


def typescript_types():
    text = TYPESCRIPT.read_text()
    types = {}
    for name, base, body in re.findall(r"^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}", text, re.M | re.S):
        types[name] = types.get(base, set()) | set(re.findall(r"^  (\w+)\??:", body, re.M))
    return {name: fields for name, fields in types.items() if name not in ("StreamEvent", "ClientOptions")}


@pytest.mark.parametrize("source", [PYTHON, TYPESCRIPT], ids=["python", "typescript"])
def test_every_route_is_in_the_client_or_left_out_for_a_reason(source):
    used, there = routes_of(source), routes_of_the_api()
    assert used, "no route was found in the source"
    assert used <= there, f"the API has no {sorted(used - there)}"
    missing = sorted(route for route in there - used if not is_left_out(route[1]))
    assert not missing, (f"{source.name} has no {missing}: add them, or name them in LEFT_OUT of this file, and in the "
                         "README of the client, with a reason")


def test_what_is_left_out_is_there_and_is_told():
    paths = [path for _, path in routes_of_the_api()]
    for entry in LEFT_OUT:
        assert any(path.startswith(entry) for path in paths), f"the API has no {entry} any more"
        for readme in (REPO / "clients/python/README.md", REPO / "clients/typescript/README.md"):
            assert f"`{entry}" in readme.read_text(), f"{readme} does not say that {entry} is left out"


@pytest.mark.parametrize("types", [python_types, typescript_types], ids=["python", "typescript"])
def test_every_field_of_the_types_is_in_the_schema_of_their_name(types):
    schemas = schemas_of_the_api()
    found = types()
    assert len(found) >= 12 and "input_tokens" in found["Usage"] and "answer" in found["ShownJob"], found
    for name, fields in found.items():
        assert name in schemas, f"the API has no schema {name}"
        assert fields <= schemas[name], f"{name} has no {sorted(fields - schemas[name])}"


def test_every_field_that_the_python_client_sends_is_in_the_schema_of_the_request():
    schemas = schemas_of_the_api()
    text = PYTHON.read_text()
    for call, schema in (("run", "RunRequest"), ("submit_job", "JobRequest"), ("create_session", "SessionRequest"),
                         ("turn", "TurnRequest"), ("stream", "TurnRequest"),
                         ("answer_permission", "PermissionAnswer")):
        body = re.search(rf"def {call}\(.*?_present\((.*?)\)", text, re.S)[1]
        sent = set(re.findall(r"(\w+)=", body))
        assert sent and sent <= schemas[schema], f"{schema} has no {sorted(sent - schemas[schema])}"


# Against a gateway

@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The TypeScript client as JavaScript; its types are checked on the way. Compiled once for all workers."""
    base = tmp_path_factory.getbasetemp()
    target = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "typescript"
    with open(f"{target}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "package.json").exists():
            done = subprocess.run(["tsc", "-p", str(TYPESCRIPT.parent), "--outDir", str(target)], text=True,
                                  capture_output=True, timeout=110)
            assert done.returncode == 0, done.stdout
            (target / "package.json").write_text('{"type":"module"}')
    return target / "clawdforge.js"


@pytest.fixture(params=["python", "typescript"])
def play(request, tmp_path):
    """Plays a scenario as an app would: in a process of its own, with a URL and a token."""
    if request.param == "python":
        command = [sys.executable, str(APPS / "scenarios.py")]
    else:
        command = ["node", str(APPS / "scenarios.mjs"), str(request.getfixturevalue("built"))]

    def start(url, token, name, settings=None, **more):
        env = clean_environment(tmp_path, {"CLAWDFORGE_URL": url, "CLAWDFORGE_TOKEN": token,
                                           "PYTHONDONTWRITEBYTECODE": "1", **more})
        return subprocess.Popen([*command, name, json.dumps(settings)], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(process):
        try:
            out, err = process.communicate(timeout=3 * SECONDS_MAX)
        finally:
            process.kill()
        assert process.returncode == 0, err
        return json.loads(out)

    def play(*arguments, **more):
        return finish(start(*arguments, **more))
    play.start, play.finish = start, finish
    return play


class CuttingProxy:
    """Passes connections on, and cuts off each of the first answers after so many bytes."""

    def __init__(self, target, cuts=()):
        self.target, self.cuts, self.count = target, list(cuts), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        try:
            gateway = socket.create_connection(self.target)
        except OSError:
            caller.close()
            return
        threading.Thread(target=self._copy, args=(caller, gateway, None), daemon=True).start()
        self._copy(gateway, caller, self._cut_of)

    def _cut_of(self, piece):
        """Only streams are cut."""
        if b"text/event-stream" not in piece or not self.cuts:
            return None
        self.count += 1
        return self.cuts.pop(0)

    def _copy(self, source, target, cut_of):
        left = None
        try:
            while piece := source.recv(65536):
                if cut_of is not None and left is None:
                    left = cut_of(piece)
                target.sendall(piece if left is None else piece[:left])
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        break
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self):
        self.listener.close()


@pytest.fixture
def proxies():
    made = []

    def make(*arguments):
        made.append(CuttingProxy(*arguments))
        return made[-1]
    yield make
    for proxy in made:
        proxy.close()


def test_what_a_client_sees_of_the_gateway_and_its_app(play, gateway):
    token = gateway.mint("app")["token"]
    said = play(gateway.url, token, "basics")
    assert said["ready"] is True and said["name"] == "app" and said["has_demo"] and said["asks"] == 0
    assert said["workspaces"] == []
    assert re.match(r"\d+\.\d+\.\d+", said["version"]) and said["steps"] == 3600


def test_a_run_with_a_key_is_done_once(play, gateway):
    said = play(gateway.url, gateway.mint("app")["token"], "runs")
    assert said == {"result": "You said: Hello", "is_same": True, "count": 1, "state": "succeeded",
                    "cancelled": False}


def test_refusals_have_their_code_and_when_to_come_back(play, gateway):
    token = gateway.mint("app", asks_per_minute=1)["token"]
    said = play(gateway.url, token, "refusals")
    assert said["token"] == {"status": 401, "code": "unauthorized", "retry_after": None, "has_id": True}
    assert (said["agent"]["status"], said["agent"]["code"]) == (422, "unknown_agent")
    assert (said["session"]["status"], said["session"]["code"]) == (404, "session_not_found")
    assert (said["rate"]["status"], said["rate"]["code"]) == (429, "rate_limited")
    assert 0 < said["rate"]["retry_after"] <= 60


def test_a_session_from_its_making_to_its_end(play, gateway):
    said = play(gateway.url, gateway.mint("app")["token"], "session")
    assert said["turn"] == 1 and "Remember the word heron." in said["text"]
    assert said["content"] == "Hello file" and said["decisions"] == [["allow", "app"]]
    assert said["failed"]["code"] == "agent_exited" and said["failed"]["status"] == 0
    assert said["meta"] == {"ticket": 7} and said["turns"] == said["closings"] == 4
    assert said["closed_again"] is False and said["listed"] is True
    assert (said["after"]["status"], said["after"]["code"]) == (410, "session_closed")


def test_a_session_in_a_worktree(play, new_gateway, tmp_path):
    repository(tmp_path / "repo")
    gateway = new_gateway(**session_options(tmp_path, more=workspace("tree", tmp_path / "repo", "worktree")))
    said = play(gateway.url, gateway.mint("app", workspaces=["tree"])["token"], "workspace")
    assert said["replaced"] == [False, True] and said["changed"] == ["notes.txt"]
    assert "+two" in said["diff"] and said["archive"] % 512 == 0 and said["archive"] > 0 and said["commit"] == 40


def test_a_turn_is_cancelled(play, gateway):
    assert play(gateway.url, gateway.mint("app")["token"], "cancelled") == {"cancelled": True, "reason": "cancelled"}


# Cut in the head, before the first event, within events, and again.
@pytest.mark.parametrize("cuts", [[30], [400], [700, 20, 900], [2500, 400, 400]], ids=str)
def test_a_stream_that_is_cut_goes_on_where_it_was(play, gateway, proxies, cuts):
    token = gateway.mint("app")["token"]
    client = gateway.client(token)
    session = client.post("/sessions", json={"agent": "demo"}).json()["session_id"]
    # Turns that this client did not read: none of their events may come.
    for prompt in ("first", "second"):
        client.post(f"/sessions/{session}/turn", json={"prompt": prompt})
    proxy = proxies((gateway.host, gateway.port), cuts)
    said = play(proxy.url, token, "resumed", {"session_id": session, "prompt": "slow 12"})
    told = [event for event in client.get(f"/sessions/{session}/events?limit=1000").json()["events"]
            if event["turn_index"] == 3]
    assert said["ids"] == [event["id"] for event in told] and said["last"] == "done"
    assert said["text"] == told[-1]["data"]["text"]
    assert proxy.count == len(cuts)
    assert client.get(f"/sessions/{session}").json()["turn_count"] == 3, "the prompt was sent twice"


def test_a_stream_outlives_its_gateway(play, gateway, proxies, tmp_path):
    token = gateway.mint("app")["token"]
    session = gateway.client(token).post("/sessions", json={"agent": "demo"}).json()["session_id"]
    proxy = proxies((gateway.host, gateway.port))
    marker = tmp_path / "marker"
    reader = play.start(proxy.url, token, "interrupted", {"session_id": session, "marker": str(marker)})
    wait_until(marker.exists, "the first event")
    gateway.kill()
    gateway.start()
    proxy.target = (gateway.host, gateway.port)
    said = play.finish(reader)
    assert said["failed"]["code"] == "interrupted" and said["is_one_apart"]


def test_jobs_are_handed_over_waited_for_and_cancelled(play, gateway):
    said = play(gateway.url, gateway.mint("app")["token"], "jobs")
    assert said == {"is_same": True, "state": "succeeded", "result": "You said: Hello", "meta": {"order": 7},
                    "states": ["succeeded"], "cancelled": True, "cancelled_again": False, "count": 2}


def test_lists_are_read_to_their_end(play, gateway):
    token = gateway.mint("app")["token"]
    client = gateway.client(token)
    for _ in range(103):  # a page has 100
        job = {"run": {"prompt": "x", "agent": "demo"}, "run_at": int(time.time()) + 3600}
        assert client.post("/jobs", json=job).status_code == 202
    assert play(gateway.url, token, "pages") == {"count": 103, "queued": 103}


def signed(body, secret, when=None, **changes):
    event_id, timestamp = "01a1", str(int(time.time() if when is None else when))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{event_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    headers = {"Webhook-Id": event_id, "Webhook-Timestamp": timestamp,
               "Webhook-Signature": "v1,AAAA v1," + base64.b64encode(mac).decode()}
    return {"secret": secret, "headers": {**headers, **changes}, "body": body}


def test_a_webhook_is_taken_only_if_it_is_signed_now(play):
    secret, body = "whsec_" + base64.b64encode(b"k" * 32).decode(), '{"type":"job.succeeded","data":{}}'
    other = "whsec_" + base64.b64encode(b"j" * 32).decode()
    for call, expected in (
            (signed(body, secret), {"type": "job.succeeded"}),
            ({**signed(body, secret), "body": body + " "}, {"refused": "the signature is wrong"}),
            ({**signed(body, other), "secret": secret}, {"refused": "the signature is wrong"}),
            (signed(body, secret, time.time() - 400), {"refused": "the call is too old"}),
            (signed(body, secret, **{"Webhook-Id": ""}), {"refused": "webhook-id or webhook-timestamp is missing"})):
        assert play("http://127.0.0.1:1", "x", "webhook", call) == expected


def test_a_gateway_that_is_not_there_is_said(play):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert play("http://127.0.0.1:1", "x", "absent", ABSENT_URL=f"http://127.0.0.1:{port}") == {"failed": True}


# The examples that use a client

def test_the_streaming_example_prints_the_answer(gateway, tmp_path):
    env = clean_environment(tmp_path, {"CLAWDFORGE_URL": gateway.url, "CLAWDFORGE_TOKEN": gateway.mint("app")["token"],
                                       "PYTHONDONTWRITEBYTECODE": "1"})

    def ask(prompt):
        return subprocess.run([sys.executable, str(REPO / "examples/stream.py"), "--agent", "demo", prompt], env=env,
                              text=True, capture_output=True, timeout=SECONDS_MAX)
    assert ask("Hello").stdout == "You said: Hello\n"
    failed = ask("crash")
    assert failed.returncode == 1 and "stream.py: agent_exited: " in failed.stderr
    assert gateway.admin.get("/admin/sessions?include_closed=false").json()["count"] == 0, "a session was left"


def test_the_web_page_shows_the_answer(gateway, tmp_path):
    env = clean_environment(tmp_path, {"CLAWDFORGE_URL": gateway.url, "CLAWDFORGE_TOKEN": gateway.mint("app")["token"],
                                       "PYTHONDONTWRITEBYTECODE": "1"})
    server = subprocess.Popen([sys.executable, str(REPO / "examples/web_page.py"), "--agent", "demo", "--port", "0"],
                              env=env, text=True, stdout=subprocess.PIPE)
    try:
        url = re.search(r"http://\S+/", server.stdout.readline())[0]
        assert "<textarea" in httpx.get(url, trust_env=False).text
        answer = httpx.post(url + "ask", content="Hello", headers={"X-Ask": "1"}, trust_env=False, timeout=SECONDS_MAX)
        assert answer.text == "You said: Hello"
        assert httpx.post(url + "ask", content="Hello", trust_env=False).status_code == 400
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_the_tools_of_these_tests_are_there():
    assert shutil.which("tsc") and shutil.which("node"), "scripts/install-packages test"
