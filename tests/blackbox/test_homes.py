"""Each session and each run has a home of its own, in which its agent keeps what it keeps."""
import json
import pathlib

from agents import App, fake_env, run_dirs
from gateway import wait_until
from sessions import Talker, assert_turn, session_options

STREAM = {"kind": "claude"}


def folder_of(work):
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in str(work))


def test_a_run_has_a_home_of_its_own(new_gateway):
    gateway = new_gateway(env=fake_env() | {"XDG_CONFIG_HOME": "/nonexistent/config",
                                            "XDG_DATA_HOME": "/nonexistent/data"})
    app = App(gateway)
    first, second = app.report()["env"], app.report()["env"]
    assert first["HOME"] != second["HOME"]
    for env in (first, second):
        assert env["HOME"].startswith(f"{gateway.data_dir}/runs/")
        assert env["CLAUDE_CONFIG_DIR"] == env["HOME"] + "/.claude"
        assert not [name for name in env if name.startswith("XDG_")]
    wait_until(lambda: not run_dirs(gateway), "the homes go with their runs")


def test_without_the_jail_an_agent_has_the_owners_home(new_gateway):
    gateway = new_gateway(env=fake_env(jail="off"))
    env = App(gateway).report()["env"]
    assert env["HOME"] == str(gateway.root)
    assert "CLAUDE_CONFIG_DIR" not in env


def test_an_agent_whose_login_is_in_the_owners_home_has_that(new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path))
    assert Talker(gateway).session().told({"env": "HOME"}) == str(gateway.root)


def test_a_second_account_keeps_its_directory(new_gateway, tmp_path):
    """An agent that the owner gives a directory of its own has that, and the home beside it."""
    config = tmp_path / "second.toml"
    config.write_text(f'[agents.claude]\nset_env = {{ CLAUDE_CONFIG_DIR = "{tmp_path}/second" }}\n')
    gateway = new_gateway(env=fake_env(), flags=["--config", str(config)])
    env = App(gateway).report()["env"]
    assert env["HOME"] == str(gateway.root)
    assert env["CLAUDE_CONFIG_DIR"] == f"{tmp_path}/second"


def test_a_session_keeps_its_home_until_its_end(new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path, **STREAM))
    app = Talker(gateway)
    session, other = app.session(), app.session()
    session.told("my fruit is a plum")
    home = pathlib.Path(session.told({"env": "HOME"}))
    assert home == gateway.data_dir / "sessions" / session.id / "home"
    kept, = home.glob(".claude/projects/*/*.jsonl")
    assert "plum" in kept.read_text()
    assert not list((gateway.data_dir / "sessions" / other.id / "home").glob(".claude/projects/*/*"))
    gateway.restart()
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "my fruit is a plum"
    assert not (gateway.root / ".claude").exists(), "nothing of it was in the owner's home"


def test_a_conversation_from_before_is_brought_along(new_gateway, tmp_path):
    """It was kept in the owner's home, beside his own conversations, which stay there."""
    options = session_options(tmp_path, **STREAM)
    gateway = new_gateway(**{**options, "env": {**options["env"], "CLAWDFORGE_JAIL": "off"}})
    session = Talker(gateway).session()
    session.told("my fruit is a plum")
    projects = gateway.root / ".claude" / "projects"
    own, = projects.iterdir()
    assert own.name == folder_of(gateway.data_dir / "sessions" / session.id / "work")
    (projects / "-home-owner").mkdir()
    (projects / "-home-owner" / "private.jsonl").write_text("{}")
    gateway.env["CLAWDFORGE_JAIL"] = "auto"
    gateway.restart()
    body = assert_turn(session.turn({"recall": True}), resumed=True)
    assert json.loads(body["text"])[0] == "my fruit is a plum"
    home = gateway.data_dir / "sessions" / session.id / "home"
    assert [path.name for path in (home / ".claude" / "projects").iterdir()] == [own.name]
