"""The login of agents: it is not lost, and not lent to apps beyond what they need."""
import json

from agents import App, assert_failure, fake_env
from gateway import wait_until

REFRESH_LOCK = ".oauth_refresh.lock"


def test_an_agent_that_renews_its_login_is_not_killed(new_gateway, tmp_path):
    """The caller hangs up while a refresh is under way. Without a grace only the lock keeps the KILL
    away; a killed process would have spent the refresh token and not saved the new one. In a jail an
    agent cannot renew it at all: test_custody.py."""
    gateway = new_gateway(env=fake_env(kill_grace_ms=0, jail="off"))
    lock = gateway.root / ".claude" / REFRESH_LOCK
    lock.mkdir(parents=True)
    asked, saved = tmp_path / "asked", tmp_path / "saved"
    held = App(gateway).hold(tmp_path, {"on_term": str(asked), "touch_after": str(saved)}).begun()
    held.hang_up()
    wait_until(asked.exists, "the agent is asked to end")
    held.let_go()
    wait_until(saved.exists, "the agent saves what it has renewed")
    lock.rmdir()


def test_a_failed_refresh_is_told_as_a_login_error(new_gateway):
    app = App(new_gateway(env=fake_env()))
    sentence = ("Failed to refresh OAuth token: another Claude Code process is refreshing it or "
                "exited mid-refresh")
    assert_failure(app.run({"error": sentence}), 503, "agent_not_logged_in")


def test_the_owners_connectors_are_not_in_an_apps_agent(new_gateway, tmp_path):
    """Whatever the owner's environment and table say."""
    config = tmp_path / "clawdforge.toml"
    config.write_text('[agents.claude]\nset_env = { ENABLE_CLAUDEAI_MCP_SERVERS = "true" }\n')
    app = App(new_gateway(flags=["--config", str(config)],
                          env=fake_env() | {"ENABLE_CLAUDEAI_MCP_SERVERS": "true"}))
    answer = app.run({"report": True})
    assert json.loads(answer.content)["result"]["env"]["ENABLE_CLAUDEAI_MCP_SERVERS"] == "false"
