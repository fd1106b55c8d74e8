"""Sessions, audit, agents and health from the command line; each against a gateway and against none."""
import json
import re
import subprocess

import pytest

from gateway import PROGRAM, SECONDS_MAX, clean_environment, run_program, wait_until

UUID = re.compile(r"[0-9a-f-]{36}\n")


@pytest.fixture
def cli(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("scripts")["token"]}

    def call(*arguments, stdin="", code=0):
        done = run_program(*arguments, "--data-dir", gateway.data_dir, home=gateway.root, env=env,
                           stdin=stdin)
        assert done.returncode == code, (arguments, done.stderr)
        return done.stdout
    call.env = env
    return call


def test_a_conversation(gateway, cli):
    made = cli("session", "new", "--agent", "demo", "--meta", '{"ticket":7}')
    assert UUID.fullmatch(made)
    session = made.strip()
    assert cli("session", "turn", session, "Hello") == "You said: Hello\n"
    assert cli("session", "turn", session, stdin="from a pipe") == "You said: from a pipe\n"
    assert cli("session", "turn", session, "-", stdin="dash") == "You said: dash\n"
    as_json = json.loads(cli("session", "turn", session, "again", "--json"))
    assert as_json["turn_index"] == 4 and as_json["events"]
    state = dict(line.split("\t", 1) for line in cli("session", "get", session).splitlines())
    assert state["turn_count"] == "4" and json.loads(state["meta"]) == {"ticket": 7}
    assert json.loads(cli("session", "get", session, "--json"))["session_id"] == session
    assert cli("session", "list").splitlines()[1].split("\t")[:2] == [session, "demo"]
    assert cli("session", "cancel", session) == "no turn was running\n"
    assert json.loads(cli("session", "cancel", session, "--json"))["cancelled"] is False
    assert cli("session", "close", session) == ""
    assert cli("session", "close", session) == ""
    assert len(cli("session", "list").splitlines()) == 1
    assert "closed" in cli("session", "list", "--closed")
    cli("session", "turn", session, "too late", code=4)


def test_files_go_with_a_turn_and_come_back(gateway, cli):
    notes = gateway.root / "notes.txt"
    notes.write_text("some notes")
    session = cli("session", "new", "--agent", "demo").strip()
    assert "notes.txt" in cli("session", "turn", session, "read it", "--file", notes)
    listed = cli("session", "files", session).splitlines()
    assert listed[0].split("\t") == ["PATH", "BYTES", "CHANGED"]
    path = listed[1].split("\t")[0]
    assert cli("session", "files", session, "--get", path) == "some notes"
    cli("session", "files", session, "--get", "absent/file", code=4)
    cli("session", "turn", session, "x", "--file", gateway.root / "absent", code=2)


def test_run_brings_its_files_and_its_system_prompt(gateway, cli):
    notes = gateway.root / "notes.txt"
    notes.write_text("some notes")
    assert "attachment-1.txt" in cli("run", "--agent", "demo", "--file", notes, "Hello")
    for system in ("Be brief.", notes):
        assert cli("run", "--agent", "demo", "--system", system, "Hello").startswith("You said: Hello")
    cli("run", "--agent", "demo", "--effort", "enormous", "x", code=2)
    cli("run", "--agent", "demo", "--timeout", "1", "x", code=4)
    cli("run", "--agent", "demo", code=2)


def test_a_run_and_a_turn_can_wait_for_a_limit(gateway, cli):
    session = cli("session", "new", "--agent", "demo").strip()
    app, = gateway.admin.get("/admin/tokens").json()["tokens"]
    changed = gateway.admin.patch(f"/admin/tokens/{app['name']}", json={"asks_per_minute": 20})
    assert changed.status_code == 200
    with gateway.client(cli.env["CLAWDFORGE_TOKEN"]) as client:
        ask = lambda: client.post("/run", json={"agent": "demo", "prompt": "x"}).status_code
        for command in (["run", "--agent", "demo"], ["session", "turn", session]):
            wait_until(lambda: ask() == 429, "the app has used its rate up")
            assert cli(*command, "--wait", "late") == "You said: late\n"


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_events_are_printed_one_a_line(cli):
    session = cli("session", "new", "--agent", "demo").strip()
    cli("session", "turn", session, "Hello")
    events = events_of(cli("session", "events", session, "--json"))
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"] == "done"
    lines = cli("session", "events", session).splitlines()
    assert len(lines) == len(events) and lines[-1].split("\t")[1] == "done"
    assert len(events_of(cli("session", "events", session, "--json", "--after", 2))) == len(events) - 2
    cli("session", "close", session)
    followed = events_of(cli("session", "events", session, "--follow", "--json"))
    assert [(e["id"], e["data"]) for e in followed] == [(e["id"], e["data"]) for e in events]


def test_following_survives_a_restart_of_the_gateway(gateway, cli):
    session = cli("session", "new", "--agent", "demo").strip()
    with open(gateway.root / "followed", "wb") as out:
        reader = subprocess.Popen(
            [str(PROGRAM), "session", "events", session, "--follow", "--json", "--data-dir",
             str(gateway.data_dir)], env=clean_environment(gateway.root, cli.env), stdout=out,
            stderr=subprocess.PIPE)
    followed = lambda: events_of((gateway.root / "followed").read_text())
    cli("session", "turn", session, "before")
    wait_until(lambda: followed() and followed()[-1]["event"] == "done", "the first turn is followed")
    gateway.restart()  # on another port
    cli("session", "turn", session, "after")
    cli("session", "close", session)
    assert reader.wait(timeout=SECONDS_MAX) == 0, reader.stderr.read()
    reader.stderr.close()
    written = events_of(cli("session", "events", session, "--json"))
    assert [event["id"] for event in followed()] == [event["id"] for event in written]
    assert [event["event"] for event in followed()].count("done") == 2


def without_memory(page):
    """What the agents of sessions take is measured again and again."""
    return {**page, "sessions": [{**row, "memory_bytes": None} for row in page.get("sessions", [])]}


def test_the_audit_and_the_gateway(gateway, cli):
    session = cli("session", "new", "--agent", "demo").strip()
    cli("run", "--agent", "demo", "Hello")
    for noun, word in (("runs", "ok"), ("sessions", session), ("events", "create")):
        text = cli("audit", noun)
        assert "\t" in text.splitlines()[0] and word in text
        assert without_memory(json.loads(cli("audit", noun, "--json"))) == without_memory(
            gateway.admin.get(f"/admin/{noun}?limit=50").json())
        assert len(cli("audit", noun, "--app", "another").splitlines()) == 1
        assert len(cli("audit", noun, "--limit", 1).splitlines()) == 2
    assert cli("audit", "runs", "--since", "99999999999").count("\n") == 1
    cli("audit", "runs", "--limit", "many", code=2)
    assert cli("agents").splitlines()[0].startswith("AGENT\t") and "demo\t" in cli("agents")
    assert json.loads(cli("agents", "--json")) == gateway.client(
        cli.env["CLAWDFORGE_TOKEN"]).get("/agents").json()
    assert json.loads(cli("health", "--json"))["ok"] is True
    assert dict(line.split("\t") for line in cli("health").splitlines())["ok"] == "true"
    assert json.loads(cli("sweep", "--json"))["ok"] is True


COMMANDS = [["run", "x"], ["upload", "/etc/hostname"], ["session", "new"], ["session", "turn", "i", "x"],
            ["session", "get", "i"], ["session", "list"], ["session", "events", "i"],
            ["session", "events", "i", "--follow"], ["session", "cancel", "i"],
            ["session", "files", "i"], ["session", "files", "i", "--get", "a"],
            ["session", "close", "i"], ["agents"], ["health"], ["sweep"], ["audit", "runs"],
            ["audit", "sessions"], ["audit", "events"], ["audit", "jobs"], ["audit", "deliveries"],
            ["token", "list"], ["token", "mint", "a"],
            ["token", "show", "a"], ["token", "set", "a", "--max-runs", "1"], ["token", "rotate", "a"],
            ["token", "revoke", "a"], ["whoami"]]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_each_command_without_a_gateway(tmp_path, arguments):
    env = {"CLAWDFORGE_TOKEN": "cf_x", "CLAWDFORGE_ADMIN_TOKEN": "x" * 30}
    done = run_program(*arguments, "--data-dir", tmp_path / "none", home=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "no gateway runs" in done.stderr and done.stderr.count("\n") == 1
    away = run_program(*arguments, "--url", "http://127.0.0.1:1", home=tmp_path, env=env)
    assert (away.returncode, away.stdout) == (1, ""), away.stderr
    assert "127.0.0.1:1" in away.stderr and away.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [c for c in COMMANDS if c != ["health"]], ids=" ".join)
def test_each_command_with_a_wrong_token_and_with_none(gateway, tmp_path, arguments):
    env = {"CLAWDFORGE_TOKEN": "cf_x", "CLAWDFORGE_ADMIN_TOKEN": "x" * 30}
    done = run_program(*arguments, "--url", gateway.url, home=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert done.stderr.count("\n") == 1 and "login" in done.stderr
    none = run_program(*arguments, "--url", gateway.url, home=tmp_path)
    assert (none.returncode, none.stdout) == (3, ""), none.stderr
    verbose = run_program(*arguments, "-v", "--url", gateway.url, home=tmp_path, env=env)
    assert "HTTP 401" in verbose.stderr and "request id r" in verbose.stderr
    assert "unauthorized" in verbose.stderr
