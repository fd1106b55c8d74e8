"""clawdforge doctor: what is wrong with the gateway of this machine, and what to do."""
import json
import os
import pty
import socket
import sqlite3
import subprocess
import time

import pytest

from gateway import PROGRAM, REPO, SECONDS_MAX, clean_environment, run_program

CLAUDE = """#!/bin/sh
echo "$*" >> "$HOME/claude-calls"
case "$1" in
  --version) echo "2.1.325 (Claude Code)" ;;
  auth) cat "$HOME/claude-said"; exit "$(cat "$HOME/claude-exit")" ;;
esac
"""


def diagnose(home, *flags, env=None, code=None):
    done = run_program("doctor", "--json", *flags, home=home, env=env)
    body = json.loads(done.stdout)
    assert set(body) == {"verdict", "lines"}
    verdicts = [line["verdict"] for line in body["lines"]]
    worst = next(v for v in ("bad", "warning", "good") if v in verdicts)
    assert body["verdict"] == worst
    assert done.returncode == {"good": 0, "warning": 1, "bad": 2}[worst]
    for line in body["lines"]:
        assert set(line) == {"verdict", "check", "says", "remedy"}
        assert line["verdict"] == "good" or line["remedy"], line
    if code is not None:
        assert done.returncode == code, body
    return body["lines"]


def lines_of(lines, check):
    return [line for line in lines if line["check"] == check]


def one(lines, check):
    found = lines_of(lines, check)
    assert len(found) == 1, (check, lines)
    return found[0]


def listen_anywhere(tmp_path):
    """Flags of a gateway that nothing else on this machine is in the way of."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return ["--listen", f"127.0.0.1:{free.getsockname()[1]}", "--data-dir", tmp_path / "data"]


def test_without_a_gateway_nothing_is_made(tmp_path):
    lines = diagnose(tmp_path, *listen_anywhere(tmp_path), code=1)
    assert "not there yet" in one(lines, "data-dir")["says"]
    assert "none runs" in one(lines, "gateway")["says"]
    assert one(lines, "port")["says"].endswith("is free")
    for check in ("program", "launcher", "user-namespaces", "pid-namespaces", "jail", "landlock",
                  "descriptors", "processes", "configuration", "token-files", "tls", "systemd"):
        assert lines_of(lines, check), check
    assert "npm install" in one(lines, "agents")["remedy"], "only the demo agent is there"
    assert one(lines, "agent gemini")["verdict"] == "good", "it need not be there"
    assert list(tmp_path.iterdir()) == [], "it changes nothing"


def test_beside_a_gateway(gateway):
    flags = ["--data-dir", gateway.data_dir]
    lines = diagnose(gateway.root, "--ask", *flags, code=1)
    assert one(lines, "gateway")["says"] == "it runs and is ready"
    assert gateway.url in one(lines, "port")["says"]
    assert str(gateway.process.pid) in one(lines, "port")["says"], "who holds it"
    assert one(lines, "ledger")["verdict"] == "good"
    assert one(lines, "clock")["verdict"] == "good"
    assert one(lines, "gateway-version")["verdict"] == "good"
    assert "You said" in one(lines, "ask demo")["says"]
    assert not gateway.admin.get("/admin/tokens").json()["tokens"], "the app that asked has gone"
    assert one(lines, "backup")["verdict"] == "warning"
    remedy = one(lines, "backup")["remedy"]
    done = subprocess.run(["/bin/bash", "-c", remedy.replace("clawdforge backup", f"{PROGRAM} backup")],
                          env=clean_environment(gateway.root), capture_output=True, text=True,
                          timeout=SECONDS_MAX)
    assert done.returncode == 0, done
    assert one(diagnose(gateway.root, *flags), "backup")["verdict"] == "good"


def test_ask_needs_a_gateway(tmp_path):
    lines = diagnose(tmp_path, "--ask", *listen_anywhere(tmp_path), code=2)
    assert "clawdforge serve" in one(lines, "ask")["remedy"]


def test_a_port_that_another_program_holds(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        lines = diagnose(tmp_path, "--listen", address, "--data-dir", tmp_path / "data", code=2)
    port = one(lines, "port")
    assert port["verdict"] == "bad" and f"pid {os.getpid()}" in port["says"], port
    assert "serve --listen" in port["remedy"]


def test_files_that_others_may_read(gateway):
    config = gateway.root / ".config/clawdforge"
    (config / "profiles").mkdir(parents=True)
    for path in (config / "cf.env", config / "profiles/work.env"):
        path.write_text("CLAWDFORGE_TOKEN=x\n")
        path.chmod(0o600)
    flags = ["--data-dir", gateway.data_dir]
    assert one(diagnose(gateway.root, *flags), "token-files")["says"].startswith("3 ")
    for path in (gateway.data_dir / "admin-token", config / "cf.env", config / "profiles/work.env"):
        path.chmod(0o644)
        found = lines_of(diagnose(gateway.root, *flags, code=2), "token-files")
        assert found[0]["verdict"] == "bad" and found[0]["remedy"] == f"chmod 600 {path}"
        path.chmod(0o600)
    gateway.data_dir.chmod(0o755)
    found = one(diagnose(gateway.root, *flags, code=1), "data-dir")
    assert (found["verdict"], found["remedy"]) == ("warning", f"chmod 700 {gateway.data_dir}")


def test_a_damaged_ledger_and_a_clock_that_is_behind(gateway):
    assert gateway.stop() == 0
    with sqlite3.connect(gateway.data_dir / "clawdforge.db") as ledger:
        ledger.execute("UPDATE instances SET seen_at = ?", (int(time.time()) + 86400,))
    flags = ["--data-dir", gateway.data_dir, "--listen", "127.0.0.1:0"]
    clock = one(diagnose(gateway.root, *flags, code=2), "clock")
    assert clock["verdict"] == "bad" and "timedatectl" in clock["remedy"]
    (gateway.data_dir / "clawdforge.db").write_bytes(b"not a database" * 1000)
    ledger = one(diagnose(gateway.root, *flags, code=2), "ledger")
    assert ledger["verdict"] == "bad" and "clawdforge verify" in ledger["remedy"]


@pytest.mark.parametrize("days, verdict", [(60, "good"), (3, "warning"), (None, "bad")])
def test_a_certificate(tmp_path, days, verdict):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days or 1), "-subj",
                    "/CN=test", "-keyout", key, "-out", cert], check=True, capture_output=True)
    if days is None:
        cert.write_text("nothing of the kind\n")
    key.chmod(0o600)
    flags = [*listen_anywhere(tmp_path), "--tls-cert", cert, "--tls-key", key]
    assert one(diagnose(tmp_path, *flags), "tls")["verdict"] == verdict
    key.chmod(0o644)
    assert one(diagnose(tmp_path, *flags, code=2), "tls-key")["remedy"] == f"chmod o= {key}"


def test_units_of_systemd(tmp_path):
    units = tmp_path / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / "other.service").write_text("[Service]\nExecStart=/usr/bin/other\n"
                                         "Environment=CLAWDFORGE_ADMIN_TOKEN=x\n")
    unit = units / "clawdforge.service"
    unit.write_text("[Service]\nExecStart=/usr/local/bin/clawdforge serve\n")
    flags = listen_anywhere(tmp_path)
    lines = diagnose(tmp_path, *flags, code=1)
    assert one(lines, "systemd")["says"] == str(unit)
    assert one(lines, "service-environment")["verdict"] == "good"
    (units / "clawdforge.service.d").mkdir()
    (units / "clawdforge.service.d/token.conf").write_text(
        '[Service]\nEnvironment = "A=b" "CLAWDFORGE_ADMIN_TOKEN=very-secret"\n')
    found = one(diagnose(tmp_path, *flags, code=2), "service-environment")
    assert found["verdict"] == "bad" and "systemctl --user edit" in found["remedy"]
    assert "very-secret" not in json.dumps(found)


def test_a_bad_configuration_is_a_line_of_it(tmp_path):
    lines = diagnose(tmp_path, "--max-runs", "none", code=2)
    assert "max_runs" in one(lines, "configuration")["says"] or \
        "max-runs" in one(lines, "configuration")["says"]
    lines = diagnose(tmp_path, *listen_anywhere(tmp_path), env={"CLAWDFORGE_MAX_RUNZ": "2"})
    assert one(lines, "configuration")["verdict"] == "warning"


@pytest.fixture
def claude(tmp_path):
    """A home with a claude in PATH that is logged in; its words and exit code can be changed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").write_text(CLAUDE)
    (tmp_path / "bin/claude").chmod(0o755)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/.credentials.json").write_text('{"secret": 1}')
    (tmp_path / "claude-said").write_text('{"loggedIn": true}\n')
    (tmp_path / "claude-exit").write_text("0")
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}


def test_an_agent_its_version_and_its_login(tmp_path, claude):
    flags = listen_anywhere(tmp_path)
    lines = diagnose(tmp_path, *flags, env=claude)
    program, = lines_of(lines, "agent claude")
    assert "2.1.325" in program["says"] and "known to work" in program["says"]
    login = one(lines, "login claude")
    assert login["verdict"] == "good" and "the program says so" in login["says"]
    assert (tmp_path / "claude-calls").read_text().splitlines() == \
        ["--version", "auth status --json"], "and no model is asked"
    assert not lines_of(lines, "agents"), "there is one that can answer"

    (tmp_path / "claude-exit").write_text("1")
    login = one(diagnose(tmp_path, *flags, env=claude, code=2), "login claude")
    assert (login["verdict"], login["remedy"]) == ("bad", "clawdforge agent login claude")
    (tmp_path / ".claude/.credentials.json").unlink()
    login = one(diagnose(tmp_path, *flags, env=claude, code=1), "login claude")
    assert (login["verdict"], login["says"]) == ("warning", "not logged in")
    program = tmp_path / "bin/claude"
    program.write_text(CLAUDE.replace("2.1.325", "1.0.3"))
    old = lines_of(diagnose(tmp_path, *flags, env=claude), "agent claude")[0]
    assert old["verdict"] == "warning" and "claude-code@2.1.325" in old["remedy"]
    program.write_text(CLAUDE.replace("2.1.325", "9.0.0"))
    new = lines_of(diagnose(tmp_path, *flags, env=claude), "agent claude")[0]
    assert new["verdict"] == "good" and "newer" in new["says"]


def test_a_configured_agent_that_is_not_there_is_bad(tmp_path):
    (tmp_path / "it.toml").write_text('[agents.mine]\ncommand = ["/nowhere/mine"]\n')
    lines = diagnose(tmp_path, *listen_anywhere(tmp_path), "--config", tmp_path / "it.toml", code=2)
    assert one(lines, "agent mine")["verdict"] == "bad"


def test_a_pipe_gets_columns_and_a_terminal_colours(tmp_path):
    flags = list(map(str, listen_anywhere(tmp_path)))
    done = run_program("doctor", *flags, home=tmp_path)
    head, *rest = done.stdout.splitlines()
    assert head == "VERDICT\tCHECK\tWHAT\tDO" and all(line.count("\t") == 3 for line in rest)
    assert "\x1b" not in done.stdout
    for env, has_colour in (({}, True), ({"NO_COLOR": "1"}, False)):
        leader, follower = pty.openpty()
        process = subprocess.Popen([PROGRAM, "doctor", *flags], stdout=follower,
                                   env=clean_environment(tmp_path, env))
        os.close(follower)
        said = b""
        try:
            while piece := os.read(leader, 65536):
                said += piece
        except OSError:  # the other side was closed
            pass
        assert process.wait(timeout=SECONDS_MAX) == 1
        os.close(leader)
        assert (b"\x1b[32mgood" in said) is has_colour and b"data-dir" in said


def test_what_is_known_to_work_is_what_the_tests_install():
    """The versions that the program calls tested are those of ./test."""
    script = (REPO / "test").read_text()
    specs = (REPO / "src/config/agents/agent_specs.cc").read_text()
    assert "claude_version=2.1.325" in script and '"2.1.325"' in specs
    for package in ("claude-agent-acp@0.99.1", "codex-acp@2.6.0", "gemini-cli@0.61.0",
                    "opencode-ai@1.18.33"):
        name, version = package.split("@")
        assert package in script and name in specs and f'"{version}"' in specs
