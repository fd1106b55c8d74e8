"""contrib/prometheus and contrib/grafana with a real Prometheus that scrapes a gateway under load."""
import json
import re
import subprocess
import sys
import threading

import httpx
import pytest
import yaml

from gateway import REPO, SECONDS_MAX, wait_until
from hooks import Receiver
from test_proxies import free_port

PROMETHEUS = REPO / "contrib/prometheus"
BOARD = REPO / "contrib/grafana/clawdforge.json"


def test_the_rules_are_sound_and_name_metrics_that_there_are(new_gateway):
    for command in (["check", "rules", "alerts.yml"], ["check", "config", "--syntax-only", "prometheus.yml"]):
        done = subprocess.run(["promtool", *command], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    page = (REPO / "docs/operations.md").read_text()
    used = set(re.findall(r"\bclawdforge_\w+", (PROMETHEUS / "alerts.yml").read_text() + BOARD.read_text()))
    unknown = {name for name in used if re.sub(r"_bucket$", "", name) not in page}
    assert not unknown, f"docs/operations.md does not have {sorted(unknown)}"


def test_the_board_is_what_its_table_says():
    made = subprocess.run([sys.executable, str(REPO / "contrib/grafana/make_board.py")], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    assert made == BOARD.read_text(), "run contrib/grafana/make_board.py > contrib/grafana/clawdforge.json"


class Load:
    """Runs, turns, jobs, refusals and webhooks until it is stopped."""

    def __init__(self, gateway, receiver):
        token = gateway.mint("app", webhook_urls=[receiver.url])["token"]
        limited = gateway.mint("limited", asks_per_minute=1)["token"]
        self.client, self.limited, self.hook = gateway.client(token), gateway.client(limited), receiver.url
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        session = self.client.post("/sessions", json={"agent": "demo"}).json()["session_id"]
        while not self.is_over.wait(0.2):
            self.client.post("/run", json={"prompt": "x", "agent": "demo"})
            self.limited.post("/run", json={"prompt": "x", "agent": "demo"})
            self.client.post(f"/sessions/{session}/turn", json={"prompt": "x"})
            self.client.post("/jobs", json={"run": {"prompt": "x", "agent": "demo"}, "webhook": self.hook})
            self.client.get("/nowhere")

    def stop(self):
        self.is_over.set()
        self.thread.join(SECONDS_MAX)


@pytest.mark.timeout(240)
def test_every_panel_has_data(new_gateway, tmp_path):
    gateway = new_gateway(flags=["--sweep-interval-secs", "1"])
    settings = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(PROMETHEUS / "alerts.yml")]
    job = settings["scrape_configs"][0]
    job["authorization"]["credentials_file"] = str(gateway.data_dir / "admin-token")
    job["static_configs"][0]["targets"] = [f"127.0.0.1:{gateway.port}"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(settings))
    port = free_port()
    with Receiver() as receiver, open(tmp_path / "log", "w") as log:
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        load = Load(gateway, receiver)
        try:
            queries = [(panel["title"], target["expr"].replace("$job", "clawdforge").replace("$__rate_interval", "10s"))
                       for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]
            assert len(queries) > 15

            def ask(path, **parameters):
                try:
                    answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=parameters, trust_env=False, timeout=10)
                    return answer.json()["data"] if answer.status_code == 200 else {}
                except httpx.TransportError:
                    return {}

            def without_data():
                empty = []
                for title, query in queries:
                    values = [row["value"][1] for row in ask("query", query=query).get("result", [])]
                    if not values or all(value == "NaN" for value in values):
                        empty.append(f"{title}: {query}")
                return empty
            empty = []

            def has_data():
                nonlocal empty
                empty = without_data()
                return not empty
            try:
                wait_until(has_data, "data in every panel", seconds=120)
            except AssertionError:
                raise AssertionError("without data:\n" + "\n".join(empty) + (tmp_path / "log").read_text()[-2000:]) from None
            rules = ask("rules")["groups"][0]["rules"]
            assert len(rules) >= 9 and all(rule["health"] in ("ok", "unknown") for rule in rules), rules
        finally:
            load.stop()
            prometheus.terminate()
            prometheus.wait(timeout=SECONDS_MAX)
