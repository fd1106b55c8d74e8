"""What the door costs, beside nginx in the same run.

  bench/run http            (installs nginx and wrk, builds, runs this)

Prints: authorised small GETs per second of server CPU against nginx's static answer of
the same size, idle memory, size of the stripped program, memory per idle connection.
Rounds are interleaved and the median is taken; only loopback is used.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("CLAWDFORGE_BIN", ROOT / "build/release/clawdforge"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise SystemExit("the server did not start")


class Gateway:
    def __init__(self, folder: pathlib.Path, log_level: str):
        self.folder = folder
        self.process = subprocess.Popen(
            [*pinned(0), PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder,
             "--log-level", log_level, "--max-requests-per-sec-per-app", "100000000",
             "--max-requests-per-sec-per-address", "100000000"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])
        self.pid = self.process.pid

    def token(self) -> str:
        admin = (self.folder / "admin-token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/admin/tokens", data=b'{"name":"bench"}',
            headers={"Authorization": f"Bearer {admin}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["token"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)


class Nginx:
    def __init__(self, folder: pathlib.Path, body: str):
        self.port = free_port()
        (folder / "logs").mkdir(parents=True)
        config = folder / "nginx.conf"
        config.write_text(f"""
            worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/logs/error;
            events {{ worker_connections 10000; }}
            http {{
              access_log off; keepalive_requests 100000000;
              client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
              fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
              server {{
                listen 127.0.0.1:{self.port};
                location /whoami {{ default_type application/json; return 200 '{body}'; }}
              }}
            }}""")
        self.process = subprocess.Popen([*pinned(0), "nginx", "-p", folder, "-c", config],
                                        stderr=subprocess.DEVNULL)
        wait_for(self.port)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + 10
        while not children.read_text() and time.monotonic() < deadline:
            pass  # the worker is about to be forked
        self.pid = int(children.read_text().split()[0])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)


def pinned(core: int) -> list[str]:
    """Server and load generator each on a core of their own, where there are two."""
    return ["taskset", "-c", str(core)] if (os.cpu_count() or 1) >= 2 else []


def load(server, seconds: int, token: str) -> tuple[float, float]:
    """Requests per second, and per second of server CPU."""
    before = cpu_seconds(server.pid)
    output = subprocess.run(
        [*pinned(1), "wrk", "-t1", "-c64", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}",
         f"http://127.0.0.1:{server.port}/whoami"],
        check=True, capture_output=True, text=True).stdout
    spent = cpu_seconds(server.pid) - before
    count = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"wrk saw errors:\n{output}")
    return rate, count / spent


def throughput(folder: pathlib.Path, rounds: int, seconds: int, log_level: str) -> None:
    gateway = Gateway(folder / f"gateway-{log_level}", log_level)
    token = gateway.token()
    request = urllib.request.Request(f"http://127.0.0.1:{gateway.port}/whoami",
                                     headers={"Authorization": f"Bearer {token}"})
    body = urllib.request.urlopen(request).read().decode()
    nginx = Nginx(folder / f"nginx-{log_level}", body)
    ours, theirs = [], []
    for turn in range(rounds):
        if turn % 2 == 0:
            ours.append(load(gateway, seconds, token))
        theirs.append(load(nginx, seconds, token))
        if turn % 2 == 1:
            ours.append(load(gateway, seconds, token))
    gateway.stop()
    nginx.stop()
    ratios = [a[1] / b[1] for a, b in zip(ours, theirs)]
    median = statistics.median
    print(f"authorised GET, log level {log_level}: {rounds} rounds of {seconds} s")
    print(f"  gateway  {median(a[0] for a in ours):9.0f} /s  {median(a[1] for a in ours):9.0f} per CPU s")
    print(f"  nginx    {median(b[0] for b in theirs):9.0f} /s  {median(b[1] for b in theirs):9.0f} per CPU s")
    print(f"  ratio per CPU second: median {median(ratios):.2f}, "
          f"{min(ratios):.2f} to {max(ratios):.2f}")


def memory(folder: pathlib.Path, count: int) -> None:
    gateway = Gateway(folder / "memory", "warn")
    time.sleep(3)  # a few rounds of everything periodic
    idle = resident_kib(gateway.pid)
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sockets = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", gateway.port))
        connection.sendall(ask)
        sockets.append(connection)
    for connection in sockets:
        connection.recv(4096)
    time.sleep(2)
    loaded = resident_kib(gateway.pid)
    stripped = folder / "stripped"
    shutil.copy(PROGRAM, stripped)
    subprocess.run(["strip", stripped], check=True)
    print(f"idle memory: {idle / 1024:.1f} MiB resident")
    print(f"{count} idle connections that made one request each: {loaded / 1024:.1f} MiB, "
          f"{(loaded - idle) / count:.2f} KiB each")
    print(f"stripped program: {stripped.stat().st_size / 1e6:.2f} MB")
    for connection in sockets:
        connection.close()
    gateway.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--only", choices=["throughput", "memory"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        os.chmod(folder, 0o755)
        if options.only != "throughput":
            memory(folder, options.connections)
        if options.only != "memory":
            throughput(folder, options.rounds, options.seconds, "warn")
            throughput(folder, options.rounds, options.seconds, "info")


main()
