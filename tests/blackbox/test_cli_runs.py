"""`clawdforge run` with --stream, --schema, --tools and --max-turns."""
import json

import pytest

from agents import fake_env
from gateway import Gateway, run_program


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("cli-runs") / "gateway", env=fake_env()).start()
    token = gateway.mint("app")["token"]

    def run(*arguments):
        return run_program("run", "--url", gateway.url, *arguments, home=gateway.root,
                           env={"CLAWDFORGE_TOKEN": token})
    yield run
    gateway.finish()


def test_a_stream_prints_the_words_as_they_come(asked):
    done = asked("--agent", "demo", "--stream", "Hello")
    assert (done.returncode, done.stdout) == (0, "You said: Hello\n"), done.stderr


def test_a_stream_as_json_prints_each_event(asked):
    done = asked("--agent", "demo", "--stream", "--json", "Hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"] == "done"
    assert events[-1]["data"]["result"] == "You said: Hello"


def test_a_stream_that_fails_or_is_refused_says_so(asked):
    done = asked("--agent", "demo", "--stream", "crash")
    assert done.returncode == 5 and done.stderr.strip(), done
    done = asked("--agent", "unheard-of", "--stream", "Hello")
    assert done.returncode == 4 and "demo" in done.stderr, done


def test_a_schema_is_read_from_a_file(asked, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text('{"type": "object", "required": ["name"]}')
    script = json.dumps({"result": "x", "keys": {"structured_output": {"name": "Ann"}}})
    done = asked("--schema", str(file), "--json", script)
    assert json.loads(done.stdout)["result"] == {"name": "Ann"}, done.stderr
    file.write_text("no schema")
    assert asked("--schema", str(file), "x").returncode == 2
    assert asked("--schema", str(tmp_path / "absent"), "x").returncode == 2


@pytest.mark.parametrize("given, told", [("none", ""), ("read", "Read,Glob,Grep"),
                                         ("Bash,Read", "Bash,Read")])
def test_tools_and_turns_are_passed_on(asked, given, told):
    done = asked("--tools", given, "--max-turns", "4", "--json", '{"report": true}')
    assert done.returncode == 0, done.stderr
    argv = json.loads(done.stdout)["result"]["argv"]
    assert argv[argv.index("--tools") + 1] == told
    assert argv[argv.index("--max-turns") + 1] == "4"
