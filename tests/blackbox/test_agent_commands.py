"""clawdforge agent list, agent check, agent login."""
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

from agents import fake_env
from gateway import PROGRAM, SECONDS_MAX, clean_environment, run_program
from sessions import new_forge

__all__ = ["new_forge"]  # fixtures

LOGIN = """#!/bin/sh
case "$1" in --version) echo "2.1.325 (Claude Code)"; exit ;; esac
read -r code
echo "$*|$HOME|$PWD|$(id -u)|$code|${CLAWDFORGE_ADMIN_TOKEN-none}|$TERM"
exit 7
"""


def cli(gateway, *arguments, **options):
    return run_program(*arguments, "--data-dir", gateway.data_dir, home=gateway.root, **options)


def test_list_says_where_they_are(gateway):
    done = cli(gateway, "agent", "list")
    assert done.returncode == 0, done
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert head == ["NAME", "PRESENT", "VERSION", "LOGIN", "WHERE", "TESTED"]
    demo = dict(zip(head, next(row for row in rows if row[0] == "demo")))
    assert (demo["PRESENT"], demo["LOGIN"], demo["TESTED"]) == ("true", "not_needed", "tested")
    assert demo["WHERE"] == str(PROGRAM.resolve())
    told = json.loads(cli(gateway, "agent", "list", "--json").stdout)
    assert told == gateway.admin.get("/agents").json()


def test_without_a_gateway(tmp_path):
    for command in (["agent", "list"], ["agent", "check", "demo"]):
        done = run_program(*command, "--data-dir", tmp_path / "data", home=tmp_path)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert "no gateway" in done.stderr


def test_check_asks_and_leaves_no_app_behind(gateway):
    done = cli(gateway, "agent", "check", "demo")
    assert (done.returncode, done.stdout) == (0, "You said: Reply with the single word pong.\n")
    assert "demo answered in" in done.stderr
    body = json.loads(cli(gateway, "agent", "check", "demo", "--json").stdout)
    assert set(body) == {"agent", "answer", "duration_ms"}
    assert gateway.admin.get("/admin/tokens").json()["tokens"] == []


def test_check_of_an_agent_that_has_only_sessions(new_forge):
    gateway = new_forge()
    done = cli(gateway, "agent", "check", "fake")
    assert done.returncode == 0 and "pong" in done.stdout, done
    sessions = gateway.admin.get("/admin/sessions")
    assert sessions.status_code == 404 or all(
        session["closed_at"] for session in sessions.json().get("sessions", []))


def test_check_takes_the_app_token_that_is_there(gateway):
    token = gateway.mint("mine")["token"]
    done = cli(gateway, "agent", "check", "demo", env={"CLAWDFORGE_TOKEN": token})
    assert done.returncode == 0, done
    runs = gateway.admin.get("/admin/audit/runs")
    if runs.status_code == 200:
        assert {run["app_name"] for run in runs.json()["runs"]} == {"mine"}


def test_check_of_an_agent_that_fails(new_gateway):
    gateway = new_gateway(env=fake_env(claude_bin="/nowhere/claude"))
    done = cli(gateway, "agent", "check", "claude")
    assert (done.returncode, done.stdout) == (5, "") and "clawdforge:" in done.stderr
    assert gateway.admin.get("/admin/tokens").json()["tokens"] == []
    done = cli(gateway, "agent", "check", "no-such-agent")
    assert done.returncode in (4, 5) and done.stdout == ""


@pytest.fixture
def place():
    """A folder that every user may enter; those of pytest are the user's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def programs(place):
    folder = place / "bin"
    folder.mkdir()
    (folder / "claude").write_text(LOGIN)
    (folder / "claude").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_login_becomes_the_programs_own(tmp_path, programs):
    done = run_program("agent", "login", "claude", "--data-dir", tmp_path / "data", home=tmp_path,
                       env={"PATH": programs, "CLAWDFORGE_ADMIN_TOKEN": "x" * 30, "TERM": "vt100"},
                       stdin="my code\n")
    assert done.returncode == 7, done
    assert done.stdout == f"auth login|{tmp_path}|{tmp_path}|{os.getuid()}|my code|none|vt100\n"
    assert "clawdforge agent check claude" in done.stderr


def test_login_goes_by_the_gateway_that_runs(new_gateway, programs, tmp_path):
    gateway = new_gateway(env={"PATH": programs})
    other = tmp_path / "other-home"
    other.mkdir()
    done = run_program("agent", "login", "claude", "--data-dir", gateway.data_dir, home=other,
                       stdin="\n")
    assert done.returncode == 7, done
    assert done.stdout.split("|")[1:3] == [str(gateway.root), str(gateway.root)], "its home, its PATH"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_logs_in_as_the_gateways_user_and_others_are_told(programs, place):
    data, home = place / "data", place / "home"
    data.mkdir()
    home.mkdir()
    for path in (data, home):
        os.chown(path, 65534, 65534)
    done = run_program("agent", "login", "claude", "--data-dir", data, home=home, stdin="\n",
                       env={"PATH": programs})
    assert done.stdout.split("|")[3] == "65534", done
    os.chown(data, 0, 0)
    done = subprocess.run([PROGRAM, "agent", "login", "claude", "--data-dir", data], user=65534,
                          env=clean_environment(home, {"PATH": programs}), capture_output=True,
                          text=True, timeout=SECONDS_MAX, cwd="/")
    assert done.returncode == 4 and "sudo -u root clawdforge agent login claude" in done.stderr


def test_login_of_what_cannot_be_logged_in(tmp_path):
    def login(*arguments):
        return run_program("agent", "login", *arguments, home=tmp_path)
    assert login("demo").stdout == "The agent demo needs no login.\n"
    done = login("gemini")
    assert done.returncode == 5 and "npm install -g @google/gemini-cli" in done.stderr
    done = login("nothing")
    assert done.returncode == 4 and "agent list" in done.stderr
    assert login().returncode == 2
    assert login("claude", "--no-such-flag", "x").returncode == 2
