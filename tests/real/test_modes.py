"""Each permission mode holds for each built-in agent: the real programs, and a model that tries.

The model calls a tool that runs a shell command, one that writes a file and one that reads a file.
What counts is what has happened afterwards: whether the files are there, whether the model was told
what stands in the file, and what the app was asked.
"""
import concurrent.futures
import dataclasses
import json
import time

import pytest

from conftest import REAL, installed
from model_api import ModelApi, scripted, tool

MODES = ["deny_all", "approve_reads", "ask", "approve_all"]
SECRET = "what-stands-in-the-file"
TURN_SECONDS_MAX = 120


def codex_command(command):
    """What a model does whose command fails in the sandbox: it asks to leave it."""
    plain, leaving = (json.dumps({"cmd": command, **more}) for more in (
        {}, {"sandbox_permissions": "require_escalated", "justification": "May I?"}))
    return tool_text("exec", f"let r = await tools.exec_command({plain}); "
                             f"if (r.exit_code !== 0) r = await tools.exec_command({leaving}); "
                             "text(r)")


def codex_patch(path):
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"
    return tool_text("exec", f"text(await tools.apply_patch({json.dumps(patch)}))")


def tool_text(name, text):
    return {"tool": {"name": name, "input": text}}


@dataclasses.dataclass(frozen=True)
class Program:
    """A built-in agent: what it is called on npm, how its model calls its tools."""
    package: str
    version: str
    shell: object  # command -> step
    write: object  # path -> step
    read: object   # path -> step
    leaves_directory: bool = True   # its writing tool does
    asks_to_read: bool = True


def claude_program(package, version):
    return Program(package, version, lambda command: tool("Bash", command=command, description="x"),
                   lambda path: tool("Write", file_path=path, content="x"),
                   lambda path: tool("Read", file_path=path))


PROGRAMS = {
    "claude": claude_program("@anthropic-ai/claude-code", "2.1.325"),
    "claude-acp": claude_program("@agentclientprotocol/claude-agent-acp", "0.99.1"),
    # It reads by commands in its sandbox, in which they can change nothing.
    "codex": Program("@agentclientprotocol/codex-acp", "2.6.0", codex_command, codex_patch,
                     lambda path: codex_command(f"cat {path}"), asks_to_read=False),
    "gemini": Program("@google/gemini-cli", "0.61.0",
                      lambda command: tool("run_shell_command", command=command, description="x"),
                      lambda path: tool("write_file", file_path=path, content="x"),
                      lambda path: tool("read_file", file_path=path), leaves_directory=False),
    "opencode": Program("opencode-ai", "1.18.33",
                        lambda command: tool("bash", command=command, description="x"),
                        lambda path: tool("write", filePath=path, content="x"),
                        lambda path: tool("read", filePath=path)),
}


@pytest.fixture(scope="module")
def openai(tmp_path_factory):
    api = ModelApi(tmp_path_factory.mktemp("openai"), "fake-openai.mjs").start()
    yield api
    api.stop()


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    api = ModelApi(tmp_path_factory.mktemp("google"), "fake-gemini.mjs").start()
    yield api
    api.stop()


def table(name, **values):
    """One [agents.NAME] of the configuration; JSON texts are TOML as well."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if key != "set_env"]
    pairs = ", ".join(f"{key} = {json.dumps(value)}"
                      for key, value in values.get("set_env", {}).items())
    return "\n".join([f"[agents.{name}]", *lines, f"set_env = {{ {pairs} }}"]) + "\n"


def configuration(agent, tmp_path, api):
    """The owner's table: where the model's API is, and with which key."""
    if agent == "claude-acp":
        return '[agents.claude]\nprotocol = "acp"\n'
    if agent == "codex":
        home = tmp_path / "codex"
        home.mkdir()
        (home / "config.toml").write_text(f'openai_base_url = "{api.url}/v1"\n')
        return table("codex", auth_method="api-key",
                     set_env={"CODEX_HOME": str(home), "OPENAI_API_KEY": "not-a-key"})
    if agent == "gemini":
        return table("gemini", set_env={"GOOGLE_GEMINI_BASE_URL": api.url,
                                        "GEMINI_API_KEY": "not-a-key"})
    if agent == "opencode":
        model = "anthropic/claude-sonnet-4-5"
        content = {"model": model, "small_model": model, "provider": {"anthropic": {"options": {
            "baseURL": f"{api.url}/v1", "apiKey": "not-a-key"}}}}
        return table("opencode", set_env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(content), "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"})
    return ""


class Trial:
    """A session of one agent in one mode, and a model that tries things."""

    def __init__(self, house, agent, mode, api, tmp_path):
        self.api = api
        self.program = PROGRAMS[agent]
        self.talk = house.talk(agent=agent.removesuffix("-acp"), permission_mode=mode)
        self.client = house.client
        self.work = house.gateway.data_dir / "sessions" / self.talk.id / "work"
        self.outside = tmp_path / "outside"
        self.outside.mkdir()

    def turn(self, step, decision=None):
        """Lets the model do the step; answers what the app is asked. Gives the questions."""
        asked = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            turn = pool.submit(self.talk.turn, scripted("go", step), timeout_secs=TURN_SECONDS_MAX)
            path = f"/sessions/{self.talk.id}/permissions"
            while not turn.done():
                for question in self.client.get(path).json()["permissions"]:
                    assert decision, f"the app is asked: {question}"
                    asked.append(question)
                    self.client.post(f"{path}/{question['id']}", json={"decision": decision})
                time.sleep(0.05)
        answer = turn.result()
        assert answer.status_code == 200, answer.text
        return asked

    def runs_command(self, decision=None):
        ran = self.outside / f"ran-{time.monotonic_ns()}"
        asked = self.turn(self.program.shell(f"echo x > {ran}"), decision)
        return ran.exists(), asked

    def writes(self, folder, decision=None):
        path = folder / f"written-{time.monotonic_ns()}"
        asked = self.turn(self.program.write(str(path)), decision)
        return path.exists(), asked

    def reads(self, decision=None):
        """Whether the model was told what stands in a file."""
        secret = f"{SECRET}-{time.monotonic_ns()}"
        file = self.work / f"note-{time.monotonic_ns()}.txt"
        file.write_text(secret + "\n")
        asked = self.turn(self.program.read(str(file)), decision)
        return secret in self.api.sent_text(), asked


@pytest.fixture
def trial(request, new_house, api, openai, google, tmp_path):
    agent, mode = request.param
    program = PROGRAMS[agent]
    reason = installed(program.package, program.version)
    if reason:
        pytest.skip(reason)
    its_api = {"codex": openai, "gemini": google}.get(agent, api)
    its_api.reset()
    config = tmp_path / "clawdforge.toml"
    config.write_text(configuration(agent, tmp_path, its_api))
    house = new_house(may_hold_agents=True, CLAWDFORGE_CONFIG=str(config),
                      PATH=f"{REAL / 'node_modules' / '.bin'}:/usr/bin:/bin")
    return Trial(house, agent, mode, its_api, tmp_path)


def of_all_agents(mode):
    return pytest.mark.parametrize(
        "trial", [pytest.param((agent, mode), id=agent) for agent in PROGRAMS], indirect=True)


def write_places(trial):
    return [trial.outside, trial.work] if trial.program.leaves_directory else [trial.work]


@of_all_agents("deny_all")
def test_deny_all_lets_nothing_happen(trial):
    assert trial.runs_command() == (False, [])
    for place in write_places(trial):
        assert trial.writes(place) == (False, [])
    assert trial.reads() == (False, [])


@of_all_agents("approve_reads")
def test_approve_reads_lets_the_agent_read_and_nothing_else(trial):
    assert trial.runs_command() == (False, [])
    for place in write_places(trial):
        assert trial.writes(place) == (False, [])
    assert trial.reads() == (True, [])


@of_all_agents("ask")
def test_ask_asks_the_app(trial):
    for decision, happens in (("deny", False), ("allow", True)):
        done, asked = trial.runs_command(decision)
        assert done is happens and asked, asked
        done, asked = trial.writes(write_places(trial)[0], decision)
        assert done is happens and asked, asked
        done, asked = trial.reads(decision)
        if trial.program.asks_to_read:
            assert done is happens and asked, asked
        else:
            assert done is True and not asked, asked


@of_all_agents("approve_all")
def test_approve_all_lets_everything_happen(trial):
    assert trial.runs_command() == (True, [])
    for place in write_places(trial):
        assert trial.writes(place) == (True, [])
    assert trial.reads() == (True, [])


@pytest.mark.parametrize("trial", [pytest.param(("gemini", "approve_all"), id="gemini")],
                         indirect=True)
def test_the_writing_tool_of_gemini_never_leaves_the_sessions_directory(trial):
    assert trial.writes(trial.outside) == (False, [])


@pytest.mark.parametrize("trial", [pytest.param(("codex", "deny_all"), id="codex")], indirect=True)
def test_codex_asks_its_model_for_no_title(trial):
    """It would in a second conversation, which has tools although this one has none."""
    trial.runs_command()
    trial.runs_command()
    assert len({body["prompt_cache_key"] for body in trial.api.requests() if body}) == 1


# Runs

@pytest.fixture
def run_trial(house, tmp_path):
    """Lets the model of a run try all three things; gives what has happened, and the answer."""
    def run(**fields):
        ran, written = tmp_path / "ran", tmp_path / "written"
        attachment = house.upload("note.txt", SECRET.encode())
        prompt = scripted("go", tool("Bash", command=f"echo x > {ran}", description="x"),
                          tool("Write", file_path=str(written), content="x"),
                          tool("Bash", command="cat *.txt", description="x"),
                          {"text": "after"})
        answer = house.run(prompt, files=[attachment], **fields)
        return ran.exists(), written.exists(), SECRET in house.api.sent_text(), answer
    return run


def test_a_run_is_held_to_deny_all(run_trial):
    ran, written, has_read, answer = run_trial(permission_mode="deny_all", include=["denials"])
    assert (ran, written, has_read) == (False, False, False)
    body = answer.json()
    assert answer.status_code == 200 and body["result"] == "after", answer.text
    assert [denial["tool"] for denial in body["denials"]] == ["Bash", "Write", "Bash"]
    assert "echo x > " in body["denials"][0]["input"]


@pytest.mark.parametrize("fields", [{}, {"permission_mode": "approve_reads"}])
def test_a_run_only_reads_by_default(run_trial, fields):
    ran, written, has_read, answer = run_trial(**fields, include=["denials"])
    assert (ran, written, has_read) == (False, False, True)
    assert [denial["tool"] for denial in answer.json()["denials"]] == ["Bash", "Write"]


def test_a_run_may_do_everything_in_approve_all(run_trial):
    ran, written, has_read, answer = run_trial(permission_mode="approve_all", include=["denials"])
    assert (ran, written, has_read) == (True, True, True)
    assert answer.json()["denials"] == []
