"""kill -9 in the middle of work: what was answered holds."""
import random
import itertools
import threading

import httpx
import pytest

from gateway import NO_TLS, SECONDS_MAX, wait_until

WORKERS = 4
ROUNDS = 5
ANSWERS_BEFORE_THE_KILL = 60


class Work:
    """What one worker did. `unsure` are the names whose last call got no answer."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.tokens = {}
        self.dead_tokens = []
        self.gone = set()
        self.unsure = set()
        self.answers = 0

    def run(self, gateway, seed):
        choice = random.Random(seed)
        with httpx.Client(base_url=gateway.url, trust_env=False, verify=NO_TLS, timeout=SECONDS_MAX,
                          headers={"Authorization": f"Bearer {gateway.admin_token}"}) as admin:
            number = 0
            while True:
                kind = choice.choice(["mint", "mint", "rotate", "revoke"])
                name = f"{self.prefix}-{number}"
                number += 1
                if kind != "mint" and self.tokens:
                    name = choice.choice(sorted(self.tokens))
                else:
                    kind = "mint"
                try:
                    self.do(admin, kind, name)
                except httpx.TransportError:
                    self.unsure.add(name)
                    return
                self.answers += 1

    def do(self, admin, kind, name):
        if kind == "mint":
            answer = admin.post("/admin/tokens", json={"name": name})
            assert answer.status_code == 200, answer.text
            self.tokens[name] = answer.json()["token"]
        elif kind == "rotate":
            answer = admin.post(f"/admin/tokens/{name}/rotate")
            assert answer.status_code == 200, answer.text
            self.dead_tokens.append(self.tokens[name])
            self.tokens[name] = answer.json()["token"]
        else:
            assert admin.delete(f"/admin/tokens/{name}").status_code == 200
            self.dead_tokens.append(self.tokens.pop(name))
            self.gone.add(name)


SOURCES = itertools.count()


def statuses(gateway, tokens):
    """What each token gets; from ever new addresses, as dead ones look like guessing."""
    found = []
    for start in range(0, len(tokens), 10):
        number = next(SOURCES)
        source = f"127.8.{number // 250}.{number % 250 + 1}"
        with gateway.client(source=source) as client:
            for token in tokens[start:start + 10]:
                answer = client.get("/whoami", headers={"Authorization": f"Bearer {token}"})
                found.append(answer.status_code)
    return found


@pytest.mark.timeout(300)
def test_every_answered_mint_rotation_and_revocation_outlives_a_kill(gateway):
    finished = []
    for round_number in range(ROUNDS):
        works = [Work(f"r{round_number}w{i}") for i in range(WORKERS)]
        threads = [threading.Thread(target=work.run, args=(gateway, f"{round_number}.{i}"))
                   for i, work in enumerate(works)]
        for thread in threads:
            thread.start()
        wait_until(lambda: sum(work.answers for work in works) >= ANSWERS_BEFORE_THE_KILL,
                   "some work is done")
        gateway.kill()
        for thread in threads:
            thread.join()
        gateway.start()
        finished += works
        listed = {app["name"] for app in gateway.admin.get("/admin/tokens").json()["tokens"]}
        for work in finished:
            sure = {name: t for name, t in work.tokens.items() if name not in work.unsure}
            assert set(sure) <= listed
            assert not (work.gone & listed)
            assert set(statuses(gateway, list(sure.values()))) <= {200}
            assert set(statuses(gateway, work.dead_tokens)) <= {401}
            work.dead_tokens = work.dead_tokens[-5:]
    assert sum(len(work.gone) for work in finished) > 0
    assert sum(len(work.tokens) for work in finished) > 0


def test_a_kill_leaves_nothing_in_the_way_of_the_next_start(gateway):
    for _ in range(3):
        gateway.kill()
        assert (gateway.data_dir / "port").exists()
        gateway.start()
        assert (gateway.data_dir / "port").read_text() == f"{gateway.port}\n"
