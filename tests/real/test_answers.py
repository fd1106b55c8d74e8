"""What the real command line makes of what the gateway gives it."""
import concurrent.futures
import json

import pytest

from gateway import wait_until
from model_api import scripted, system_text, tool, tool_results, user_texts


def test_a_text_answer(house):
    answer = house.run("hello there")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"ok", "result", "duration_ms", "stop_reason"}
    assert body["ok"] is True
    assert body["result"] == "fake reply to: hello there"
    assert body["stop_reason"] == "end_turn"
    assert float(answer.headers["X-Clawdforge-Cost-Usd"]) > 0
    assert int(answer.headers["X-Clawdforge-Input-Tokens"]) > 100
    assert int(answer.headers["X-Clawdforge-Output-Tokens"]) > 0
    assert house.api.calls() == 1
    house.assert_nothing_left()


@pytest.mark.parametrize("text", ['{"a": [1, 2.50, "x"]}', '```json\n{"a": [1, 2.50, "x"]}\n```'],
                         ids=["bare", "fenced"])
def test_a_json_answer(house, text):
    answer = house.run(scripted("give me json", {"text": text}))
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"a": [1, 2.5, "x"]}
    assert "2.50" in answer.text  # the digits are the agent's own


def test_a_prompt_of_600_kilobytes_arrives_whole(house):
    prompt = "".join(f"line {number} of many; " for number in range(32_000))
    assert len(prompt) > 600_000
    answer = house.run(prompt)
    assert answer.status_code == 200, answer.text
    assert any(prompt.strip() in text for text in user_texts(house.api.requests()[0]))


def test_a_prompt_in_any_script_arrives_as_it_is(house):
    prompt = 'zwölf Boxkämpfer 漢字 🙂 "quoted" \\back\\ \ttab\nline'
    assert house.run(prompt).status_code == 200
    assert any(prompt in text for text in user_texts(house.api.requests()[0]))


def test_an_attached_file_is_read_by_the_agents_own_tool(house):
    token = house.upload("notes.txt", b"the password of the day is swordfish\n")
    prompt = scripted("what does the file say?", tool("Read", file_path="attachment-1.txt"),
                      {"text": "it says swordfish"})
    answer = house.run(prompt, files=[token])
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == "it says swordfish"
    first, second = house.api.requests()
    manifest = "Attached files in the current directory:\n- attachment-1.txt (notes.txt)"
    assert any(manifest in text for text in user_texts(first))
    results = tool_results(second)
    assert len(results) == 1
    assert "the password of the day is swordfish" in json.dumps(results[0])


def test_a_path_in_a_prompt_is_only_text(house, tmp_path):
    file = tmp_path / "private.txt"
    file.write_text("never-to-be-sent-anywhere\n")
    inside = house.upload("inside.txt", b"attached-but-not-mentioned\n")
    prompt = f"look at @{file} and @attachment-1.txt and @/etc/hostname"
    answer = house.run(prompt, files=[inside])
    assert answer.status_code == 200, answer.text
    assert any(prompt in text for text in user_texts(house.api.requests()[0]))
    assert "never-to-be-sent-anywhere" not in house.api.sent_text()
    assert "attached-but-not-mentioned" not in house.api.sent_text()


@pytest.mark.parametrize("command", ["/model haiku", "/clear", "/config", "/usage", "/cost\nx"])
def test_a_command_in_a_prompt_is_only_text(house, command):
    answer = house.run(command)
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == "fake reply to: " + command
    request, = house.api.requests()
    assert any(command in text for text in user_texts(request))
    assert "sonnet" in request["model"]


def test_a_system_prompt_is_appended_or_replaces(house):
    house.run("a", system="Speak like a pirate.", system_mode="append")
    house.run("b", system="Speak like a pirate.", system_mode="replace")
    appended, replaced = map(system_text, house.api.requests())
    assert "Speak like a pirate." in appended and "Speak like a pirate." in replaced
    assert len(appended) > len(replaced) + 1000  # what it has of its own


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_long_system_prompt_arrives_whole(house, mode):
    system = "".join(f"rule {number}: be kind. " for number in range(8_000))
    assert len(system) > 128 * 1024  # more than one argument can hold
    assert house.run("hello", system=system, system_mode=mode).status_code == 200
    assert system.strip() in system_text(house.api.requests()[0])


def test_model_and_effort_reach_the_model(house):
    house.run("a", model="haiku", effort="low")
    request, = house.api.requests()
    assert "haiku" in request["model"]
    house.run("b", model="claude-opus-4-5", effort="high")
    request = house.api.requests()[1]
    assert request["model"].startswith("claude-opus-4-5")
    assert request["output_config"] == {"effort": "high"}


def test_the_owners_own_settings_stay_out(house):
    settings = house.home / ".claude"
    settings.mkdir()
    (settings / "CLAUDE.md").write_text("the owner likes marmalade\n")
    mark = house.home / "hook-was-here"
    hook = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
    (settings / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [hook]}}))
    assert house.run("hello").status_code == 200
    assert "marmalade" not in house.api.sent_text()
    assert not mark.exists()


def test_the_owners_own_settings_apply_if_configured(new_house):
    house = new_house(CLAWDFORGE_CLAUDE_OWNER_SETTINGS="on")
    settings = house.home / ".claude"
    settings.mkdir()
    (settings / "CLAUDE.md").write_text("the owner likes marmalade\n")
    assert house.run("hello").status_code == 200
    assert "marmalade" in house.api.sent_text()


def test_no_transcript_of_a_run_is_kept(house):
    assert house.run("a secret wish").status_code == 200
    house.assert_nothing_left()
    kept = [file for file in house.home.rglob("*") if file.is_file() and file.stat().st_size < 1 << 20
            and b"a secret wish" in file.read_bytes()]
    assert kept == []


def test_sixteen_at_once(new_house):
    house = new_house(CLAWDFORGE_MAX_RUNS="16")
    count = 16
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        answers = [pool.submit(house.run, f"number {number}") for number in range(count)]
        wait_until(lambda: sum("--output-format json" in command
                               for command in house.processes().values()) >= count,
                   "all sixteen run at the same time", seconds=60)
        for number, answer in enumerate(answers):
            given = answer.result(timeout=200)
            assert given.status_code == 200, given.text
            assert given.json()["result"] == f"fake reply to: number {number}"
    assert house.api.calls() == count
    house.assert_nothing_left()


def test_a_tool_that_the_gateway_does_not_allow_is_denied(house):
    target = house.home / "made-by-a-tool"
    answer = house.run(scripted("make it", tool("Bash", command=f"touch {target}"), {"text": "done"}))
    assert answer.status_code == 200, answer.text
    assert not target.exists()
