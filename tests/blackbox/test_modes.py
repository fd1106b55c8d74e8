"""Which permission modes an agent can be held to, for sessions and for runs."""
import pytest

from agents import App, assert_success, fake_env
from answers import assert_error
from sessions import FAKE_ACP, Talker, agent_table, new_forge

__all__ = ["new_forge"]  # fixtures

MODES = ["deny_all", "approve_reads", "ask", "approve_all"]
UNSAID = f'[agents.unsaid]\ncommand = ["{FAKE_ACP}"]\n'


@pytest.mark.parametrize("mode", [None, "deny_all", "approve_reads", "ask"])
def test_an_agent_of_which_nothing_is_known_is_held_to_no_limit(new_forge, mode):
    app = Talker(new_forge(more=UNSAID))
    body = assert_error(app.create("unsaid", permission_mode=mode), 422,
                        "permission_mode_not_supported")
    assert mode or "approve_reads" in body["detail"]
    assert "only to approve_all" in body["detail"]
    assert "permission_modes" in body["detail"] and "[agents.unsaid]" in body["detail"]
    assert app.list()["count"] == 0


def test_it_may_be_asked_to_do_everything(new_forge):
    app = Talker(new_forge(more=UNSAID + agent_table("tuned", [], permission_mode='"approve_all"')))
    assert app.session("unsaid", permission_mode="approve_all").told("hello") == "echo: hello"
    assert app.session("tuned").told({"permission": {"kind": "edit"}}) == "permission: allow-once"


def test_a_table_says_how_an_agent_is_held(new_forge, tmp_path):
    """By its environment, its arguments and a mode of its own."""
    seen = tmp_path / "seen"
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\necho "$RULES $*" > {seen}\nexec {FAKE_ACP}\n')
    agent.chmod(0o755)
    more = (f'[agents.held]\ncommand = ["{agent}", "--first"]\nset_env = {{ RULES = "none" }}\n'
            '[agents.held.permission_modes.deny_all]\nenv = { RULES = "strict" }\n'
            'args = ["--read-only"]\n')
    app = Talker(new_forge(more=more))
    assert app.session("held", permission_mode="deny_all").told("hello") == "echo: hello"
    assert seen.read_text() == "strict --first --read-only\n"
    assert_error(app.create("held", permission_mode="approve_all"), 422,
                 "permission_mode_not_supported")


def test_a_session_that_is_older_than_the_configuration_is_told(new_forge, tmp_path):
    gateway = new_forge(more=agent_table("changed", []))
    app = Talker(gateway)
    session = app.session("changed", permission_mode="deny_all")
    gateway.stop()
    config = tmp_path / "other.toml"
    config.write_text(f'[agents.changed]\ncommand = ["{FAKE_ACP}"]\n')
    gateway.flags = ["--config", str(config)]
    gateway.start()
    answer = session.turn("hello")
    assert (answer.status_code, answer.json()["code"]) == (422, "permission_mode_not_supported")


def test_the_demo_agent_is_held_to_all_modes(new_forge):
    app = Talker(new_forge())
    for mode in MODES:
        session = app.session("demo", permission_mode=mode)
        if mode != "ask":
            told = session.told("permission edit")
            assert ("was not allowed" in told) is (mode != "approve_all"), told


# Runs

def flags_of(answer):
    """What follows the arguments that every run has."""
    return answer["argv"][answer["argv"].index("--no-session-persistence") + 1:]


def test_a_run_is_held_to_its_mode(new_gateway):
    app = App(new_gateway(env=fake_env()))
    plain = flags_of(app.report())
    assert plain == flags_of(app.report(permission_mode=None))
    assert plain == flags_of(app.report(permission_mode="approve_reads"))
    denied = flags_of(app.report(permission_mode="deny_all"))
    assert denied[:2] == ["--permission-mode", "dontAsk"] and "Read" in denied[3]
    allowed = flags_of(app.report(permission_mode="approve_all"))
    assert allowed[0] == "--allowedTools" and "Bash" in allowed[1]


@pytest.mark.parametrize("mode", ["ask", "yolo", 1])
def test_a_run_cannot_be_held_to_other_modes(new_gateway, mode):
    app = App(new_gateway(env=fake_env()))
    code = "permission_mode_not_supported" if mode == "ask" else "validation_failed"
    body = assert_error(app.run("hello", permission_mode=mode), 422, code)
    assert "permission_mode" in str(body)


@pytest.mark.parametrize("default, flag", [
    ("approve_all", "--allowedTools"), ("deny_all", "dontAsk"), ("ask", "manual")])
def test_the_gateways_mode_is_for_runs_that_name_none(new_gateway, default, flag):
    app = App(new_gateway(env=fake_env(permission_mode=default)))
    assert flag in flags_of(app.report())


def test_the_agents_table_has_a_mode_for_runs(new_gateway, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[agents.claude]\npermission_mode = "deny_all"\n')
    app = App(new_gateway(env=fake_env(permission_mode="approve_all"),
                          flags=["--config", str(config)]))
    assert "dontAsk" in flags_of(app.report())


DENIED = {"result": "done", "keys": {"permission_denials": [
    {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "x" * 2000}},
    {"tool_name": "Write", "tool_use_id": "t2", "tool_input": {"file_path": "/etc/passwd"}}]}}


def test_what_was_denied_is_told_to_who_asks_for_it(new_gateway):
    app = App(new_gateway(env=fake_env()))
    assert_success(app.run(DENIED), "done")  # and has no other keys
    body = app.run(DENIED, include=["denials"]).json()
    assert set(body) == {"ok", "result", "duration_ms", "stop_reason", "denials"}
    assert [denial["tool"] for denial in body["denials"]] == ["Bash", "Write"]
    assert body["denials"][0]["input"] == '{"command":"' + "x" * 500
    assert body["denials"][1]["input"] == '{"file_path":"/etc/passwd"}'
    assert app.run("hello", include=["denials"]).json()["denials"] == []


def test_the_demo_agent_denies_by_the_mode(new_gateway):
    app = App(new_gateway(env=fake_env()))
    for mode, kind, is_denied in (("deny_all", "read", True), ("approve_reads", "read", False),
                                  ("approve_reads", "edit", True), ("approve_all", "edit", False)):
        answer = app.run(f"permission {kind}", agent="demo", permission_mode=mode,
                         include=["denials"])
        told = [denial["tool"] for denial in answer.json()["denials"]]
        assert told == [kind] * is_denied, (mode, kind)
