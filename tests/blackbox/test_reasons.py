"""An agent that fails leaves its reason: in the answer, in the log, in the audit."""
import json

import pytest

from agents import App, assert_failure, fake_env
from answers import header_of
from gateway import wait_until
from sessions import FAKE_ACPX, Talker, config_with, held, turn_rows

TAIL_BYTES_MAX = 8192
SENTENCE_CHARACTERS_MAX = 500
SECRET = "sk-ant-" + "a1B2" * 12
INTERPRETER = "no-such-interpreter"


def script(place, name, text):
    path = place / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def agent(name, command, protocol="acp"):
    return (f"[agents.{name}]\nprotocol = {json.dumps(protocol)}\ncommand = {json.dumps(command)}\n"
            + held(protocol))


def early_ends(gateway):
    return [line for line in gateway.log_lines() if line["message"] == "an agent ended too early"]


def early_end(gateway):
    """The one that is logged, as soon as it is."""
    wait_until(lambda: early_ends(gateway), "the log has it")
    line, = early_ends(gateway)
    return line


@pytest.fixture
def forge(new_gateway, tmp_path):
    """Makes gateways with agents that do not start."""
    def make(**settings):
        lost = script(tmp_path, "lost", f"#!/usr/bin/env {INTERPRETER}\n")
        orphan = script(tmp_path, "orphan", "#!/nowhere/interpreter\n")
        talker = script(tmp_path, "talker", f"#!/bin/sh\necho token {SECRET} >&2\n"
                        "i=0; while [ $i -lt 4000 ]; do echo line $i; i=$((i+1)); done >&2\n"
                        f"echo last words {SECRET} >&2; exit 3\n")
        tables = (agent("lost", [str(lost)]) + agent("orphan", [str(orphan)]) +
                  agent("talker", [str(talker)]) +
                  agent("shell", ["/bin/sh", "-c", "no-such-program --acp"]))
        config = config_with(tmp_path, {"fake": []}, tables)
        return new_gateway(env=fake_env(acpx_bin=FAKE_ACPX, **settings),
                           flags=["--config", str(config)])
    return make


def failed_create(app, name, status):
    answer = app.create(name)
    body = answer.json()
    assert answer.status_code == status, body
    assert body["request_id"] == header_of(answer, "X-Request-Id")
    assert app.ids(include_closed=True) == [], "no row is left"
    return body


def test_an_agent_whose_interpreter_is_not_on_the_path_says_so_and_what_to_do(forge):
    gateway = forge()
    app = Talker(gateway)
    body = failed_create(app, "lost", 502)
    assert body["code"] == "agent_exited"
    assert set(body) == {"ok", "code", "detail", "request_id", "stderr"}
    assert INTERPRETER in body["stderr"]
    assert body["detail"].startswith(f"lost exited with code 127. {INTERPRETER} is not on the PATH")
    line = early_end(gateway)
    assert (line["agent"], line["app"], line["code"]) == ("lost", app.name, "agent_exited")
    assert INTERPRETER in line["stderr"] and line["why"] == body["detail"]


def test_a_failed_create_keeps_its_sentence_in_the_audit(forge):
    gateway = forge()
    app = Talker(gateway)
    body = failed_create(app, "lost", 502)
    line, = gateway.admin.get("/admin/events", params={"app": app.name}).json()["events"][:1]
    assert line["event"] == "create_failed" and line["app_name"] == app.name
    assert line["meta"] == {"agent": "lost", "model": None, "code": "agent_exited",
                            "error": body["detail"]}


def test_a_shell_that_does_not_find_its_program_counts_as_well(forge):
    body = failed_create(Talker(forge()), "shell", 502)
    assert "no-such-program is not on the PATH" in body["detail"]


def test_a_script_whose_first_line_leads_nowhere_is_told_from_a_missing_agent(forge):
    body = failed_create(Talker(forge()), "orphan", 503)
    assert body["code"] == "agent_not_found"
    assert "interpreter" in body["detail"] and "/nowhere" not in json.dumps(body)


def test_what_an_agent_says_before_it_dies_is_masked_and_bounded(forge):
    gateway = forge()
    body = failed_create(Talker(gateway), "talker", 502)
    assert body["detail"] == "talker exited with code 3."
    assert body["stderr"].endswith("last words ***\n")
    assert "line 3999" in body["stderr"] and "line 0\n" not in body["stderr"]
    assert len(body["stderr"].encode()) <= TAIL_BYTES_MAX
    line = early_end(gateway)
    assert "last words ***" in line["stderr"] and len(line["stderr"].encode()) <= 4096
    assert SECRET not in gateway.stderr()


def test_a_run_without_its_interpreter_says_what_to_do(new_gateway, tmp_path):
    lost = script(tmp_path, "claude", f"#!/usr/bin/env {INTERPRETER}\n")
    gateway = new_gateway(env=fake_env(claude_bin=lost))
    app = App(gateway)
    body = assert_failure(app.run("hello"), 502, "agent_exit")
    assert body["error"].startswith(f"claude exit 127: {INTERPRETER} is not on the PATH")
    assert INTERPRETER in body["stderr"]
    run, = gateway.admin.get("/admin/runs").json()["runs"]
    assert (run["outcome"], run["error"]) == ("agent_exit", body["error"])
    assert early_end(gateway)["why"] == body["error"]


def test_failed_runs_and_turns_keep_their_sentence_in_the_audit(forge):
    gateway = forge()
    app = Talker(gateway)
    long_sentence = f"key {SECRET} " + "ä" * 2000
    body = assert_failure(app.run({"error": long_sentence}), 502, "agent_error")
    run, = gateway.admin.get("/admin/runs").json()["runs"]
    assert run["error"] == body["error"]
    assert len(run["error"]) <= SENTENCE_CHARACTERS_MAX and SECRET not in run["error"]

    session = app.session()
    told = session.turn({"exit": 7}).json()
    events = gateway.admin.get("/admin/events", params={"app": app.name}).json()["events"]
    turn, = [event for event in events if event["event"] == "turn"]
    assert turn["meta"]["code"] == "agent_exited"
    assert turn["meta"]["error"] == told["error"] == "fake exited with code 7."
    row, = turn_rows(gateway, session)
    assert row["error"] == told["error"]
    session.close()

    assert app.run("hello").status_code == 200
    newest = gateway.admin.get("/admin/runs").json()["runs"][0]
    assert (newest["outcome"], newest["error"]) == ("ok", None)


def test_an_agent_that_is_ended_by_its_session_is_not_reported(forge):
    gateway = forge()
    session = Talker(gateway).session()
    session.close()
    assert gateway.stop() == 0
    assert early_ends(gateway) == []
