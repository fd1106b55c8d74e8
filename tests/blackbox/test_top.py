"""`clawdforge top` in a real terminal (tmux) and in a pipe."""
import re

import pytest

from gateway import run_program, wait_until
from terminals import Terminal, assert_screen, steady


@pytest.fixture
def top(gateway, tmp_path):
    opened = []

    def open_top(**size):
        terminal = Terminal(tmp_path, "top", "--url", gateway.url, "--interval", "1",
                            env={"CLAWDFORGE_ADMIN_TOKEN": gateway.admin_token}, **size)
        opened.append(terminal)
        return terminal
    yield open_top
    for terminal in opened:
        terminal.close()


def steady_top(screen):
    screen = re.sub(r"(?m)^(claude|codex|gemini|opencode) .*$", r"\1 …", screen)
    screen = re.sub(r"clawdforge \d+\.\d+\.\d+", "clawdforge VERSION", steady(screen))
    return re.sub(r"0\.1\.0|connections \d+", "…", screen)


def test_it_shows_a_gateway_and_leaves_the_terminal_as_it_was(gateway, top):
    terminal = top()
    screen = terminal.wait_for("BUSY SESSION")
    assert len(screen.splitlines()) <= 24 and "before" not in screen
    assert_screen("top", terminal, without=steady_top)
    with gateway.client(gateway.mint("me")["token"]) as client:
        session = client.post("/sessions", json={"agent": "demo"}).json()["session_id"]
        # The turn goes on when its caller has gone.
        with client.stream("POST", f"/sessions/{session}/turn",
                           json={"prompt": "slow 1000", "stream": True}):
            pass
        terminal.wait_for(session)
        terminal.wait_for("agents 1")
        client.post(f"/sessions/{session}/cancel")
    wait_until(lambda: session not in terminal.screen(), "the session is not busy any more")
    terminal.key("q")
    left = terminal.wait_for("left with 0")
    assert left == "before\nleft with 0\n"


def test_it_follows_the_size_of_the_terminal(top):
    terminal = top(columns=120, rows=30)
    terminal.wait_for("BUSY SESSION")
    terminal.resize(50, 12)
    wait_until(lambda: "SINCE" not in terminal.screen() and "AGENT" in terminal.screen(),
               "the lines are cut to the width")
    terminal.key("q")
    terminal.wait_for("left with 0")


def test_it_says_that_a_gateway_is_gone_and_finds_it_again(gateway, top):
    gateway.listen = f"127.0.0.1:{gateway.port}"
    terminal = top()
    terminal.wait_for("BUSY SESSION")
    gateway.stop()
    terminal.wait_for("no answer, trying again")
    gateway.start()
    wait_until(lambda: "no answer" not in terminal.screen(), "it is back")


def test_a_pipe_gets_the_figures_once_and_no_escape_codes(gateway, tmp_path):
    done = run_program("top", "--url", gateway.url, home=tmp_path,
                       env={"CLAWDFORGE_ADMIN_TOKEN": gateway.admin_token, "TERM": "xterm"})
    assert done.returncode == 0, done.stderr
    assert "BUSY SESSION" in done.stdout and "\x1b" not in done.stdout
    refused = run_program("top", "--url", gateway.url, home=tmp_path,
                          env={"CLAWDFORGE_ADMIN_TOKEN": gateway.mint("app")["token"]})
    assert refused.returncode == 4
