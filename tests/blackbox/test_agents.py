"""GET /agents: which agents there are; and sessions with those that are not there."""
import pytest

from agents import fake_env
from answers import assert_error
from gateway import wait_until
from sessions import (FAKE_ACP, FAKE_ACP_VERSION, Talker, agent_table, assert_no_process_left,
                      held, new_forge, session_dirs, session_rows)

__all__ = ["new_forge"]  # fixtures

KNOWN = {"claude", "demo"}


def agents_of(client):
    answer = client.get("/agents")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"agents"}
    for agent in body["agents"]:
        assert set(agent) == {"name", "protocol", "present", "version"}
        assert agent["protocol"] in ("acp", "acpx")
        assert isinstance(agent["present"], bool) and isinstance(agent["version"], str)
    names = [agent["name"] for agent in body["agents"]]
    assert len(set(names)) == len(names)
    return {agent["name"]: agent for agent in body["agents"]}


def test_the_known_ones_come_configured_and_the_demo_is_always_there(new_gateway):
    gateway = new_gateway(env=fake_env(claude_bin="/nowhere/claude"))
    app = Talker(gateway)
    found = agents_of(app.client())
    assert KNOWN <= set(found)
    assert found["demo"]["present"] is True and found["demo"]["protocol"] == "acp"
    assert found["demo"]["version"], "it is built in"
    assert found["claude"] == {"name": "claude", "protocol": "acp", "present": False,
                               "version": ""}
    assert agents_of(gateway.admin) == found, "the admin sees the same"


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
    body = assert_error(Talker(new_gateway(env=fake_env())).create("claude"), 503,
                        "agent_not_found")
    assert "npm install" in body["detail"] and "claude-agent-acp" in body["detail"]


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
