"""What the chat and top cost: bench/run cli, or CLAWDFORGE_BIN=… /usr/bin/python3 bench/chat_bench.py

  first character   from the gateway's first event of a turn, as a reader of the stream sees it, to
                    the first byte of the answer on a chat's standard output
  events/s          a turn of 10,000 events through a chat into a pipe, against the same stream read
                    and thrown away
  top               share of a core that `top` takes in a terminal, over ten seconds
"""
import os
import pathlib
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "blackbox"))
from gateway import PROGRAM, Gateway, clean_environment  # noqa: E402

EVENTS = 10_000
ROUNDS = 20
TOP_SECONDS = 10


def start_chat(gateway, home, token):
    return subprocess.Popen([str(PROGRAM), "chat", "--url", gateway.url, "--agent", "demo"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=clean_environment(home, {"CLAWDFORGE_TOKEN": token}))


def session_of(client):
    return client.get("/sessions").json()["sessions"][0]["session_id"]


def first_characters(gateway, home):
    """Seconds, one for each round. A second reader of the session tells when the event came."""
    token = gateway.mint("first")["token"]
    times = []
    with gateway.client(token) as client:
        chat = start_chat(gateway, home, token)
        chat.stdin.write(b"warm up\n")
        chat.stdin.flush()
        chat.stdout.readline()
        session = session_of(client)
        for _ in range(ROUNDS):
            heard = []
            page = client.get(f"/sessions/{session}/events", params={"limit": 1000}).json()
            after = page["next_after"]
            is_listening = threading.Event()

            def listen(after=after, heard=heard, is_listening=is_listening):
                with client.stream("GET", f"/sessions/{session}/events",
                                   headers={"Accept": "text/event-stream",
                                            "Last-Event-ID": str(after)}) as stream:
                    for line in stream.iter_lines():
                        is_listening.set()
                        if line.startswith("data:"):
                            heard.append(time.monotonic())
                            return
            reader = threading.Thread(target=listen)
            reader.start()
            is_listening.wait(20)
            chat.stdin.write(b"Hello\n")
            chat.stdin.flush()
            chat.stdout.readline()
            shown = time.monotonic()
            reader.join()
            times.append(shown - heard[0])
        chat.stdin.close()
        chat.wait()
    return times


def whole_turn(gateway, home):
    """Seconds for a turn of EVENTS events, in a chat and as bytes of the stream."""
    token = gateway.mint("whole")["token"]
    with gateway.client(token) as client:
        session = client.post("/sessions", json={"agent": "demo"}).json()["session_id"]
        began = time.monotonic()
        with client.stream("POST", f"/sessions/{session}/turn",
                           json={"prompt": f"long {EVENTS}", "stream": True}) as stream:
            for _ in stream.iter_raw():
                pass
        plain = time.monotonic() - began
    chat = start_chat(gateway, home, token)
    chat.stdin.write(b"warm up\n")
    chat.stdin.flush()
    chat.stdout.readline()
    began = time.monotonic()
    chat.stdin.write(f"long {EVENTS}\n".encode())
    chat.stdin.close()
    lines = sum(1 for _ in chat.stdout)
    chat.wait()
    seconds = time.monotonic() - began
    assert lines == EVENTS, lines
    return seconds, plain


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share_of_top(gateway, home):
    main, terminal = pty.openpty()
    top = subprocess.Popen([str(PROGRAM), "top", "--url", gateway.url], stdin=terminal, stdout=terminal,
                           stderr=terminal,
                           env=clean_environment(home, {"TERM": "xterm", "CLAWDFORGE_ADMIN_TOKEN":
                                                        gateway.admin_token}))
    os.close(terminal)
    os.read(main, 65536)
    before = cpu_seconds(top.pid)
    end = time.monotonic() + TOP_SECONDS
    os.set_blocking(main, False)
    while time.monotonic() < end:
        try:
            os.read(main, 65536)
        except BlockingIOError:
            time.sleep(0.05)
    used = cpu_seconds(top.pid) - before
    os.write(main, b"q")
    top.wait()
    os.close(main)
    return used / TOP_SECONDS


def main():
    with tempfile.TemporaryDirectory() as place:
        home = pathlib.Path(place)
        gateway = Gateway(home / "gateway").start()
        try:
            times = sorted(first_characters(gateway, home))
            print(f"first character after the first event: median {statistics.median(times) * 1e3:.1f} ms, "
                  f"worst {times[-1] * 1e3:.1f} ms (at most 20)")
            seconds, plain = whole_turn(gateway, home)
            print(f"{EVENTS} events through a chat into a pipe: {seconds:.3f} s, {EVENTS / seconds:,.0f}/s; "
                  f"the same stream thrown away: {plain:.3f} s, {EVENTS / plain:,.0f}/s")
            print(f"top: {share_of_top(gateway, home) * 100:.2f} % of a core (below 1)")
        finally:
            gateway.stop()


main()
