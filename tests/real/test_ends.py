"""However a run of the real command line ends, nothing of it is left running."""
import json
import random
import signal
import socket
import threading
import time

import httpx
import pytest

from conftest import processes_of, processes_with
from gateway import wait_until
from model_api import scripted, tool


def sleeper():
    """A command that runs for hours, by a number that no other process has."""
    return f"sleep {random.randrange(100_000, 999_999)}"


def sleeping(command):
    """A prompt that makes the agent's own Bash tool run the command.

    Neither needs a permission; a sleep that stands alone would be refused as too long.
    """
    return scripted("run it", tool("Bash", command="echo begun; " + command, timeout=600_000),
                    {"text": "done"})


def begin_run_and_leave(house, command):
    """Sends the request by hand, waits until the tool runs, and closes the connection."""
    body = json.dumps({"prompt": sleeping(command), "timeout_secs": 120}).encode()
    head = (f"POST /run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    with socket.create_connection((house.gateway.host, house.gateway.port)) as connection:
        connection.sendall(head + body)
        wait_until(lambda: processes_with(command), "the tool runs", seconds=60)


def swallow(house, prompt):
    """A caller whose gateway goes away."""
    try:
        house.run(prompt)
    except httpx.HTTPError:
        pass


def test_a_time_out_while_a_tool_runs(house):
    command = sleeper()
    begun = time.monotonic()
    answer = house.run(sleeping(command), timeout_secs=8)
    assert time.monotonic() - begun >= 8
    assert answer.status_code == 504, answer.text
    body = answer.json()
    assert body["code"] == "timeout" and body["stop_reason"] == "timeout"
    assert house.api.calls() == 1  # so the tool was running
    house.assert_nothing_left()
    wait_until(lambda: not processes_with(command), "the tool's command is gone")


def test_the_caller_hangs_up_while_a_tool_runs(house):
    command = sleeper()
    begin_run_and_leave(house, command)
    house.assert_nothing_left()
    wait_until(lambda: not processes_with(command), "the tool's command is gone")
    runs = house.gateway.admin.get("/admin/runs").json()["runs"]
    assert [run["state"] for run in runs] == ["cancelled"], runs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_the_gateway_ends_while_a_tool_runs(new_house, number):
    house = new_house(CLAWDFORGE_DRAIN_GRACE_SECS="1")
    command = sleeper()
    waiting = threading.Thread(target=lambda: swallow(house, sleeping(command)))
    waiting.start()
    try:
        wait_until(lambda: processes_with(command), "the tool runs", seconds=60)
        if number == signal.SIGKILL:
            house.gateway.kill()
        else:
            assert house.gateway.stop() == 0
    finally:
        waiting.join()
    wait_until(lambda: not processes_with(command), "the tool's command is gone")
    wait_until(lambda: not processes_of(house.gateway.root), "no process is left")
    if number == signal.SIGKILL:
        house.gateway.start()  # and stops well: the directory is cleared at the start
        runs = house.gateway.admin.get("/admin/runs").json()["runs"]
        assert [run["state"] for run in runs] == ["interrupted"], runs


def test_health_knows_the_command_line(house):
    def health():
        answer = house.client.get("/healthz").json()
        return answer if answer["claude_present"] else None
    assert wait_until(health, "claude was found")["claude_version"] == "2.1.325 (Claude Code)"
