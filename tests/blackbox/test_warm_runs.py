"""Runs that take a program which was started ahead: the answer is the same, and nothing is left."""
import os
import signal

import pytest

from agents import App, fake_env, gauge, processes_below, run_dirs, settled_rows
from gateway import wait_until

SCRIPTS = {
    "text": "hello",
    "slash": "/help me",
    "object": {"result": {"a": [1, 2.5, None], "b": "\u00e4"}},
    "denials": {"keys": {"permission_denials": [
        {"tool_name": "Bash", "tool_use_id": "x", "tool_input": {"command": "ls"}}]}},
    "error": {"error": "it went wrong", "stderr": "last words"},
    "not logged in": {"known": "agent_not_logged_in"},
    "limit": {"known": "overloaded"},
    "exit": {"silent": True, "exit": 3, "stderr": "boom"},
    "signal": {"silent": True, "signal": 9},
    "large": {"result": "x" * 600_000},
    "noise": {"lines": ["one", "{}"], "then_lines": ["two"]},
    "cost": {"keys": {"total_cost_usd": 0.125, "usage": {"input_tokens": 3, "output_tokens": 4}}},
}


@pytest.fixture
def warm(new_gateway):
    return new_gateway(env=fake_env(warm="auto"))


def spares(gateway):
    """Processes in directories of runs, of which none is under way."""
    found = {}
    for name in run_dirs(gateway):
        for pid in processes_below(gateway.data_dir / "runs" / name / "work"):
            found[name] = pid
    return found


def ready(gateway):
    def found():
        listed = {agent["name"]: agent for agent in gateway.admin.get("/agents").json()["agents"]}
        return spares(gateway) if listed["claude"]["spares"] == 1 else None
    return wait_until(found, "a spare is ready")


def used(gateway):
    name = 'clawdforge_spare_agents_total{outcome="used"}'
    return gauge(gateway, name) if name in gateway.admin.get("/metrics").text else 0


def told(answer):
    """All but what differs from run to run."""
    body = answer.json()
    assert body.pop("duration_ms") >= 0
    for name in ("run_id", "request_id"):
        body.pop(name, None)
    headers = {name: value for name, value in answer.headers.items()
               if name not in ("date", "x-request-id", "x-clawdforge-run-id", "content-length")}
    return answer.status_code, list(body.items()), headers


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_answer_is_the_same_warm_and_plain(new_gateway, name):
    answers = {}
    for warmth in ("auto", "off"):
        gateway = new_gateway(env=fake_env(warm=warmth))
        app = App(gateway)
        app.run("first")
        if warmth == "auto":
            ready(gateway)
        answers[warmth] = told(app.run(SCRIPTS[name]))
        if warmth == "auto":
            assert used(gateway) == 1
    assert answers["auto"] == answers["off"]


def test_the_run_has_the_spares_id_directory_and_process(warm):
    app = App(warm)
    app.run("first")
    (name, pid), = ready(warm).items()
    answer = app.run({"report": True}, files=[app.upload("a.txt", b"content")])
    assert answer.headers["X-Clawdforge-Run-Id"] == name
    report = answer.json()["result"]
    assert report["cwd"].endswith(f"/runs/{name}/work")
    assert report["contents"] == {"attachment-1.txt": "content"}
    assert "--input-format" in report["argv"]
    rows = settled_rows(warm, 2)
    assert {row["run_id"] for row in rows} >= {name}
    wait_until(lambda: name not in run_dirs(warm), "its directory is gone")
    wait_until(lambda: pid not in processes_below(warm.root), "so is its process")


@pytest.mark.parametrize("fields", [{"system": "Be brief."}, {"model": "opus"}, {"effort": "low"},
                                    {"permission_mode": "approve_all"}],
                         ids=lambda fields: next(iter(fields)))
def test_what_a_spare_was_not_started_with_is_a_plain_start(warm, fields):
    app = App(warm)
    app.run("first")
    before = ready(warm)
    answer = app.run({"report": True}, **fields)
    assert answer.headers["X-Clawdforge-Run-Id"] not in before
    assert "--input-format" not in answer.json()["result"]["argv"]


def test_a_run_goes_well_also_when_the_spare_dies_in_its_hands(warm):
    app = App(warm)
    app.run("first")
    for number in range(3):
        wait_until(lambda: spares(warm), "there is a spare")
        os.kill(next(iter(spares(warm).values())), signal.SIGKILL)
        # Killed before it was asked or while it is asked; the caller can tell these apart.
        answer = app.run(f"hello {number}")
        assert answer.status_code in (200, 502), answer.text
    wait_until(lambda: app.run("hello").status_code == 200, "all is well again")


def test_nothing_is_left_after_the_end_and_after_a_kill(warm):
    App(warm).run("first")
    ready(warm)
    warm.kill()
    warm.start()
    assert not processes_below(warm.root / "data" / "runs")
    wait_until(lambda: not run_dirs(warm), "the directory is gone")
    App(warm, "second").run("first")
    ready(warm)
    warm.stop()
    assert not processes_below(warm.root) and not run_dirs(warm)
