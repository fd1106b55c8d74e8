"""GET /agents: which agents there are; and sessions with those that are not there."""
import os
import pty
import re
import select
import subprocess
import time

import pytest

from agents import fake_env
from answers import assert_error
from gateway import PROGRAM, READY, SECONDS_MAX, clean_environment, wait_until
from sessions import (FAKE_ACP, FAKE_ACP_VERSION, Talker, agent_table, assert_no_process_left,
                      held, new_forge, session_dirs, session_rows)

__all__ = ["new_forge"]  # fixtures

KNOWN = {"claude", "demo"}


PUBLIC = {"name", "protocol", "present", "version", "default_model", "models", "efforts",
          "permission_modes", "login", "login_state", "warm", "jail", "net"}
FOR_ADMIN = {"spares", "memory_bytes", "programs", "login_place", "login_command", "login_environment"}


def agents_of(client, more=frozenset()):
    answer = client.get("/agents")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"agents"} | ({"uid"} if more else set())
    for agent in body["agents"]:
        assert set(agent) == PUBLIC | more
        assert agent["login"] in ("not_needed", "key", "file", "missing", "unknown")
        assert agent["jail"] in ("own_root", "landlock", "none")
        assert agent["net"] in ("open", "proxy", "none")
        assert agent["protocol"] in ("acp", "acpx", "claude")
        assert isinstance(agent["present"], bool) and isinstance(agent["version"], str)
    names = [agent["name"] for agent in body["agents"]]
    assert len(set(names)) == len(names)
    return {agent["name"]: agent for agent in body["agents"]}


def test_the_known_ones_come_configured_and_the_demo_is_always_there(new_gateway):
    gateway = new_gateway(env={**fake_env(claude_bin="/nowhere/claude"), "ANTHROPIC_API_KEY": ""})
    app = Talker(gateway)
    found = agents_of(app.client())
    assert KNOWN <= set(found)
    assert found["demo"]["present"] is True and found["demo"]["protocol"] == "acp"
    assert found["demo"]["version"], "it is built in"
    assert found["demo"]["login"] == "not_needed"
    assert found["claude"] == {"name": "claude", "protocol": "claude", "present": False,
                               "version": "", "login": "missing", "login_state": "external",
                               "default_model": "sonnet", "models": [], "efforts": [],
                               "permission_modes": ["deny_all", "approve_reads", "ask", "approve_all"],
                               "warm": False, "jail": found["demo"]["jail"], "net": "open"}
    told = agents_of(gateway.admin, FOR_ADMIN)
    assert {name: {key: agent[key] for key in PUBLIC} for name, agent in told.items()} == found
    program, = told["claude"]["programs"]
    assert (program["use"], program["path"], program["trial"]) == (
        "runs and sessions", None, "unknown")
    assert program["package"] == "@anthropic-ai/claude-code"


def test_the_admin_sees_where_an_agent_is_and_how_to_log_in(new_gateway, tmp_path):
    home, programs = tmp_path / "gateway-0", tmp_path / "bin"
    package = tmp_path / "lib/node_modules/@anthropic-ai/claude-code"
    package.mkdir(parents=True)
    programs.mkdir()
    (package / "cli.js").write_text("#!/bin/sh\nexit 1\n")
    (package / "cli.js").chmod(0o755)
    (package / "package.json").write_text('{"name":"@anthropic-ai/claude-code","version":"2.1.325"}')
    (programs / "claude").symlink_to(package / "cli.js")
    gateway = new_gateway(env={"PATH": f"{programs}:/usr/bin:/bin"})

    def claude():
        return agents_of(gateway.admin, FOR_ADMIN)["claude"]
    found = claude()
    runs = found["programs"][0]
    assert (runs["path"], runs["version"], runs["trial"]) == (f"{programs}/claude", "2.1.325", "tested")
    assert found["login_command"] == [f"{programs}/claude", "auth", "login"]
    assert found["login_environment"]["HOME"] == str(home)
    assert (found["login"], found["login_place"]) == ("missing", f"{home}/data/login/claude/.credentials.json")
    (home / ".claude").mkdir()
    (home / ".claude/.credentials.json").write_text('{"secret":"never read"}')
    (home / ".claude/.credentials.json").chmod(0o000)
    assert claude()["login"] == "file", "at once, and without reading it"
    assert gateway.admin.get("/agents").json()["uid"] == os.getuid()


def test_the_start_says_what_is_there_in_the_log(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env() | {"ANTHROPIC_API_KEY": "sk-never-told"})

    def lines():
        return {line["agent"]: line for line in gateway.log_lines() if line["message"] == "agent"}
    claude = wait_until(lambda: lines().get("claude"), "a line for Claude")
    assert claude["login"] == "key" and claude["use"] == "runs and sessions"
    wait_until(lambda: any(line["message"] == "agents that are not installed"
                           and "gemini" in line["agents"] for line in gateway.log_lines()),
               "those that are not there")
    assert "sk-never-told" not in gateway.stderr()


def test_the_start_says_on_a_terminal_what_to_do(tmp_path):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), "serve", "--listen", "127.0.0.1:0", "--log-format", "text"],
        env=clean_environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=follower,
        stderr=subprocess.DEVNULL)
    os.close(follower)
    said = b""
    try:
        end = time.monotonic() + SECONDS_MAX
        while b"doctor looks for trouble" not in said and time.monotonic() < end:
            if select.select([leader], [], [], 1)[0]:
                said += os.read(leader, 65536)
    finally:
        process.terminate()
        assert process.wait(timeout=SECONDS_MAX) == 0
        os.close(leader)
    text = said.decode()
    assert re.search(r"demo +built in, needs no login", text), text
    assert re.search(r"gemini +not installed", text), text
    assert f'{PROGRAM} run --agent demo "Hello"' in text, "it is not in PATH, so by its path"
    assert "npm install -g @anthropic-ai/claude-code" in text and "agent login claude" in text
    assert READY.match(text.replace("\r", "")), "the ready line is the first"


def test_a_table_adds_an_agent(new_forge):
    gateway = new_forge()
    app = Talker(gateway)
    assert agents_of(app.client())["fake"]["present"] is True
    app.session().ask("hello")
    wait_until(lambda: FAKE_ACP_VERSION in agents_of(app.client())["fake"]["version"],
               "its version is known once it has run")


def test_a_table_replaces_a_known_agent(new_forge):
    app = Talker(new_forge({"claude": []}))
    assert app.session("claude").told("hello") == "echo: hello"
    body = app.client().post("/sessions", json={}).json()
    assert body["agent"] == "claude", "the default"


@pytest.mark.parametrize("command", ['["/nowhere/agent"]', '["no-such-program-at-all"]',
                                     '["/etc/passwd"]', '["/tmp"]'])
def test_an_absent_agent_is_503_and_leaves_nothing(new_gateway, tmp_path, command):
    config = tmp_path / "config.toml"
    config.write_text(f"[agents.absent]\ncommand = {command}\n{held()}")
    gateway = new_gateway(env=fake_env(), flags=["--config", str(config)])
    app = Talker(gateway)
    assert agents_of(app.client())["absent"]["present"] is False
    assert_error(app.create("absent"), 503, "agent_not_found")
    assert session_rows(gateway) == []
    wait_until(lambda: not session_dirs(gateway), "its directory is gone")
    assert_no_process_left(gateway)


def test_a_known_agent_that_is_absent_says_what_to_install(new_gateway):
    gateway = new_gateway(env=fake_env(claude_bin="/nowhere/claude"))
    body = assert_error(Talker(gateway).create("claude"), 503, "agent_not_found")
    assert "npm install" in body["detail"] and "claude-code" in body["detail"]


def test_a_program_that_goes_away_and_comes_back(new_gateway, tmp_path):
    program, config = tmp_path / "agent", tmp_path / "config.toml"
    config.write_text(f'[agents.mine]\ncommand = ["{program}"]\n{held()}')
    gateway = new_gateway(env=fake_env(), flags=["--config", str(config)])
    app = Talker(gateway)
    assert_error(app.create("mine"), 503, "agent_not_found")
    program.symlink_to(FAKE_ACP)
    session = app.session("mine")
    assert session.told("hello") == "echo: hello"
    session.turn({"exit": 1})
    program.unlink()
    answer = session.turn("hello")
    assert (answer.status_code, answer.json()["code"]) == (503, "agent_not_found")
    program.symlink_to(FAKE_ACP)
    assert session.ask("hello")["resumed"] is True


def test_an_agent_that_leaves_the_configuration_is_told_by_its_sessions(new_forge, tmp_path):
    gateway = new_forge(more=agent_table("temporary", []))
    app = Talker(gateway)
    session = app.session("temporary")
    gateway.stop()
    config = tmp_path / "other.toml"
    config.write_text("")
    gateway.flags = ["--config", str(config)]
    gateway.start()
    answer = session.turn("hello")
    assert (answer.status_code, answer.json()["code"]) == (503, "agent_not_found")
    assert session.state()["agent"] == "temporary"
    assert session.close() == {"ok": True}


def test_who_may_ask(shared, shared_app):
    assert_error(shared.client().get("/agents"), 401, "unauthorized")
    answer = shared.client(shared_app).post("/agents")
    assert_error(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
    assert_error(shared.client(shared_app).get("/agents/"), 404, "path_not_found")
    assert_error(shared.client(shared_app).get("/agents/demo"), 404, "path_not_found")
