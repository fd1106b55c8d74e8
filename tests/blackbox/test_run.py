"""POST /run: its fields, limits, statuses and bodies, and how the agent's program is driven."""
import base64
import contextlib
import json
import os
import re
import sqlite3
import stat
import time

import pytest

from agents import (FAKE, FAILURE_KEYS, App, assert_failure, assert_nothing_left, assert_success,
                    body_of, fake_env, processes, row_of, rows, settled_rows)
from answers import assert_error
from gateway import Gateway
from wire import GET_HEALTH, Wire, bearer, request, with_body

KEY = "the-key-of-the-owner"  # looks like no token: only its variable tells
LOGIN_HINT = ("The agent claude is not logged in: run `clawdforge agent login claude` on the gateway's "
              "machine.")
PLAIN_ARGUMENTS = ["-p", "--output-format", "json", "--model", "sonnet", "--setting-sources", "",
                   "--strict-mcp-config", "--no-session-persistence", "--permission-mode", "manual"]


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    """One gateway for the runs that leave it as it was: none of them closes the door."""
    owner = {"ANTHROPIC_API_KEY": KEY, "OWNER_SECRET": "x" * 20, "AWS_SECRET_ACCESS_KEY": "y" * 20,
             "NODE_OPTIONS": "--inspect", "LANG": "C.UTF-8", "TZ": "UTC"}
    gateway = Gateway(tmp_path_factory.mktemp("run") / "gateway",
                      env={**fake_env(), **owner}, files_soft=1024).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def app(forge):
    return App(forge)


def with_file(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return path


# What a good answer has

def test_an_answer_has_exactly_its_four_fields_and_the_rest_in_headers(app):
    answer = app.run({"result": "Hello."})
    body = assert_success(answer, "Hello.")
    assert body["stop_reason"] == "end_turn"
    assert answer.headers["Content-Type"] == "application/json"
    assert re.fullmatch(r"[A-Za-z0-9_-]+", answer.headers["X-Clawdforge-Run-Id"])
    assert answer.headers["X-Clawdforge-Cost-Usd"] == "0.25"
    assert answer.headers["X-Clawdforge-Input-Tokens"] == "100"
    assert answer.headers["X-Clawdforge-Output-Tokens"] == "20"


def test_usage_is_in_the_body_when_it_is_asked_for(app):
    answer = app.run({}, include=["usage", "weather"])
    body = answer.json()
    assert set(body) == {"ok", "result", "duration_ms", "stop_reason", "run_id", "cost_usd",
                         "usage"}
    assert body["run_id"] == answer.headers["X-Clawdforge-Run-Id"]
    assert body["cost_usd"] == 0.25
    assert body["usage"] == {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 30,
                             "cache_write_tokens": 40}


def test_what_the_agent_does_not_tell_is_null_and_has_no_header(app):
    answer = app.run({"keys": {"stop_reason": None, "usage": None, "total_cost_usd": None}},
                     include=["usage"])
    body = answer.json()
    assert (body["stop_reason"], body["usage"], body["cost_usd"]) == (None, None, None)
    names = [name for name in answer.headers if name.startswith("x-clawdforge-")]
    assert names == ["x-clawdforge-run-id"]


@pytest.mark.parametrize("said, result", [
    ("text", "text"), ("", ""), ("  blanks  ", "  blanks  "), (' [1, 2]\n', [1, 2]),
    ('{"a": [1, null]}', {"a": [1, None]}), ("true", True), ("null", None), ("-0.5e3", -500),
    ('"quoted"', "quoted"),
    ('```json\n{"a": 1}\n```', {"a": 1}), ("```\nplain\ntext\n```\n", "plain\ntext"),
    ("~~~\n[1]\n~~~", [1]), ("so: ```json\n[1]\n```", "so: ```json\n[1]\n```"),
    ('{"a": 1} and more', '{"a": 1} and more'), ("{'a': 1}", "{'a': 1}"), ("NaN", "NaN"),
    ("Grüße 🦀 漢字 \u2028 \u0007 \"\\", "Grüße 🦀 漢字 \u2028 \u0007 \"\\"),
    ('{"k": "🦀\\u0000"}', {"k": "🦀\0"})])
def test_a_result_is_json_where_it_is_json_and_else_the_text(app, said, result):
    assert_success(app.run({"result": said}), result)


@pytest.mark.parametrize("number", [
    "12345678901234567890123456789", "0.1234567890123456789012345678901", "1.10", "1e400",
    "-9223372036854775809"])
def test_a_number_keeps_all_its_digits(app, number):
    answer = app.run({"result": f'{{"n":{number}}}'})
    assert f'"result":{{"n":{number}}}' in answer.text


def test_a_result_that_is_no_text_counts_as_well(app):
    assert_success(app.run({"keys": {"result": {"a": [1]}}}), {"a": [1]})


def test_a_large_prompt_and_a_large_answer_pass_whole(app, forge):
    prompt = "The quick brown 🦊 jumps. " * 150_000
    answer = app.run(prompt)
    assert_success(answer, "echo: " + prompt)
    row = row_of(forge, answer)
    assert row["prompt_bytes"] == len(prompt.encode())
    assert row["result_bytes"] == len(("echo: " + prompt).encode())


def test_the_demo_answers_without_any_login(app):
    answer = app.run("hello", agent="demo")
    assert_success(answer, "You said: hello")
    assert answer.headers["X-Clawdforge-Cost-Usd"] == "0"


def test_the_ledger_the_audit_and_the_answer_agree(app, forge):
    begun = int(time.time())
    answer = app.run({"result": "four"}, model="opus", include=["usage"])
    body, run_id = answer.json(), answer.headers["X-Clawdforge-Run-Id"]
    row = row_of(forge, answer)
    assert row["ended_at"] is not None, "an answer is given after it is settled"
    listed, = [run for run in forge.admin.get("/admin/runs?app=app").json()["runs"]
               if run["run_id"] == run_id]
    for run in (row, listed):
        assert (run["app_name"], run["agent"], run["model"]) == ("app", "claude", "opus")
        assert (run["state"], run["outcome"], run["stop_reason"]) == ("succeeded", "ok", "end_turn")
        assert begun <= run["started_at"] <= run["ended_at"] <= time.time()
        assert (run["prompt_bytes"], run["result_bytes"]) == (len('{"result": "four"}'), 4)
        assert (run["duration_ms"], run["cost_usd"]) == (body["duration_ms"], body["cost_usd"])
        assert run["instance_id"]
    assert listed["usage"] == body["usage"]
    assert {name: row[name] for name in body["usage"]} == body["usage"]


def test_neither_prompt_nor_answer_is_kept_anywhere(app, forge):
    marks = [f"{word}-{os.urandom(8).hex()}" for word in ("prompt", "system", "answer")]
    system = marks[1] + "." * 70_000
    assert_success(app.run({"result": marks[2], "x": marks[0]}, system=system), marks[2])
    app.run({"error": "of its own", "stderr": marks[2], "x": marks[0]}, system=marks[1])
    assert_nothing_left(forge)
    for path in [p for p in forge.root.rglob("*") if p.is_file()]:
        content = path.read_bytes()
        assert not [mark for mark in marks if mark.encode() in content], path


# Who may ask, and how

def test_only_an_app_may_ask(forge):
    body = {"prompt": "x"}
    assert_error(forge.client().post("/run", json=body), 401, "unauthorized")
    assert_error(forge.admin.post("/run", json=body), 403, "wrong_token_kind")


def test_path_method_and_body_are_checked(forge, app):
    client = forge.client(app.token)
    wrong_method = client.get("/run")
    assert_error(wrong_method, 405, "method_not_allowed")
    assert wrong_method.headers["Allow"] == "POST"
    assert_error(client.post("/run/", json={"prompt": "x"}), 404, "path_not_found")
    assert_error(client.post("/run", content=b"{"), 400, "bad_json")
    assert_error(client.post("/run", content=b'["prompt"]'), 400, "bad_json")
    assert_error(client.post("/run", content=b"prompt=x", headers={
        "Content-Type": "application/x-www-form-urlencoded"}), 415, "unsupported_content_type")
    assert_error(client.post("/run", content=b""), 422, "validation_failed")


def test_a_body_over_the_limit_is_413(new_gateway):
    app = App(new_gateway(env=fake_env(max_body_bytes=1000)))
    assert_error(app.run("x" * 1000), 413, "body_too_large")
    assert_success(app.run("x" * 900))


@pytest.mark.parametrize("fields, field", [
    ({}, "prompt"), ({"prompt": None}, "prompt"), ({"prompt": 5}, "prompt"),
    ({"prompt": ["x"]}, "prompt"), ({"prompt": ""}, "prompt"), ({"prompt": " \t\r\n"}, "prompt"),
    ({"agent": "a b"}, "agent"), ({"agent": ""}, "agent"), ({"agent": 1}, "agent"),
    ({"model": ""}, "model"), ({"model": "-x"}, "model"), ({"model": "--verbose"}, "model"),
    ({"model": "a\nb"}, "model"), ({"model": "x" * 201}, "model"),
    ({"model": {}}, "model"), ({"system": 5}, "system"), ({"system": "a\0b"}, "system"),
    ({"system_mode": "prepend"}, "system_mode"), ({"system_mode": True}, "system_mode"),
    ({"effort": "huge"}, "effort"), ({"effort": ""}, "effort"), ({"effort": 3}, "effort"),
    ({"files": "ff_x"}, "files"), ({"files": [1]}, "files"), ({"files": {}}, "files"),
    ({"files": ["ff_x"] * 33}, "files"), ({"timeout_secs": 4}, "timeout_secs"),
    ({"timeout_secs": 3601}, "timeout_secs"), ({"timeout_secs": "60"}, "timeout_secs"),
    ({"timeout_secs": 5.5}, "timeout_secs"), ({"timeout_secs": True}, "timeout_secs"),
    ({"timeout_secs": -(2 ** 63)}, "timeout_secs"), ({"timeout_secs": 2 ** 64}, "timeout_secs"),
    ({"include": "usage"}, "include"), ({"include": [None]}, "include")])
def test_a_wrong_field_is_named_and_nothing_starts(app, forge, fields, field, tmp_path):
    began = tmp_path / "began"
    body = fields if "prompt" in fields or not fields else {
        "prompt": json.dumps({"touch": str(began)}), **fields}
    before = len(rows(forge))
    errors = assert_error(app.post(body), 422, "validation_failed")["errors"]
    assert [error["field"] for error in errors] == [field]
    assert len(rows(forge)) == before and not began.exists()


def test_all_wrong_fields_are_named_at_once(app):
    answer = app.post({"agent": "a b", "effort": "huge", "timeout_secs": 1})
    errors = assert_error(answer, 422, "validation_failed")["errors"]
    assert {error["field"] for error in errors} == {"prompt", "agent", "effort", "timeout_secs"}


def test_an_unknown_agent_is_told_which_there_are(app, forge):
    before = len(rows(forge))
    answer = app.run("x", agent="unheard-of")
    body = answer.json()
    assert (answer.status_code, body["code"]) == (422, "unknown_agent"), body
    assert [error["field"] for error in body["errors"]] == ["agent"]
    for name in ("claude", "codex", "demo", "gemini", "opencode"):
        assert name in body["detail"]
    assert len(rows(forge)) == before


def test_null_is_absent_and_unknown_fields_are_ignored(app):
    nulls = dict.fromkeys(["agent", "model", "system", "system_mode", "effort", "files",
                           "timeout_secs", "include"])
    report = app.report(**nulls, colour="red", session_id=7)
    assert report["argv"] == [str(FAKE), *PLAIN_ARGUMENTS]
    assert report["files"] == []


@pytest.mark.parametrize("fields", [
    {"timeout_secs": 5}, {"timeout_secs": 3600}, {"files": []}, {"include": []}, {"system": ""},
    {"model": "m" * 200}, {"model": "a b"}, {"model": "claude-opus-4-1-20250805[1m]"}, {"model": "eu.x/y:z@1"}])
def test_values_at_the_edge_are_allowed(app, fields):
    assert_success(app.run({}, **fields), "ok")


def test_the_configured_maximum_bounds_the_time(new_gateway):
    app = App(new_gateway(env=fake_env(max_timeout_secs=10)))
    assert_error(app.run({}, timeout_secs=11), 422, "validation_failed")
    assert_success(app.run({}, timeout_secs=10))
    assert_success(app.run({}))


# How the program is driven

def test_the_arguments_are_exactly_these_and_the_prompt_is_none(app):
    prompt = {"report": True, "x": "$(id) `id` 'q' \"q\""}
    report = app.report(prompt)
    assert report["argv"] == [str(FAKE), *PLAIN_ARGUMENTS]
    assert report["prompt"] == json.dumps(prompt)


@pytest.mark.parametrize("fields, extra", [
    ({"model": "haiku"}, []), ({"system_mode": "replace"}, []), ({"system": ""}, []),
    ({"effort": "xhigh"}, ["--effort", "xhigh"])])
def test_model_and_effort_become_arguments(app, fields, extra):
    head = ["-p", "--output-format", "json", "--model", fields.get("model", "sonnet")]
    assert app.report(**fields)["argv"][1:] == head + extra + PLAIN_ARGUMENTS[5:]


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
def test_every_effort_is_passed_on(app, effort):
    assert f"--effort {effort}" in " ".join(app.report(effort=effort)["argv"])


@pytest.mark.parametrize("system", ["s", "--verbose", "Be $brief.\nAlways.", "ä" * 70_000])
@pytest.mark.parametrize("mode, option", [("append", "--append-system-prompt-file"),
                                          ("replace", "--system-prompt-file")])
def test_a_system_prompt_goes_through_a_file_that_only_the_owner_can_read(
        app, forge, tmp_path, system, mode, option):
    held = app.hold(tmp_path, {"report": True}, system=system, system_mode=mode).begun()
    file, = [path for path in forge.data_dir.glob("runs/*/tmp/*") if path.is_file()]
    assert file.read_text() == system
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    argv = body_of(held.end())["result"]["argv"]
    assert argv[6:8] == [option, str(file)]
    assert system not in argv, "every user of the machine can read arguments"
    assert_nothing_left(forge)


def test_the_environment_is_an_allow_list(app, forge):
    env = app.report()["env"]
    own = {name: env.pop(name) for name in ("TMPDIR", "CLAUDE_CODE_TMPDIR")}
    switches = {name: env.pop(name) for name in (
        "CLAUDE_CODE_DISABLE_ATTACHMENTS", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")}
    assert set(switches.values()) == {"1"}
    assert 0 <= int(env.pop("CLAUDE_CODE_MAX_RETRIES")) <= 2
    assert env.pop("ENABLE_CLAUDEAI_MCP_SERVERS") == "false"
    assert own["TMPDIR"] == own["CLAUDE_CODE_TMPDIR"]
    assert own["TMPDIR"].startswith(f"{forge.data_dir}/runs/")
    home = env.pop("HOME")
    assert home == own["TMPDIR"].removesuffix("tmp") + "home"
    assert env.pop("CLAUDE_CONFIG_DIR") == f"{home}/.claude"
    assert env == {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": KEY,
                   "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def test_every_run_has_directories_of_its_own(app, forge):
    first, second = app.report(), app.report()
    places = {place for run in (first, second) for place in (run["cwd"], run["env"]["TMPDIR"])}
    assert len(places) == 4
    assert all(place.startswith(f"{forge.data_dir}/runs/") for place in places)
    assert first["files"] == second["files"] == []


def test_the_child_gets_no_descriptor_of_ours_and_the_limit_that_we_found(app):
    report = app.report()
    assert report["descriptors"] == []
    assert report["files_soft"] == 1024
    assert report["uid"] == (os.geteuid() or 1000), "root is another user in the jail"


@pytest.mark.parametrize("prompt", ["/model opus", "/etc/passwd is a file", "//"])
def test_a_leading_slash_is_defused(app, prompt):
    said = app.run(prompt).json()["result"].removeprefix("echo: ")
    assert said == "\n" + prompt


@pytest.mark.parametrize("prompt", [" /model", "@/etc/passwd", "-p", "--version", "a\r\nb\0c"])
def test_any_other_prompt_is_passed_on_as_it_is(app, prompt):
    assert_success(app.run(prompt), "echo: " + prompt)


def test_the_agents_table_adds_to_the_environment(new_gateway, tmp_path):
    config = with_file(tmp_path / "config.toml", """
        [agents.claude]
        command = ["claude-agent-acp"]
        env = ["PASSED_ON", "NOT_THERE", "CLAWDFORGE_LOG_LEVEL"]
        set_env = { DISABLE_TELEMETRY = "0", OF_THE_TABLE = "yes", CLAWDFORGE_X = "no" }
    """, 0o600)
    env = {**fake_env(log_level="info"), "PASSED_ON": "as it is", "KEPT_BACK": "x"}
    seen = App(new_gateway(env=env, flags=["--config", str(config)])).report()["env"]
    assert (seen["PASSED_ON"], seen["OF_THE_TABLE"], seen["DISABLE_TELEMETRY"]) == (
        "as it is", "yes", "0")
    assert not [name for name in seen if name.startswith("CLAWDFORGE_")]
    assert not {"KEPT_BACK", "NOT_THERE"} & set(seen)


def test_the_owners_settings_and_another_default_model_can_be_configured(new_gateway):
    app = App(new_gateway(env=fake_env(claude_owner_settings="on", default_model="haiku")))
    assert app.report()["argv"][1:] == ["-p", "--output-format", "json", "--model", "haiku",
                                        "--permission-mode", "manual"]


def test_the_program_is_found_in_the_path(new_gateway, tmp_path):
    (tmp_path / "claude").symlink_to(FAKE)
    env = {**fake_env(), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    del env["CLAWDFORGE_CLAUDE_BIN"]
    assert_success(App(new_gateway(env=env)).run({}), "ok")


# Attached files

def test_files_are_attached_by_number_and_listed_in_the_prompt(app):
    tokens = [app.upload("notes.TXT", b"first"), app.upload("../../evil.sh/..", b"second"),
              app.upload("data.json", b"third")]
    prompt = {"report": True}
    report = app.report(prompt, files=[*tokens, tokens[0]])
    assert report["contents"] == {"attachment-1.txt": "first", "attachment-2": "second",
                                  "attachment-3.json": "third", "attachment-4.txt": "first"}
    assert report["prompt"].startswith(json.dumps(prompt))
    manifest = report["prompt"].removeprefix(json.dumps(prompt)).splitlines()
    assert [line for line in manifest if line.startswith("- ")] == [
        "- attachment-1.txt (notes.TXT)", "- attachment-2", "- attachment-3.json (data.json)",
        "- attachment-4.txt (notes.TXT)"]
    assert "/" not in "".join(manifest), "only relative names"
    assert report["argv"] == [str(FAKE), *PLAIN_ARGUMENTS]


def test_an_upload_is_the_same_for_every_run(app, forge):
    token = app.upload("a.txt", b"as it was")
    for _ in range(2):
        assert app.report(files=[token])["contents"] == {"attachment-1.txt": "as it was"}
        assert_nothing_left(forge)


def test_an_unknown_or_foreign_file_is_404_before_anything_starts(app, forge, tmp_path):
    own, foreign = app.upload("a.txt", b"x"), App(forge, "stranger").upload("b.txt", b"y")
    began, before, bodies = tmp_path / "began", len(rows(forge)), []
    for files in (["ff_" + "A" * 43], [own, foreign], [foreign], ["nonsense"], ["../x", own]):
        body = assert_error(app.run({"touch": str(began)}, files=files), 404, "file_not_found")
        bodies.append({key: value for key, value in body.items() if key != "request_id"})
    assert bodies == bodies[:1] * len(bodies), "an app does not learn what others have"
    assert len(rows(forge)) == before and not began.exists()
    assert_success(app.run({}, files=[own]))


# What the program prints, and when it is answered

@pytest.mark.parametrize("script", [
    {"lines": ["noise", "", "{", '{"type":"system"}', '{"type":"result"', "[]", "null"]},
    {"pretty": True}, {"verbose": True}, {"no_newline": True}, {"split_ms": 50},
    {"stdout_bytes": 3_000_000}, {"stderr": "warning: x"}, {"stderr_bytes": 3_000_000},
    {"exit": 1}, {"exit": 143}, {"signal": 9}, {"signal": 15}, {"close": ["stderr"]},
    {"then_lines": ["noise", "{"]}])
def test_a_result_counts_whatever_else_happens(app, script):
    assert_success(app.run({"result": "yes", **script}), "yes")


def test_the_first_of_two_results_counts(app):
    other = json.dumps({"type": "result", "is_error": True, "result": "second"})
    assert_success(app.run({"result": "first", "repeat": 2, "then_lines": [other]}), "first")


def test_a_program_that_reads_no_prompt_may_answer_all_the_same(app):
    for script in ({"result": "unread"}, {"result": "unread", "close": ["stdin"]}):
        assert_success(app.run("x" * 5_000_000, system=json.dumps(script)), "unread")


def test_the_answer_comes_with_the_result_line_and_not_with_the_programs_end(
        new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(kill_grace_ms=15_000))
    gate, pid_file = tmp_path / "gate", tmp_path / "pid"
    answer = App(gateway).run({"then_wait_for": str(gate), "ignore_term": True,
                               "pid_file": str(pid_file)})
    assert pid_file.exists() and processes(gateway), "the program waits for the gate"
    assert_success(answer, "ok")
    assert row_of(gateway, answer)["ended_at"] is not None
    gate.touch()
    assert_nothing_left(gateway)


# Failures

@pytest.mark.parametrize("known, status, code, error", [
    ("prompt_too_long", 413, "prompt_too_long", "Prompt is too long"),
    ("unknown_model", 422, "unknown_model", "There's an issue with the selected model (x). It may "
                                            "not exist or you may not have access to it."),
    ("overloaded", 502, "api_overloaded",
     "API Error: 529 Overloaded. This is a server-side issue."),
    ("server_error", 502, "api_error", "API Error: 500 Internal server error."),
    ("unreachable", 502, "api_unreachable", "API Error: Connection refused (ECONNREFUSED)")])
def test_a_known_failure_is_told_by_its_own_status_and_code(app, forge, known, status, code, error):
    answer = app.run({"known": known})
    assert_failure(answer, status, code, error)
    row = row_of(forge, answer)
    assert (row["state"], row["outcome"], row["exit_code"]) == ("failed", code, 1)
    assert (row["stop_reason"], row["result_bytes"]) == ("error", None)


@pytest.mark.parametrize("known, status, code, error", [
    ("agent_not_logged_in", 503, "agent_not_logged_in", LOGIN_HINT),
    ("bad_key", 503, "agent_not_logged_in", LOGIN_HINT),
    ("usage_limit", 429, "account_limit", "Claude AI usage limit reached"),
    ("session_limit", 429, "account_limit",
     "You've hit your session limit · resets 3:30pm (Europe/Berlin)"),
    ("rate_limited", 429, "account_limit", "API Error: Request rejected (429) · slow down")])
def test_a_failure_of_the_account_says_when_to_come_back(new_gateway, known, status, code, error):
    gateway = new_gateway(env=fake_env())
    answer = App(gateway).run({"known": known})
    assert_failure(answer, status, code, error)
    assert 1 <= int(answer.headers["Retry-After"]) <= 86_400
    assert row_of(gateway, answer)["outcome"] == code


@pytest.mark.parametrize("script, code, error", [
    ({"error": "It went wrong."}, "agent_error", "It went wrong."),
    ({"error": "It went wrong.", "exit": 0}, "agent_error", "It went wrong."),
    ({"error": "two\n lines\t here "}, "agent_error", "two lines here"),
    ({"silent": True}, "agent_silent", "claude exit 0"),
    ({"silent": True, "exit": 3}, "agent_exit", "claude exit 3"),
    ({"silent": True, "exit": 143}, "agent_exit", "claude exit 143"),
    ({"silent": True, "signal": 9}, "agent_signal", "claude signal 9"),
    ({"silent": True, "signal": 15}, "agent_signal", "claude signal 15"),
    ({"silent": True, "signal": 6}, "agent_signal", "claude signal 6"),
    ({"silent": True, "lines": ["Hello."]}, "agent_nonsense", "claude exit 0"),
    ({"silent": True, "lines": ["Hello."], "exit": 2}, "agent_exit", "claude exit 2"),
    ({"half": True}, "agent_nonsense", "claude exit 0"),
    ({"half": True, "signal": 11}, "agent_signal", "claude signal 11"),
    ({"keys": {"type": "answer"}}, "agent_nonsense", "claude exit 0"),
    ({"keys": {"result": None}}, "agent_nonsense", "claude exit 0"),
    ({"raw": base64.b64encode(b"\x00\xff{}\n[]\n").decode()}, "agent_nonsense", "claude exit 0"),
    ({"close": ["stdout"]}, "agent_silent", "claude exit 0"),
    ({"close": ["stdin", "stdout", "stderr"], "exit": 5}, "agent_exit", "claude exit 5"),
    ({"stdout_bytes": 34 * 1024 * 1024, "sleep": 600}, "agent_output_too_large", None)])
def test_every_other_way_to_fail_is_502(app, forge, script, code, error):
    answer = app.run(script)
    body = assert_failure(answer, 502, code, error)
    row = row_of(forge, answer)
    assert (row["state"], row["outcome"]) == ("failed", code)
    if error and error.startswith("claude exit"):
        assert (row["exit_code"], row["exit_signal"]) == (int(error.split()[-1]), None)
    if error and error.startswith("claude signal"):
        assert (row["exit_code"], row["exit_signal"]) == (None, int(error.split()[-1]))
    assert row["duration_ms"] == body["duration_ms"]


def test_a_failure_with_usage_still_tells_its_cost(app, forge):
    answer = app.run({"error": "half-way", "keys": {
        "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 8}}})
    assert_failure(answer, 502, "agent_error", "half-way")
    row = row_of(forge, answer)
    assert (row["cost_usd"], row["input_tokens"], row["output_tokens"]) == (0.5, 7, 8)
    assert answer.headers["X-Clawdforge-Cost-Usd"] == "0.5"


def test_the_error_is_masked_and_at_most_500_characters(app):
    token = "sk-ant-api03-" + "Ab1" * 20
    error = app.run({"error": f"bad {token} and {KEY} " + "wörd " * 400}).json()["error"]
    assert error.startswith("bad *** and *** wörd")
    assert len(error) <= 500


def test_stderr_is_the_last_8_kib(app):
    body = app.run({"stderr": "the beginning\n", "stderr_bytes": 100_000, "silent": True,
                    "exit": 1}).json()
    assert set(body) == FAILURE_KEYS
    assert 7_000 < len(body["stderr"].encode()) <= 8_192
    assert set(body["stderr"]) == {"x", "\n"}
    short = app.run({"stderr": "the beginning\nthe end\n", "silent": True, "exit": 1}).json()
    assert short["stderr"].strip() == "the beginning\nthe end"


def test_stderr_is_valid_text_without_tokens(app):
    secrets = ["sk-ant-api03-" + "Ab1" * 20, "cf_" + "A1b" * 14, "ghp_" + "x1Y" * 12, KEY,
               "hunter2hunter2"]
    raw = "caf\udce9 \udcff\udcfe key=%s tok %s, %s; %s password=%s ok 🦀\n" % tuple(secrets)
    script = {"stderr_raw": base64.b64encode(raw.encode("utf-8", "surrogateescape")).decode(),
              "silent": True, "exit": 1}
    stderr = app.run(script).json()["stderr"]
    assert not [secret for secret in secrets if secret in stderr], stderr
    assert "caf" in stderr and "ok 🦀" in stderr
    assert not re.search("[\ud800-\udfff\0]", stderr)


def test_a_failure_knows_what_was_said_last(app):
    """What is on standard error at the end belongs to the failure, however the two meet."""
    for _ in range(5):
        body = app.run({"silent": True, "exit": 1, "stderr": "last words"}).json()
        assert body["stderr"] == "last words"


@pytest.mark.parametrize("kind", ["absent", "not executable", "a directory", "no interpreter"])
def test_a_program_that_cannot_be_started_is_503(new_gateway, tmp_path, kind):
    program = tmp_path / "claude"
    if kind == "not executable":
        with_file(program, "#!/bin/sh\n", 0o644)
    elif kind == "a directory":
        program.mkdir()
    elif kind == "no interpreter":
        with_file(program, "#!/nowhere/interpreter\n")
    gateway = new_gateway(env=fake_env(claude_bin=program))
    answer = App(gateway).run("hello")
    body = assert_failure(answer, 503, "agent_missing")
    assert "npm install -g @anthropic-ai/claude-code" in body["error"], "what a session says, too"
    assert str(tmp_path) not in body["error"], "the caller is told no path"
    assert row_of(gateway, answer)["state"] == "failed"
    assert_nothing_left(gateway)
    assert_success(App(gateway, "other").run("hello", agent="demo"), "You said: hello")


# When the gateway itself cannot

def test_a_run_that_the_ledger_does_not_take_is_not_asked_and_one_it_does_not_settle_is_503(
        new_gateway, tmp_path):
    """Done means committed. The row is settled by a sweep, once the ledger works again."""
    gateway = new_gateway(env=fake_env())
    app, asked = App(gateway), tmp_path / "asked"
    held = app.hold(tmp_path).begun()
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db",
                                            isolation_level=None)) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        not_asked = app.send({"touch": str(asked)})
        for answer in (held.end(), not_asked.read()):
            assert_error(answer, 503, "ledger_unavailable")
            assert int(answer.header("Retry-After")) >= 1
        assert_nothing_left(gateway)
        assert not asked.exists()
        ledger.execute("ROLLBACK")
    assert gateway.admin.post("/admin/sweep").status_code == 200
    row, = settled_rows(gateway, 1)
    assert (row["state"], row["outcome"]) == ("succeeded", "ok")
    assert_success(app.run({}))


def test_a_run_without_a_directory_is_503_and_works_when_there_is_one_again(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env())
    app, asked = App(gateway), tmp_path / "asked"
    place = gateway.data_dir / "runs"
    place.rmdir()
    place.write_text("in the way")
    assert_error(app.run({"touch": str(asked)}), 503, "workspace_unavailable")
    place.unlink()
    assert_success(app.run({}))
    assert not asked.exists() and len(rows(gateway)) == 1
    assert_nothing_left(gateway)


def test_the_program_starts_with_plain_signals_in_a_session_of_its_own(new_gateway, tmp_path):
    """Signals that the gateway ignores or blocks are not ignored or blocked in its children."""
    program = with_file(tmp_path / "claude", """#!/bin/sh
        cat > /dev/null
        signals=$(grep -E '^Sig(Ign|Blk)' /proc/self/status | tr -d '\\t\\n')
        session=$(test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo own)
        echo '{"type":"result","is_error":false,"result":"'$signals $session'"}'
    """)
    for namespace in ("auto", "off"):
        gateway = new_gateway(env=fake_env(claude_bin=program, pid_namespace=namespace))
        assert_success(App(gateway).run("hello"), f"SigBlk:{'0' * 16}SigIgn:{'0' * 16} own")


# On the wire

def test_a_request_behind_a_run_is_answered_after_it(app):
    with Wire(app.gateway) as wire:
        wire.send(app.bytes({"result": "first"}) + app.bytes({"result": "second"})
                  + request("GET /whoami", bearer(app.token)))
        answers = [wire.read() for _ in range(3)]
    assert [answer.json().get("result") for answer in answers] == ["first", "second", None]
    assert answers[2].json()["name"] == "app"


def test_more_requests_than_are_read_ahead_are_answered_behind_a_run(app, tmp_path):
    held = app.hold(tmp_path).begun()
    count = 3_000
    held.wire.send(GET_HEALTH * count)
    assert_success(held.end())
    assert [held.answer().status for _ in range(count)] == [200] * count
    held.hang_up()


def test_a_request_that_comes_while_a_run_goes_on_is_answered_after_it(app, tmp_path):
    held = app.hold(tmp_path).begun()
    held.wire.send(request("GET /whoami", bearer(app.token)))
    assert app.gateway.client().get("/healthz").status_code == 200, "so that it has seen it"
    assert_success(held.end())
    assert held.answer().json()["name"] == "app"
    held.hang_up()


def test_http_1_0_and_chunked_bodies_are_served(app):
    with Wire(app.gateway) as wire:
        wire.send(app.bytes({}).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1))
        answer = wire.read()
        assert_success(answer, "ok")
        assert wire.read() is None
    with Wire(app.gateway) as wire:
        body = json.dumps({"prompt": "{}"}).encode()
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        assert_success(wire.ask(request("POST /run", bearer(app.token),
                                        "Transfer-Encoding: chunked", body=chunks)), "ok")


def test_a_run_is_answered_on_a_connection_that_is_to_close(app):
    body = json.dumps({"prompt": "{}"}).encode()
    with Wire(app.gateway) as wire:
        answer = wire.ask(with_body("POST /run", body, bearer(app.token), "Connection: close"))
        assert_success(answer, "ok")
        assert wire.read() is None


def test_every_run_of_this_file_has_ended_and_left_nothing(forge, app):
    assert_success(app.run({}))
    assert settled_rows(forge, len(rows(forge)))
    assert_nothing_left(forge)
