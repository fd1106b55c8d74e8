"""The manners of every command: help, examples, typos, completion, exit codes of wrong usage."""
import json
import re
import socket
import subprocess
import time

import pytest

from gateway import PROGRAM, SLACK_SECONDS, clean_environment, run_program


def commands(home):
    """All commands that the help lists."""
    text = run_program("help", home=home).stdout
    return [" ".join(word for word in line[2:].split("  ")[0].split() if word.islower())
            for line in text.splitlines() if re.match(r"  [a-z]", line)]


@pytest.mark.timeout(480)  # it starts the program more than a hundred times, also below a sanitizer
def test_each_command_has_help_with_an_example(tmp_path):
    found = commands(tmp_path)
    assert {"run", "session new", "token mint", "login", "completion", "serve"} <= set(found)
    for command in found:
        done = run_program(*command.split(), "--help", home=tmp_path)
        assert done.returncode == 0 and done.stderr == "", command
        assert run_program("help", *command.split(), home=tmp_path).returncode == 0
        if command not in ("help", "serve", "config", "verify"):
            assert f"clawdforge {command}" in done.stdout
        short = run_program(*command.split(), "-h", home=tmp_path)
        assert short.stdout == done.stdout


@pytest.mark.parametrize("topic", ["agents", "tokens", "config", "chat"])
def test_topics_explain(tmp_path, topic):
    done = run_program("help", topic, home=tmp_path)
    assert done.returncode == 0 and "clawdforge" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("arguments, nearest", [
    (["versoin"], "clawdforge version"), (["tokne", "list"], "clawdforge token"),
    (["token", "mnt", "a"], "clawdforge token mint"), (["sessoin"], "clawdforge session"),
    (["run", "--agnet", "demo", "x"], "--agent"), (["--vesrion"], "--version"),
    (["token", "mint", "a", "--max-rnus", "1"], "--max-runs"), (["help", "sessoin"], "clawdforge session")])
def test_a_typo_names_the_nearest(tmp_path, arguments, nearest):
    done = run_program(*arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and f"did you mean {nearest}?" in done.stderr


def test_version_and_help_in_all_spellings(tmp_path):
    version = run_program("version", home=tmp_path).stdout
    assert run_program("--version", home=tmp_path).stdout == version
    assert json.loads(run_program("version", "--json", home=tmp_path).stdout)["version"] in version
    text = run_program("help", home=tmp_path).stdout
    assert all(run_program(word, home=tmp_path).stdout == text for word in ("--help", "-h"))


def test_options_may_stand_in_front_and_words_after_dashes(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("a")["token"]}
    done = run_program("--data-dir", gateway.data_dir, "run", "--agent", "demo", "--", "--json",
                       home=gateway.root, env=env)
    assert done.stdout == "You said: --json\n", done.stderr


def test_a_taken_name_hints_at_rotate(gateway):
    gateway.mint("taken")
    done = run_program("token", "mint", "taken", "--data-dir", gateway.data_dir, home=gateway.root)
    assert (done.returncode, done.stdout) == (4, "") and "token rotate" in done.stderr
    assert done.stderr.count("\n") == 1


def offers(home, *words, env=None):
    return run_program("__complete", *words, home=home, env=env).stdout.split()


def test_completion_offers_commands_options_and_names(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("mine")["token"],
           "CLAWDFORGE_DATA_DIR": str(gateway.data_dir)}
    here = lambda *words: offers(gateway.root, *words, env=env)
    assert "session" in here("") and here("sess") == ["session"]
    assert here("token", "r") == ["rotate", "revoke"]
    assert "--agent" in here("run", "--") and here("run", "--ag") == ["--agent"]
    assert here("run", "--effort", "m") == ["medium", "max"]
    assert "demo" in here("run", "--agent", "")
    assert here("token", "rotate", "") == ["mine"]
    assert here("upload", "") == [":files"] and here("run", "--file", "no") == [":files"]
    session = run_program("session", "new", "--agent", "demo", home=gateway.root, env=env).stdout
    assert here("session", "turn", "") == [session.strip()]
    assert here("completion", "") == ["bash", "zsh", "fish"]
    assert "tokens" in here("help", "")
    assert here("nonsense", "") == []


def test_completion_does_not_wait_for_a_gateway_that_does_not_answer(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        began = time.monotonic()
        assert offers(tmp_path, "run", "--agent", "", env={
            "CLAWDFORGE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "CLAWDFORGE_TOKEN": "cf_x"}) == []
        assert time.monotonic() - began < 0.3 + SLACK_SECONDS


def test_bash_completes_with_the_script(tmp_path):
    (tmp_path / "clawdforge").symlink_to(PROGRAM)
    line = ("source <(clawdforge completion bash); COMP_WORDS=(clawdforge token re); COMP_CWORD=2; "
            "_clawdforge; echo ${COMPREPLY[*]}")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, env={
        **clean_environment(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert done.stdout.split() == ["revoke"], done.stderr
    for shell in ("zsh", "fish"):
        assert "clawdforge" in run_program("completion", shell, home=tmp_path).stdout
    assert run_program("completion", "tcsh", home=tmp_path).returncode == 2
    assert run_program("completion", home=tmp_path).returncode == 2
