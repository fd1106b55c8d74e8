"""Limits on an agent's memory, processes, files and system calls, as root and as an ordinary user,
whether by control groups or by the launcher's counting. Each attack succeeds without the limit."""
import os
import pathlib

import pytest

from agents import (REPO, UNPRIVILEGED, App, allows_namespaces, assert_success, fake_env, gateway_of,
                    gauge, loud_skip)
from answers import assert_error
from gateway import refused_start, wait_until

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"
either_user = pytest.mark.parametrize("user", [None, UNPRIVILEGED], ids=["root", "ordinary"])


@pytest.fixture(autouse=True)
def namespaces():
    if not allows_namespaces(None):
        loud_skip("the kernel allows no namespaces")


def limited(user, **settings):
    return gateway_of(user, "auto", stand_in=INTRUDER, **{"jail_write": "", **settings})


def ask(app, *what, **fields):
    return app.run({"do": [list(one) for one in what]}, **fields)


def results(app, *what, **fields):
    return assert_success(ask(app, *what, **fields))["result"]


def means_of(gateway):
    names = ("nothing", "counting", "cgroup1", "cgroup2")
    told, = [name for name in names
             if gauge(gateway, f'clawdforge_limit_means{{means="{name}"}}') == 1]
    return told


def groups_of(gateway):
    """Control groups of this gateway's trees."""
    root = pathlib.Path("/sys/fs/cgroup")
    return [path for path in root.glob(f"**/clawdforge-tree-{gateway.process.pid}-*")]


@either_user
def test_a_fork_bomb_is_stopped_and_the_others_go_on(user):
    """Row 17."""
    with limited(user, pids_max=40) as gateway:
        line, = wait_until(lambda: [line for line in gateway.log_lines()
                                    if line["message"] == "limits on agents are held"], "it is told")
        assert line["means"] == means_of(gateway)
        bomber, neighbour = App(gateway, "bomber"), App(gateway, "neighbour")
        answer = ask(bomber, ("fork", 400))
        if answer.status_code == 200:
            made, = assert_success(answer)["result"]
            assert 20 <= made <= 40
        else:
            assert means_of(gateway) == "counting", "only where the kernel does not count"
            assert_error_of_run(answer, "agent_processes")
        assert results(neighbour, ("fork", 10)) == [10]
        wait_until(lambda: not groups_of(gateway), "its groups go")
    with limited(user) as gateway:
        assert results(App(gateway, "bomber"), ("fork", 400)) == [400]


def assert_error_of_run(answer, code):
    assert answer.status_code == 502, answer.text
    assert answer.json()["code"] == code, answer.text


@either_user
def test_a_memory_bomb_ends_its_own_tree(user):
    """Row 18: in one process, and divided among several."""
    with limited(user, memory_max="192MiB") as gateway:
        bomber, neighbour = App(gateway, "bomber"), App(gateway, "neighbour")
        for children in (1, 4):
            answer = ask(bomber, ("hold", 800, children))
            assert_error_of_run(answer, "agent_memory")
            assert "memory" in answer.json()["detail"]
        assert results(neighbour, ("fork", 5)) == [5]
        wait_until(lambda: gauge(gateway, "clawdforge_trees_over_memory_total") == 2, "it is counted")
        wait_until(lambda: "limit.memory" in gateway.admin.get("/admin/events").text, "the audit has it")
        wait_until(lambda: not groups_of(gateway), "its groups go")


def test_counting_holds_where_there_are_no_groups(tmp_path):
    """An ordinary user without a delegated group: the launcher counts, and says so."""
    with limited(UNPRIVILEGED, memory_max="192MiB", cpu_max_percent=50) as gateway:
        if means_of(gateway) != "counting":
            loud_skip("this machine gives ordinary users control groups")
        wait_until(lambda: "cpu_max_percent is not held: it needs control groups" in [
            line["message"] for line in gateway.log_lines()], "it is told")
        assert_error_of_run(ask(App(gateway), ("hold", 800, 4)), "agent_memory")


def test_the_smallest_limit_of_gateway_agent_and_app_counts(new_gateway, tmp_path):
    config = tmp_path / "limits.toml"
    config.write_text('pids_max = 200\n[agents.claude]\npids_max = 100\nmemory_max = "2GiB"\n')
    gateway = new_gateway(env=fake_env(claude_bin=INTRUDER), flags=["--config", str(config)])
    plain, small = App(gateway, "plain"), App(gateway, "small", pids_max=30, memory_max="1GiB")

    def made(app):
        answer = ask(app, ("fork", 400))
        return assert_success(answer)["result"][0] if answer.status_code == 200 else None

    more, fewer = made(plain), made(small)
    if means_of(gateway) != "counting":
        assert 60 <= more <= 100 and 15 <= fewer <= 30
    assert small.client().get("/whoami").json()["memory_max"] == 1 << 30
    for wrong in ({"memory_max": "3GB"}, {"memory_max": 1}, {"pids_max": 1}, {"cpu_max_percent": 0},
                  {"net": "closed"}, {"net_allow": ["example.org"]}, {"net_allow": ["a b:443"]}):
        answer = gateway.admin.post("/admin/tokens", json={"name": "wrong", **wrong})
        assert_error(answer, 422, "validation_failed")


@either_user
def test_one_file_cannot_fill_the_disk(user):
    """Row 27, the part that is stopped."""
    with limited(user) as gateway:
        assert results(App(gateway), ("grow", "large", 17 << 30), ("grow", "small", 1 << 30)) == ["EFBIG", None]
    with limited(user, jail="off") as gateway:
        assert results(App(gateway), ("grow", "large", 17 << 30)) == [None]


BPF, IO_URING_SETUP, KEYCTL, USERFAULTFD = {"x86_64": (321, 425, 250, 323),
                                            "aarch64": (280, 425, 219, 282)}[os.uname().machine]


@either_user
def test_calls_that_no_agent_needs_are_refused_in_full(user):
    calls = [("call", number) for number in (BPF, IO_URING_SETUP, KEYCTL, USERFAULTFD)]
    with limited(user, jail="full") as gateway:
        found = results(App(gateway), *calls, ("run", "unshare", "-Urm", "true"))
        assert found[:4] == ["EPERM"] * 4
        assert found[4][0] == 0, "sandboxes of agents still nest"
    with limited(user) as gateway:
        assert set(results(App(gateway), *calls)) != {"EPERM"}


def test_full_has_limits_of_its_own():
    with limited(None, jail="full") as gateway:
        answer = ask(App(gateway), ("fork", 1000))
        if answer.status_code == 200:
            assert 400 <= assert_success(answer)["result"][0] <= 512
        else:
            assert_error_of_run(answer, "agent_processes")


def test_a_jail_that_is_off_and_demanded_ends_the_start(tmp_path):
    for flags in (("--jail", "off", "--net", "none"), ("--net", "proxy", "--pid-namespace", "off")):
        home = tmp_path / flags[-1]
        home.mkdir()
        code, sentence = refused_start(home, *flags)
        assert code == 1 and "net" in sentence, sentence
