"""Spares of the real command line: a new session takes one, and is told what it asks for."""
import os

import pytest

from conftest import CLAUDE
from gateway import wait_until
from model_api import scripted, system_text, tool, user_texts


@pytest.fixture
def house(new_house, tmp_path):
    """With one spare of the agent `warm`, and none of `cold`; both are the same program."""
    file = tmp_path / "warm.toml"
    table = f'protocol = "claude"\ncommand = ["{os.path.realpath(CLAUDE)}"]\n'
    file.write_text(f"[agents.cold]\n{table}[agents.warm]\n{table}warm = 1\n")
    made = new_house(may_hold_agents=True, CLAWDFORGE_CONFIG=str(file), CLAWDFORGE_WARM=None)
    made.ready = lambda: wait_until(lambda: spares(made) == 1, "a spare is ready", 120)
    made.ready()
    return made


def spares(house):
    agents = house.gateway.admin.get("/agents").json()["agents"]
    return next(agent["spares"] for agent in agents if agent["name"] == "warm")


def used(house):
    text = house.gateway.admin.get("/metrics").text
    return 'clawdforge_spare_agents_total{outcome="used"} 1' in text


def test_it_has_asked_no_model_before_it_is_taken(house):
    assert house.api.calls() == 0
    talk = house.talk(agent="warm")
    assert used(house)
    body = talk.say(scripted("hello", {"text": "one two"}))
    assert body["text"] == "one two" and body["stop_reason"] == "end_turn"


@pytest.mark.parametrize("fields", [{}, {"model": "haiku"}, {"effort": "low"}], ids=str)
def test_the_model_is_asked_the_same_warm_and_cold(house, fields):
    """But for what names the session: its directory and its id."""
    asked = {}
    for agent in ("warm", "cold"):
        house.ready()
        house.api.reset()
        talk = house.talk(agent=agent, **fields)
        talk.say("hello")
        body = house.api.requests()[-1]
        asked[agent] = {"model": body["model"], "tools": [one["name"] for one in body["tools"]],
                        "system": system_text(body).replace(talk.id, "ID"),
                        "user": [text.replace(talk.id, "ID") for text in user_texts(body)],
                        "effort": body.get("output_config")}
        talk.close()
    assert asked["warm"] == asked["cold"]


def test_it_works_in_the_sessions_own_directory(house):
    talk = house.talk(agent="warm", permission_mode="approve_reads")
    work = house.gateway.data_dir / "sessions" / talk.id / "work"
    (work / "a.txt").write_text("forty-two")
    body = talk.say(scripted("read", tool("Read", file_path=f"{work}/a.txt"), {"text": "done"}))
    assert "forty-two" in str(body["events"])


def test_it_can_be_woken_again(house):
    talk = house.talk(agent="warm")
    talk.say("remember this")
    house.gateway.restart()
    house.client = house.gateway.client(house.token)
    house.client.timeout = 120
    body = talk.say("hello")
    assert body["resumed"] is True
    assert "remember this" in house.api.sent_text()
