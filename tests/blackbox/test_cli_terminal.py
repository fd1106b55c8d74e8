"""The command line at a terminal: live lines, Ctrl-C, Ctrl-D, questions; and nothing of it in pipes."""
import json
import re
import stat

import pytest

from agents import fake_env, running, settled_rows
from gateway import run_program, wait_until
from ptys import Terminal


def terminal(gateway, *arguments, **options):
    return Terminal(*arguments, "--data-dir", gateway.data_dir, home=gateway.root, **options)


@pytest.fixture
def env(gateway):
    return {"CLAWDFORGE_TOKEN": gateway.mint("person")["token"]}


@pytest.fixture
def held(new_gateway, tmp_path):
    """A gateway whose agent answers when the test lets it: the gateway, an app, and the file."""
    gateway = new_gateway(env=fake_env())
    gate = tmp_path / "gate"
    prompt = json.dumps({"wait_for": str(gate), "result": "the answer"})
    return gateway, {"CLAWDFORGE_TOKEN": gateway.mint("person")["token"]}, gate, prompt


def test_a_run_shows_a_live_line_and_then_the_answer(held):
    gateway, env, gate, prompt = held
    with terminal(gateway, "run", prompt, env=env) as shown:
        shown.await_text("asking claude")
        gate.touch()
        assert shown.wait() == 0, shown.screen
        assert shown.screen.endswith("the answer\r\n")
        assert "tokens in" in shown.screen and "$" in shown.screen


def test_the_first_ctrl_c_cancels_the_run_and_tells(held):
    gateway, env, gate, prompt = held
    with terminal(gateway, "run", prompt, env=env) as shown:
        shown.await_text("asking claude")
        wait_until(lambda: running(gateway), "the run has begun")
        shown.send("\x03")
        assert shown.wait() == 130
        assert "cancelled" in shown.screen
    assert [row["outcome"] for row in settled_rows(gateway, 1)] == ["cancelled"]


def test_ctrl_c_in_a_check_of_an_agent_leaves_no_app(new_gateway, tmp_path):
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\nexec sleep 1000\n")
    claude.chmod(0o755)
    gateway = new_gateway(env=fake_env(claude_bin=str(claude)))
    with terminal(gateway, "agent", "check", "claude") as shown:
        wait_until(lambda: running(gateway), "the question is asked")
        app, = gateway.admin.get("/admin/tokens").json()["tokens"]
        assert app["expires_at"] > app["created_at"]
        shown.send("\x03")
        assert shown.wait() == 130
    assert gateway.admin.get("/admin/tokens").json()["tokens"] == []


def test_no_colour_means_no_escape_codes_and_no_live_line(held):
    gateway, env, gate, prompt = held
    with terminal(gateway, "run", prompt, env=env | {"NO_COLOR": "1"}) as shown:
        wait_until(lambda: running(gateway), "the run has begun")
        gate.touch()
        assert shown.wait() == 0
        assert shown.screen == "the answer\r\n"


def test_ctrl_c_cancels_a_turn_and_the_session_goes_on(gateway, env):
    session = run_program("session", "new", "--agent", "demo", "--data-dir", gateway.data_dir,
                          home=gateway.root, env=env).stdout.strip()
    client = gateway.client(env["CLAWDFORGE_TOKEN"])
    with terminal(gateway, "session", "turn", session, "slow 600", env=env) as shown:
        wait_until(lambda: client.get(f"/sessions/{session}").json()["busy"], "the turn runs")
        shown.await_text("asking")
        shown.send("\x03")
        assert shown.wait() == 130
        assert "cancelled" in shown.screen
    wait_until(lambda: not client.get(f"/sessions/{session}").json()["busy"], "it is cancelled")


@pytest.mark.parametrize("typed", ["Hello there\n\x04", "Hello there\x04"])
def test_a_prompt_is_read_from_the_terminal_until_one_ctrl_d(gateway, env, typed):
    with terminal(gateway, "run", "--agent", "demo", env=env) as shown:
        shown.await_text("Ctrl-D")
        shown.send(typed)
        assert shown.wait() == 0, shown.screen
        assert "You said: Hello there" in shown.screen


def test_tables_fit_the_terminal(gateway, env):
    with terminal(gateway, "token", "list", columns=60) as shown:
        assert shown.wait() == 0
        lines = re.sub(r"\x1b\[[0-9]*m", "", shown.screen).splitlines()
        assert "NAME" in lines[0] and max(map(len, lines)) <= 60, shown.screen


def test_a_terminal_without_a_token_is_offered_one(gateway):
    with terminal(gateway, "run", "--agent", "demo", "Hello") as shown:
        shown.await_text("[Y/n]")
        shown.send("\n")
        assert shown.wait() == 0, shown.screen
        assert "You said: Hello" in shown.screen
    stored = gateway.root / ".config/clawdforge/cf.env"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert [t["name"] for t in gateway.admin.get("/admin/tokens").json()["tokens"]] == ["this-terminal"]
    again = run_program("run", "--agent", "demo", "Again", "--data-dir", gateway.data_dir,
                        home=gateway.root)
    assert again.stdout == "You said: Again\n", again.stderr
    stored.unlink()
    with terminal(gateway, "run", "--agent", "demo", "Hello") as shown:
        shown.await_text("[Y/n]")
        shown.send("y\n")
        assert shown.wait() == 0, shown.screen
    names = {t["name"] for t in gateway.admin.get("/admin/tokens").json()["tokens"]}
    assert names == {"this-terminal", "this-terminal-2"}


def test_the_offer_may_be_refused(gateway):
    with terminal(gateway, "run", "--agent", "demo", "Hello") as shown:
        shown.await_text("[Y/n]")
        shown.send("n\n")
        assert shown.wait() == 3
    assert not (gateway.root / ".config").exists()


def test_login_does_not_echo_the_token(gateway):
    token = gateway.mint("typed")["token"]
    with Terminal("login", gateway.url, home=gateway.root) as shown:
        shown.await_text("Token for")
        shown.send(token + "\n")
        assert shown.wait() == 0, shown.screen
        assert token not in shown.screen and "the app typed" in shown.screen


def test_a_pipe_gets_no_escape_codes(gateway, env):
    said = "\x1b[31mred\x1b[0m \x1b]0;title\x07 end"
    done = run_program("run", "--agent", "demo", said, "--data-dir", gateway.data_dir,
                       home=gateway.root, env=env | {"TERM": "xterm"})
    assert done.returncode == 0 and "\x1b" not in done.stdout and "red" in done.stdout
    for arguments in (["token", "list"], ["help"], ["agents"], ["session", "list"], ["health"]):
        shown = run_program(*arguments, *([] if arguments == ["help"] else
                                          ["--data-dir", gateway.data_dir]),
                            home=gateway.root, env=env | {"TERM": "xterm"})
        assert shown.returncode == 0 and "\x1b" not in shown.stdout + shown.stderr
    header = run_program("token", "list", "--data-dir", gateway.data_dir, home=gateway.root).stdout
    assert header.splitlines()[0].split("\t")[:2] == ["NAME", "CREATED"]
