"""The same conversations with the command line, spoken to by the gateway, and with the real adapter:
what callers are told is the same, but for the differences that docs/api.md lists."""
import itertools
import json
import os
import statistics
import time

import pytest

from model_api import scripted, tool

# What the gateway tells once or not at all, and the adapter often; see docs/api.md.
LEFT_OUT = {"usage_update", "available_commands_update", "session_info_update"}
TURNS = 5


def conversation(work):
    """Prompts, and what the model does."""
    file = f"{work}/a.txt"
    return {
        "text": scripted("hello", {"text": "one two three", "thinking": "let me see"}),
        "shell": scripted("run", tool("Bash", command="echo hi; echo err >&2", description="Say hi"),
                          {"text": "done"}),
        "write": scripted("write", tool("Write", file_path=file, content="one\ntwo\nthree\n"),
                          {"text": "done"}),
        "edit": scripted("edit", tool("Edit", file_path=file, old_string="two", new_string="2"),
                         {"text": "done"}),
        "plan": scripted("plan", tool("TodoWrite", todos=[
            {"content": "a", "status": "in_progress", "activeForm": "doing a"},
            {"content": "b", "status": "pending", "activeForm": "doing b"}]), {"text": "done"}),
        "failing shell": scripted("fail", tool("Bash", command="exit 3"), {"text": "done"}),
        "fetch": scripted("fetch", tool("WebFetch", url="http://127.0.0.1:1/x", prompt="p"),
                          {"text": "done"}),
        "unknown tool": scripted("try", tool("Nope", x=1), {"text": "done"}),
        "error": scripted("fail", {"status": 500}),
        "after the error": scripted("go on", {"text": "still here"}),
    }


def told(events, work):
    """The events as both tell them: pieces joined, all that is said of a tool call merged where the
    call began, ids by their order."""
    found, calls = [], {}
    for event in events:
        if "result" in event:
            usage = {**event["result"]["usage"], "inputTokens": 0, "totalTokens": 0}
            found.append(["end", event["result"]["stopReason"], usage])
            continue
        if "error" in event:
            found.append(["error", event["error"]["code"]])
            continue
        update = event["params"].get("update") or event["params"]["toolCall"]
        kind = update.get("sessionUpdate", "question")
        call_id = update.get("toolCallId")
        if kind in LEFT_OUT:
            continue
        if call_id is not None:
            if call_id not in calls:
                calls[call_id] = {}
                found.append(["tool", calls[call_id]])
            calls[call_id].update({key: value for key, value in update.items()
                                   if key not in ("_meta", "sessionUpdate", "toolCallId")})
            if kind == "question":
                found.append(["question", [[option["optionId"], option["kind"]]
                                           for option in event["params"]["options"]]])
        elif kind == "plan":
            found.append(["plan", update["entries"]])
        elif found and found[-1][0] == kind:
            found[-1][1] += update["content"]["text"]
        else:
            found.append([kind, update["content"]["text"]])
    return json.loads(json.dumps(found).replace(str(work), "WORK"))


def held(house, mode):
    talk = house.talk(agent="claude", permission_mode=mode)
    work = house.gateway.data_dir / "sessions" / talk.id / "work"
    return {name: told(talk.turn(prompt).json()["events"], work)
            for name, prompt in conversation(work).items()}


def house_of(new_house, adapter, tmp_path, protocol):
    file = tmp_path / f"{protocol}.toml"
    program = os.path.realpath(adapter.parent / "claude")  # the adapter would bring another
    file.write_text(f'[agents.claude]\nprotocol = "{protocol}"\n'
                    f'set_env = {{ CLAUDE_CODE_EXECUTABLE = "{program}" }}\n')
    return new_house(may_hold_agents=True, CLAWDFORGE_CONFIG=str(file),
                     PATH=f"{adapter.parent}:/usr/bin:/bin")


def forget_refusals(turns):
    """Each has its own words for a tool that was not allowed."""
    for event in itertools.chain(*turns.values()):
        if event[0] == "tool" and event[1]["status"] == "failed":
            del event[1]["rawOutput"], event[1]["content"]


@pytest.mark.parametrize("mode", ["approve_all", "deny_all"])
def test_what_is_told_is_what_the_adapter_tells(new_house, adapter, tmp_path, mode):
    native, through = (held(house_of(new_house, adapter, tmp_path, protocol), mode)
                       for protocol in ("claude", "acp"))
    for turns in (native, through):
        if mode == "deny_all":
            forget_refusals(turns)
        for name, events in turns.items():
            if name == "error":  # the adapter says it a second time as a piece of text
                turns[name] = [event for event in events if event[0] != "agent_message_chunk"]
    for name in native:
        assert native[name] == through[name], name


def resident(house):
    """Of all processes of the agent, in kB."""
    total = 0
    for pid, command in house.processes().items():
        if "claude" in command:
            try:
                lines = open(f"/proc/{pid}/smaps_rollup").readlines()
            except OSError:
                continue  # it has ended
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def test_it_starts_sooner_and_is_smaller_than_the_adapter(new_house, adapter, tmp_path, capsys):
    """Prints the figures of docs/performance.md; only the memory is sure enough to be a test."""
    figures = {}
    for protocol in ("acp", "claude"):
        house = house_of(new_house, adapter, tmp_path, protocol)
        house.talk().say("warm the disk's cache")
        starts, turns = [], []
        for _ in range(TURNS):
            begun = time.monotonic()
            talk = house.talk()
            starts.append(time.monotonic() - begun)
            talk.say("one")
            begun = time.monotonic()
            talk.say("two")
            turns.append(time.monotonic() - begun)
            memory = resident(house)
            talk.close()
        figures[protocol] = (statistics.median(starts), statistics.median(turns), memory)
    with capsys.disabled():
        for protocol, (start, turn, memory) in figures.items():
            print(f"\n{protocol}: start {start * 1000:.0f} ms, turn {turn * 1000:.0f} ms, "
                  f"{memory / 1024:.0f} MB", end="")
        print()
    assert figures["claude"][2] < figures["acp"][2]
