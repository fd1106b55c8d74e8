"""What a watcher reads: /healthz, /readyz, /metrics, /openapi.json."""
import re
import socket

import pytest

from agents import FAKE, FAKE_VERSION, processes
from answers import assert_error
from gateway import run_program, wait_until
from wire import GET_HEALTH, Wire, bearer, request

HEALTH_KEYS = {"ok", "version", "claude_present", "claude_version", "acpx_present", "acpx_version",
               "claude_login", "open_sessions", "jail", "limits"}
METHODS = ("get", "put", "post", "delete", "options", "patch", "trace")


def test_healthz_has_exactly_its_fields(shared, tmp_path):
    answer = shared.client().get("/healthz")
    body = answer.json()
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert set(body) == HEALTH_KEYS
    assert (body["ok"], body["open_sessions"]) == (True, 0)
    assert body["jail"] in ("own_root", "landlock", "none")
    assert body["limits"] in ("nothing", "counting", "cgroup1", "cgroup2")
    version = run_program("version", home=tmp_path).stdout.strip().split()[-1]
    assert body["version"] == version
    for agent in ("claude", "acpx"):
        assert isinstance(body[f"{agent}_present"], bool)
        assert isinstance(body[f"{agent}_version"], str)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json"])
def test_a_token_is_neither_needed_nor_looked_at(shared, path):
    client = shared.client()
    for value in (None, "Bearer cf_wrong", "Basic x", ""):
        headers = {} if value is None else {"Authorization": value}
        assert client.get(path, headers=headers).status_code == 200


def test_wrong_tokens_at_healthz_are_no_failed_attempts(gateway):
    with Wire(gateway) as wire:
        for i in range(60):
            assert wire.ask(request("GET /healthz", bearer(f"cf_{i}"))).status == 200
    assert gateway.admin.get("/admin/tokens").status_code == 200


# The agents' programs, looked for in the background

def health(gateway):
    answer = gateway.client().get("/healthz")
    assert answer.status_code == 200, "also without any agent"
    return answer.json()


def found(body):
    return [(body[f"{name}_present"], body[f"{name}_version"]) for name in ("claude", "acpx")]


def program(path, script, mode=0o755):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return str(path)


def test_the_agents_that_are_there_are_found_with_their_versions(new_gateway, tmp_path):
    acpx = program(tmp_path / "acpx", "echo 0.4.2; echo more >&2; echo more")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": str(FAKE), "CLAWDFORGE_ACPX_BIN": acpx})
    expected = [(True, FAKE_VERSION), (True, "0.4.2")]
    wait_until(lambda: found(health(gateway)) == expected, "both are found")
    assert set(health(gateway)) == HEALTH_KEYS


def test_agents_are_found_in_the_path(new_gateway, tmp_path):
    program(tmp_path / "claude", "echo 1.0")
    program(tmp_path / "acpx", "echo 2.0")
    gateway = new_gateway(env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    wait_until(lambda: found(health(gateway)) == [(True, "1.0"), (True, "2.0")], "both are found")


@pytest.mark.parametrize("script, mode", [
    (None, 0), ("echo 1.0", 0o644), ("echo 1.0; exit 1", 0o755), ("echo 1.0; kill -9 $$", 0o755)])
def test_an_agent_that_is_absent_or_does_not_work_is_not_there(new_gateway, tmp_path, script, mode):
    path, looked = tmp_path / "agent", tmp_path / "looked"
    if script is not None:
        program(path, script, mode)
    # Both are looked for at once; when the second is found, the first has been tried.
    other = program(tmp_path / "other", f"echo 2.0; touch {looked}")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": str(path), "CLAWDFORGE_ACPX_BIN": other})
    wait_until(lambda: found(health(gateway))[1] == (True, "2.0"), "the other is found")
    wait_until(lambda: not processes(gateway), "it has looked")
    assert found(health(gateway))[0] == (False, "")


def test_a_version_is_one_short_line_of_valid_text(new_gateway, tmp_path):
    long = program(tmp_path / "long", "head -c 300000 /dev/zero | tr '\\0' x")
    odd = program(tmp_path / "odd", r"printf '9.9 \377\001 (x)\r\nmore\n'")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": long, "CLAWDFORGE_ACPX_BIN": odd})
    wait_until(lambda: [present for present, _ in found(health(gateway))] == [True, True],
               "both are found")
    versions = [version for _, version in found(health(gateway))]
    assert 0 < len(versions[0]) <= 200 and set(versions[0]) <= {"x", "…"}
    assert re.fullmatch(r"9\.9 \S* ?\(x\)", versions[1]) and versions[1].isprintable()


def test_a_program_that_hangs_holds_nothing_up(new_gateway, tmp_path):
    began = tmp_path / "began"
    slow = program(tmp_path / "slow", f"touch {began}; exec sleep 600")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": slow})
    wait_until(began.exists, "it is looked at")
    assert found(health(gateway))[0] == (False, "")
    assert gateway.client().get("/readyz").status_code == 200
    assert gateway.stop() == 0
    assert not processes(gateway), "and it does not outlive the gateway"


def test_a_request_starts_no_program(new_gateway, tmp_path):
    starts = tmp_path / "starts"
    counting = program(tmp_path / "counting", f"echo x >> {starts}; echo 3.1")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": counting, "ANTHROPIC_API_KEY": "a-key"})
    wait_until(lambda: found(health(gateway))[0] == (True, "3.1"), "it is found")
    with gateway.client() as client:
        assert [client.get("/healthz").status_code for _ in range(50)] == [200] * 50
    assert starts.read_text() == "x\n"


def test_a_program_that_is_looked_at_gets_no_secret_of_the_gateway(new_gateway, tmp_path):
    seen = tmp_path / "seen"
    curious = program(tmp_path / "curious", f"env > {seen}.part; mv {seen}.part {seen}; echo 1")
    gateway = new_gateway(env={"CLAWDFORGE_CLAUDE_BIN": curious, "OWNER_SECRET": "of-the-owner"})
    wait_until(lambda: found(health(gateway))[0] == (True, "1"), "it is found")
    names = {line.split("=")[0] for line in seen.read_text().splitlines()}
    assert {"PATH", "HOME"} <= names
    assert "OWNER_SECRET" not in names
    assert not [name for name in names if name.startswith("CLAWDFORGE_")]


def test_readyz_is_200_when_it_takes_work(shared):
    answer = shared.client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["ok"] is True


# Metrics

def families(text):
    """Type by name, from the # TYPE lines."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "203.0.113.7"}, {"Via": "1.1 proxy"}])
def test_metrics_need_the_admin_token_wherever_the_caller_is(new_gateway, headers):
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32",
                               "CLAWDFORGE_ALLOW_CIDRS": "203.0.113.0/24"})
    app = gateway.mint("watching")["token"]
    assert_error(gateway.client().get("/metrics", headers=headers), 401, "unauthorized")
    assert_error(gateway.client(app).get("/metrics", headers=headers), 403, "wrong_token_kind")
    assert gateway.admin.get("/metrics", headers=headers).status_code == 200


def test_metrics_need_no_token_if_the_owner_says_so(new_gateway, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("metrics_without_token = true\n")
    gateway = new_gateway(flags=["--config", str(config)])
    assert gateway.client().get("/metrics").status_code == 200
    assert_error(asked_as(gateway, "evil.example", "/metrics"), 421, "host_not_allowed")


# By which name they are asked for

WITHOUT_TOKEN = ("/healthz", "/readyz", "/openapi.json")


def asked_as(gateway, host, path, version="1.1"):
    fields = b"" if host is None else b"Host: " + host.encode() + b"\r\n"
    with Wire(gateway) as wire:
        return wire.ask(f"GET {path} HTTP/{version}\r\n".encode() + fields + b"\r\n")


@pytest.mark.parametrize("path", WITHOUT_TOKEN)
def test_what_needs_no_token_answers_only_to_addresses_and_known_names(new_gateway, path):
    gateway = new_gateway(env={"CLAWDFORGE_ALLOW_HOSTS": "Forge.example,other.example"})
    for host in ("127.0.0.1", "127.0.0.1:8800", "10.0.0.7:1", "[::1]", "[::1]:8800", "localhost",
                 "LocalHost:8800", "forge.localhost:8800", socket.gethostname(), "forge.example", "FORGE.example:443", "other.example"):
        assert asked_as(gateway, host, path).status == 200, host
    for host in ("evil.example", "evil.example:8800", "localhost.evil.example", "127.0.0.1.nip.io", ".localhost", "xlocalhost",
                 "xforge.example", "forge.example.evil", "[::1", "1.2.3"):
        answer = asked_as(gateway, host, path)
        assert answer.status in (400, 421), host
        if answer.status == 421:
            assert_error(answer, 421, "host_not_allowed")
    assert asked_as(gateway, None, path, version="1.0").status == 200, "which has no Host"


def test_what_needs_a_token_does_not_mind_the_name(shared, shared_app):
    with Wire(shared) as wire:
        answer = wire.ask(b"GET /whoami HTTP/1.1\r\nHost: evil.example\r\n" +
                          bearer(shared_app).encode() + b"\r\n\r\n")
    assert answer.status == 200


@pytest.mark.parametrize("path, token", [
    ("/healthz", False), ("/openapi.json", False), ("/nowhere", False), ("/whoami", False),
    ("/whoami", True), ("/metrics", True)])
def test_no_answer_may_be_kept_or_guessed_at(shared, path, token):
    answer = (shared.admin if token else shared.client()).get(path)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize("name, kind", [
    (r"clawdforge_\w*requests\w*", "counter"),
    (r"clawdforge_\w*request\w*(duration|seconds)\w*", "histogram"),
    (r"clawdforge_ledger\w*queue\w*", "gauge"),
    (r"clawdforge_ledger\w*(latency|duration|seconds)\w*", "histogram"),
    (r"clawdforge_\w*lag\w*", None),
    (r"clawdforge_\w*connections\w*", "gauge")])
def test_metrics_have_the_promised_families(shared, name, kind):
    shared.client().get("/healthz")
    answer = shared.admin.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    found = {n: k for n, k in families(answer.text).items() if re.fullmatch(name, n)}
    assert found and (kind is None or kind in found.values()), families(answer.text)


def test_metrics_text_is_well_formed_and_every_family_is_explained(shared):
    text = shared.admin.get("/metrics").text
    assert text.endswith("\n")
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.M))
    assert set(families(text)) == helped
    sample = re.compile(r'[a-z0-9_]+(\{([a-z_]+="[^"\n]*",?)*\})? (-?[0-9.e+-]+|\+Inf|NaN)')
    for line in text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line


def test_requests_are_counted_by_status_and_callers_make_no_labels(gateway):
    client = gateway.client()
    client.get("/nowhere-in-particular")
    client.get("/whoami")
    text = gateway.admin.get("/metrics").text
    counted = re.findall(r'^clawdforge_\w*requests\w*\{([^}]*)\} (\d+)', text, re.M)
    assert any('"404"' in labels and int(count) == 1 for labels, count in counted), counted
    assert any('"401"' in labels and int(count) == 1 for labels, count in counted), counted
    assert "nowhere-in-particular" not in text


def test_open_connections_are_counted(gateway):
    def connections():
        text = gateway.admin.get("/metrics").text
        gauge, = [name for name, kind in families(text).items()
                  if "connections" in name and kind == "gauge"]
        return float(re.search(rf"^{gauge} (\S+)$", text, re.M).group(1))
    before = connections()
    held = [Wire(gateway) for _ in range(5)]
    assert [wire.ask(GET_HEALTH).status for wire in held] == [200] * 5
    assert connections() >= before + 5
    for wire in held:
        wire.socket.close()


# The contract, machine-readable

@pytest.fixture(scope="module")
def openapi(shared):
    answer = shared.client().get("/openapi.json")
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()


def concrete(path):
    return re.sub(r"\{[^}]+\}", "absent", path)


def test_openapi_names_the_paths_of_this_version(openapi, tmp_path):
    assert openapi["openapi"].startswith("3.")
    assert openapi["info"]["version"] in run_program("version", home=tmp_path).stdout
    assert {"/healthz", "/readyz", "/metrics", "/openapi.json", "/whoami", "/admin/tokens",
            "/admin/tokens/{name}", "/admin/tokens/{name}/rotate"} <= set(openapi["paths"])


def test_every_path_of_openapi_answers_and_refuses_all_other_methods(shared, openapi):
    client = shared.client()
    for path, operations in openapi["paths"].items():
        for method in METHODS:
            status = client.request(method.upper(), concrete(path)).status_code
            if method in operations and path in ("/ui/{name}", "/docs/{name}"):
                assert status == 404, "the dashboard and the documents have no such file"
            elif method in operations and path == "/docs":
                assert status == 302
            elif method in operations and path == "/ui/sign-in":
                assert status == 422, "its token is in its body"
            elif method in operations:
                assert status in (200, 401), (method, path, status)
            else:
                assert status == 405, (method, path, status)


def test_openapi_lists_every_answer_it_can_give_without_a_token(shared, openapi):
    client = shared.client()
    for path, operations in openapi["paths"].items():
        for method in set(operations) & set(METHODS):
            status = client.request(method.upper(), concrete(path)).status_code
            assert str(status) in operations[method]["responses"], (method, path, status)
