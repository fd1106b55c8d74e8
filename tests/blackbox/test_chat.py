"""`clawdforge chat` in a real terminal (tmux) and in pipes."""
import json
import pathlib
import re
import signal
import stat
import subprocess

import pytest

from gateway import PROGRAM, REPO, SECONDS_MAX, clean_environment, run_program, wait_until
from terminals import Terminal, assert_screen

FAKE_ACP = REPO / "tests" / "agents" / "fake_acp"
MARKDOWN = """# Title

Some **bold** text with `code` and a [link](https://example.org/x) that is longer than one line of it.

1. first
2. second

```cpp
int main() { return 0; }  // done
```

| name | value |
| --- | ---: |
| 世界 | 12 |
| x | 3 |
"""


def fake_gateway(new_gateway, tmp_path):
    config = tmp_path / "clawdforge.toml"
    config.write_text(f'[agents.fake]\ncommand = ["{FAKE_ACP}"]\n'
                      'permission_modes = ["deny_all", "approve_reads", "ask", "approve_all"]\n')
    return new_gateway(flags=["--config", str(config)])


@pytest.fixture
def chat(tmp_path):
    """Opens chats in terminals, and closes them with the test."""
    opened = []

    def open_chat(gateway, *arguments, agent="demo", token=None, env=None, **size):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        token = token or gateway.mint(f"app-{len(opened)}")["token"]
        agents = ["--agent", agent] if agent else []
        terminal = Terminal(home, "chat", "--url", gateway.url, *agents, *arguments,
                            env={"CLAWDFORGE_TOKEN": token, **(env or {})}, **size)
        terminal.home = home
        opened.append(terminal)
        return terminal
    yield open_chat
    for terminal in opened:
        terminal.close()


def script(*steps):
    return json.dumps(list(steps))


def pipe_chat(gateway, tmp_path, text, *arguments, env=None, agent="demo", token=None):
    token = token or gateway.mint("piped")["token"]
    return run_program("chat", "--url", gateway.url, "--agent", agent, *arguments, home=tmp_path,
                       env={"CLAWDFORGE_TOKEN": token, "TERM": "xterm", **(env or {})}, stdin=text)


# In a terminal

def test_a_turn_with_thoughts_a_plan_a_tool_and_a_permission(gateway, chat):
    terminal = chat(gateway)
    terminal.ask("think plan tool permission edit")
    terminal.wait_for("y once")
    terminal.type("?")
    terminal.wait_for('{"kind":"edit"}')
    terminal.type("y")
    terminal.wait_for(" out · ")
    assert_screen("turn", terminal)


@pytest.mark.parametrize("key, said", [
    ("y", "permission: allow-once"), ("a", "permission: allow-always"),
    ("n", "permission: reject-once")])
def test_the_keys_of_a_permission(key, said, new_gateway, tmp_path, chat):
    terminal = chat(fake_gateway(new_gateway, tmp_path), agent="fake")
    terminal.ask(script({"permission": {"kind": "edit", "title": "Edit a file"}}))
    terminal.wait_for("? Edit a file")
    terminal.type(key)
    terminal.wait_for(said)


def test_markdown_is_drawn_and_drawn_again_on_resize(new_gateway, tmp_path, chat):
    terminal = chat(fake_gateway(new_gateway, tmp_path), agent="fake", columns=60, rows=40)
    prompt = tmp_path / "home" / "p"
    gate = tmp_path / "gate"
    steps = [{"text": piece} for piece in re.split(r"(?<= )", MARKDOWN)]
    prompt.write_text(script(*steps, {"wait_for": str(gate)}))
    # Too long to be typed: pasted, as a user would.
    terminal.wait_for("›")
    terminal.tmux("load-buffer", str(prompt))
    terminal.tmux("paste-buffer", "-p")
    terminal.key("Enter")
    terminal.wait_for("世界")
    gate.touch()
    assert_screen("markdown", terminal, "Title\n")
    terminal.resize(34, 40)
    assert_screen("markdown-narrow", terminal, "Title\n")


def test_what_an_agent_sends_gives_no_orders_to_the_terminal(new_gateway, tmp_path, chat):
    terminal = chat(fake_gateway(new_gateway, tmp_path), agent="fake")
    hostile = "a\x1b[2J\x1b]0;owned\x07\x1b[31mb\x1b[?1049h\u009b5mc\u202ed\x1b"
    terminal.ask(script({"text": hostile}, {"text": "[8mhidden\r\n&#27;[7mend"},
                        {"tool": {"toolCallId": "t", "title": "t\x1b[2Jitle\nx", "status": "completed"}}))
    terminal.wait_for("● title x")
    screen = terminal.wait_for("›", 2)
    assert "abcdhidden" in screen
    assert "before" in screen  # nothing has cleared the screen
    assert "owned" not in terminal.tmux("display-message", "-p", "#{pane_title}")


def test_wide_characters_are_wrapped_at_their_width(gateway, chat):
    terminal = chat(gateway, columns=40)
    terminal.ask("你好世界" * 8 + " é́ 👍👍")
    assert_screen("wide", terminal, "You said")


def test_ctrl_c_cancels_the_turn_and_the_chat_goes_on(gateway, chat):
    terminal = chat(gateway)
    terminal.ask("slow 1000")
    terminal.wait_for("Slowly 2 of 1000.")
    terminal.key("C-c")
    terminal.wait_for("cancelled · ")
    terminal.ask("remember the heron")
    terminal.wait_for("I will remember: the heron")


def test_leaving_says_how_to_come_back_and_coming_back_shows_what_was_said(gateway, chat):
    token = gateway.mint("me")["token"]
    terminal = chat(gateway, token=token)
    terminal.ask("remember the heron")
    terminal.wait_for(" out · ")
    terminal.key("C-d")
    screen = terminal.wait_for("left with 0")
    session = re.search(r"clawdforge chat --session (\S+)", screen).group(1)
    again = chat(gateway, "--session", session, token=token, agent=None)
    again.wait_for("I will remember: the heron")
    again.ask("what do you remember")
    again.wait_for("1. remember the heron")


def test_a_question_that_was_asked_before_this_terminal_came(gateway, chat):
    token = gateway.mint("me")["token"]
    first = chat(gateway, token=token)
    first.ask("permission edit")
    screen = first.wait_for("y once")
    session = re.search(r"session (\S+)", screen).group(1)
    second = chat(gateway, "--session", session, token=token, agent=None)
    second.wait_for("y once")
    second.type("y")
    second.wait_for("I was allowed to edit.")
    first.wait_for("I was allowed to edit.")


def test_a_restart_of_the_gateway_is_healed(gateway, chat):
    gateway.listen = f"127.0.0.1:{gateway.port}"
    terminal = chat(gateway)
    terminal.ask("slow 1000")
    terminal.wait_for("Slowly 2 of 1000.")
    gateway.kill()
    terminal.wait_for("trying again")
    gateway.start()
    terminal.wait_for("nothing was missed")
    terminal.wait_for("(interrupted)")
    terminal.ask("remember the heron")
    terminal.wait_for("I will remember: the heron")


def test_several_lines_by_a_backslash_and_by_a_paste(gateway, chat):
    terminal = chat(gateway)
    terminal.wait_for("›")
    terminal.type("one\\")
    terminal.key("Enter")
    terminal.wait_for("…")
    terminal.type("two")
    terminal.key("Enter")
    terminal.wait_for("You said: one two")
    terminal.tmux("set-buffer", "three\nfour")
    terminal.tmux("paste-buffer", "-p")
    terminal.wait_for("three␤four")
    terminal.key("Enter")
    terminal.wait_for("You said: three four")


def test_files_are_attached_and_paths_complete(gateway, chat, tmp_path):
    terminal = chat(gateway)
    (terminal.home / "notes.txt").write_text("a note")
    terminal.wait_for("›")
    terminal.type("look at @no")
    terminal.key("Tab")
    terminal.wait_for("@notes.txt")
    terminal.key("Enter")
    terminal.wait_for("attached notes.txt")
    terminal.ask("/files")
    terminal.wait_for("6  notes.txt")


def test_the_commands_of_a_chat(gateway, chat):
    terminal = chat(gateway, rows=60)
    terminal.ask("tool please")
    terminal.wait_for(" out · ")
    for command, shown in [("/help", "/export FILE"), ("/state", "turn_count"), ("/usage", "cost_usd"),
                           ("/expand", '{"bytes":11}'), ("/agent", "(this chat)"),
                           ("/model", "The model is demo-small."), ("/nonsense", "There is no command"),
                           ("/new", "The session before is"), ("/export out.md", "Written to")]:
        terminal.ask(command)
        terminal.wait_for(shown)
    assert (terminal.home / "out.md").read_text().startswith("# Session ")
    terminal.ask("/close")
    terminal.wait_for("left with 0")


def test_the_history_is_kept_for_its_owner_alone(gateway, chat):
    terminal = chat(gateway)
    terminal.ask("a first prompt")
    terminal.wait_for(" out · ")
    kept = terminal.home / ".local/state/clawdforge/chat-history"
    wait_until(kept.exists, "the history is written")
    assert kept.read_text() == "a first prompt\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = chat(gateway)
    again.wait_for("›")
    again.key("Up")
    again.wait_for("a first prompt")
    private = chat(gateway, "--no-history")
    private.ask("a private prompt")
    private.wait_for(" out · ")
    assert "private" not in kept.read_text()


def test_a_terminal_without_colour_gets_no_escape_codes(gateway, chat):
    terminal = chat(gateway, env={"NO_COLOR": "1"})
    terminal.ask("tool and plan")
    terminal.wait_for("You said: tool and plan")
    assert "\x1b[" not in terminal.coloured().split("You said")[1]


@pytest.mark.parametrize("prompt", ["slow 1000", ""])
def test_a_chat_ends_with_its_terminal(prompt, gateway, chat):
    terminal = chat(gateway)
    terminal.wait_for("›")
    if prompt:
        terminal.ask(prompt)
        terminal.wait_for("Slowly 2 of 1000.")
    shell = terminal.tmux("display-message", "-p", "#{pane_pid}").strip()
    program, = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    assert b"chat" in pathlib.Path(f"/proc/{program}/cmdline").read_bytes()
    terminal.close()
    wait_until(lambda: not pathlib.Path(f"/proc/{program}").exists(), "the chat has ended")


# In pipes

def test_a_script_drives_it_line_by_line(gateway, tmp_path):
    done = pipe_chat(gateway, tmp_path, "remember the heron\ntool\nwhat do you remember\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("I will remember: the heron\nYou said: tool\n"
                           "I remember:\n1. remember the heron\n2. tool\n")
    assert "● Count the letters" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_a_question_in_a_pipe_is_answered_by_the_next_line(gateway, tmp_path):
    done = pipe_chat(gateway, tmp_path, "permission edit\ny\nHello\n", "--permission", "ask")
    assert done.stdout == "I was allowed to edit.\nYou said: Hello\n"
    refused = pipe_chat(gateway, tmp_path, "permission edit\n", "--permission", "ask",
                        token=gateway.mint("another")["token"])
    assert refused.stdout == "I was not allowed to edit.\n"


def test_json_is_what_the_gateway_told(gateway, tmp_path):
    done = pipe_chat(gateway, tmp_path, "Hello\n", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["turn", "update", "update", "update", "done"]
    assert events[-1]["data"]["text"] == "You said: Hello"


def test_escape_codes_of_an_agent_do_not_reach_a_pipe(new_gateway, tmp_path):
    gateway = fake_gateway(new_gateway, tmp_path)
    done = pipe_chat(gateway, tmp_path, script({"text": "a\x1b[31mb\x07\u202ec"}) + "\n", agent="fake")
    assert done.stdout == "abc\n"


def test_failures_have_their_exit_codes(gateway, tmp_path):
    token = gateway.mint("me")["token"]
    assert pipe_chat(gateway, tmp_path, "fail\n", token=token).returncode == 5
    unknown = pipe_chat(gateway, tmp_path, "x\n", agent="no-such-agent", token=token)
    assert unknown.returncode == 4
    absent = pipe_chat(gateway, tmp_path, "x\n", "--session", "no-such-session", token=token)
    assert absent.returncode == 4
    nowhere = run_program("chat", "--url", "http://127.0.0.1:9", home=tmp_path,
                          env={"CLAWDFORGE_TOKEN": token}, stdin="x\n")
    assert nowhere.returncode == 1


def test_an_interrupt_in_a_pipe_cancels_and_tells(gateway, tmp_path):
    token = gateway.mint("me")["token"]
    child = subprocess.Popen(
        [str(PROGRAM), "chat", "--url", gateway.url, "--agent", "demo"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=clean_environment(tmp_path, {"CLAWDFORGE_TOKEN": token}))
    child.stdin.write(b"slow 1000\n")
    child.stdin.flush()
    assert child.stdout.read(7) == b"Slowly "
    child.send_signal(signal.SIGINT)
    child.stdin.close()
    assert child.wait(timeout=SECONDS_MAX) == 130
    assert b"cancelled" in child.stderr.read()
    child.stdout.close()
    child.stderr.close()
