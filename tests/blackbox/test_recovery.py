"""What a new gateway makes of what an earlier life has left: it ends processes that are its own and
no others, closes what was under way exactly once, removes what no row refers to, and says so."""
import os
import pathlib
import signal
import subprocess
import time
import uuid

import pytest

from agents import App, assert_success, processes_below, rows, run_dirs
from faults import new_faulty, shim
from gateway import PROGRAM, clean_environment, wait_until
from sessions import (Session, Talker, assert_turn, audit, change, is_alive, journal, query,
                      session_dirs, session_options, turn_rows)
from streams import assert_one_apart, tail

OTHER_BOOT = "5f0c2a0e-0000-4000-8000-000000000000"
NOTHING = {"runs": 0, "turns": 0, "sessions_never_made": 0, "process_trees": 0,
           "process_trees_stuck": 0, "directories": 0, "upload_files": 0, "upload_rows": 0,
           "keys": 0}
LEFTOVERS_END_SECONDS = 10
TREE_GRACES = {"kill_grace_ms": 200, "cancel_grace_ms": 200}


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def recovered(gateway):
    """The metrics, and the log's lines of this kind, of all lives."""
    mark = f"seen-{uuid.uuid4()}"
    text = gateway.admin.get("/metrics", headers={"X-Request-Id": mark}).text
    # The log is written by a thread of its own, in order: with this line all before it are there.
    wait_until(lambda: any(line.get("request_id") == mark for line in gateway.log_lines()),
               "the request is in the log")
    shown = {}
    for line in text.splitlines():
        if line.startswith("clawdforge_recovered{"):
            shown[line.split('"')[1]] = int(float(line.split()[1]))
    lines = [{key: value for key, value in line.items() if key in NOTHING}
             for line in gateway.log_lines() if line["message"] == "recovered"]
    return shown, lines


@pytest.fixture
def bystander():
    """Starts processes that have nothing to do with the gateway."""
    started = []

    def start(*command):
        process = subprocess.Popen(command or ["sleep", "600"], stdin=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def gateway(new_gateway, tmp_path):
    return new_gateway(**session_options(tmp_path, **TREE_GRACES))


def claim_run(gateway, pid, start, boot):
    """A run of an earlier life that has this process."""
    change(gateway, "INSERT INTO runs (run_id, app_name, agent, state, started_at, instance_id, "
                    "process_pid, process_start, process_boot_id) "
                    "VALUES (?, 'app', 'claude', 'running', 1, 'old', ?, ?, ?)",
           f"run-{pid}-{start}-{boot}", pid, start, boot)


def claim_session(gateway, pid, start, boot):
    change(gateway, "INSERT INTO sessions (session_id, app_name, agent, created_at, instance_id, "
                    "agent_session_id, process_pid, process_start, process_boot_id) "
                    "VALUES (?, 'app', 'fake', 1, 'old', 'x', ?, ?, ?)",
           f"session-{pid}-{start}", pid, start, boot)


def left_marks(gateway):
    return query(gateway, "SELECT process_pid FROM runs WHERE process_pid IS NOT NULL UNION ALL "
                          "SELECT process_pid FROM sessions WHERE process_pid IS NOT NULL")


# Processes

@pytest.mark.parametrize("claim", [claim_run, claim_session])
def test_a_stranger_with_a_recycled_pid_survives(gateway, bystander, claim):
    others = [bystander() for _ in range(4)]
    assert gateway.stop() == 0
    claim(gateway, others[0].pid, start_time(others[0].pid) + 1, boot_id())
    claim(gateway, others[1].pid, start_time(others[1].pid) - 1, boot_id())
    claim(gateway, others[2].pid, start_time(others[2].pid), OTHER_BOOT)
    claim(gateway, others[3].pid, start_time(others[3].pid), None)
    gateway.start()
    assert all(other.poll() is None for other in others)
    assert left_marks(gateway) == []
    assert recovered(gateway)[0]["process_trees"] == 0


@pytest.mark.parametrize("claim", [claim_run, claim_session])
def test_a_leftover_that_matches_is_ended(gateway, bystander, claim):
    left, other = bystander(), bystander()
    assert gateway.stop() == 0
    claim(gateway, left.pid, start_time(left.pid), boot_id())
    gateway.start()
    assert left.wait() == -signal.SIGTERM, "it was asked"
    assert other.poll() is None
    assert left_marks(gateway) == []
    shown, lines = recovered(gateway)
    assert shown["process_trees"] == 1 and lines[-1]["process_trees"] == 1


def test_a_leftover_that_does_not_listen_is_killed_with_what_it_has_started(gateway, bystander):
    left = bystander("sh", "-c", "trap '' TERM; setsid sleep 600 & sleep 600 & wait; sleep 600")
    children = pathlib.Path(f"/proc/{left.pid}/task/{left.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 2, "it has two children")
    below = [int(pid) for pid in children.read_text().split()]
    assert gateway.stop() == 0
    claim_run(gateway, left.pid, start_time(left.pid), boot_id())
    gateway.start()
    assert left.wait() == -signal.SIGKILL
    assert not any(map(is_alive, below))


def test_a_leftover_that_cannot_be_ended_is_told_and_does_not_keep_it_from_starting(
        new_faulty, bystander):
    """Such as one that waits for a disk which never answers."""
    gateway, faults = new_faulty(**TREE_GRACES)
    left = bystander()
    assert gateway.stop() == 0
    claim_run(gateway, left.pid, start_time(left.pid), boot_id())
    begun = time.monotonic()
    with faults.set(signals_lost=1):
        gateway.start()
    assert time.monotonic() - begun >= LEFTOVERS_END_SECONDS, "it has tried"
    assert left.poll() is None
    shown, lines = recovered(gateway)
    assert shown == {**NOTHING, "runs": 1, "process_trees_stuck": 1} == lines[-1]
    told = [line for line in gateway.log_lines()
            if line["message"] == "a process of an earlier life does not end"]
    assert [(line["level"], line["pid"]) for line in told] == [("warn", left.pid)]
    assert_success(App(gateway).run({"result": "well"}), "well")


def test_rows_of_nonsense_do_not_keep_it_from_starting(gateway, bystander):
    assert gateway.stop() == 0
    own = os.getpid()
    for pid, start, boot in ((0, 1, boot_id()), (1, start_time(1), OTHER_BOOT),
                             (-own, start_time(own), boot_id()), (2**40, 1, boot_id()),
                             ("x", "y", "z"), (own, "", boot_id())):
        claim_run(gateway, pid, start, boot)
    gateway.start()
    assert left_marks(gateway) == []
    assert recovered(gateway)[0] == {**NOTHING, "runs": 6}


def test_the_gateway_does_not_start_before_a_stopped_launcher_has_done_its_work(gateway, tmp_path):
    """Stopped, it does not notice that the gateway has died."""
    session = Talker(gateway).session()
    held = session.hold(tmp_path).begun()
    launcher = session.row()["process_pid"]
    os.kill(launcher, signal.SIGSTOP)
    gateway.kill()
    assert is_alive(launcher)  # the agent may end by itself: its input has
    gateway.start()
    assert not is_alive(launcher) and not processes_below(session.work())
    assert recovered(gateway)[1][-1]["process_trees"] == 1
    held.hang_up()


# What was under way

def test_turns_are_closed_once_although_the_gateway_is_killed_while_it_recovers(
        new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path, **TREE_GRACES))
    session = Talker(gateway).session()
    session.ask("hello")
    assert gateway.stop() == 0
    count = 3000
    begin_turns(gateway, session.id, count)
    unfinished = "SELECT COUNT(*) AS n FROM turns WHERE ended_at IS NULL"
    assert query(gateway, unfinished)[0]["n"] == count
    before, kills = count, 0
    while before > 0 and kills < 20:
        before = begin_recovery_and_kill(gateway, unfinished, before)
        kills += 1
    assert kills >= 2, "it was killed at its work"
    gateway.start()
    assert query(gateway, unfinished)[0]["n"] == 0
    closing = {}
    for event in journal(gateway, session):
        if event["event"] in ("done", "failed"):
            closing.setdefault(event["turn_index"], []).append(event["event"])
    assert closing == {1: ["done"], **{n: ["failed"] for n in range(2, count + 2)}}
    assert audit(gateway, session).count("interrupted") == count
    assert_turn(session.turn("again"), resumed=True)


def begin_turns(gateway, session_id, count):
    """So many turns of one session that an earlier life has begun."""
    change(gateway, "WITH RECURSIVE n(i) AS (VALUES(2) UNION ALL SELECT i + 1 FROM n "
                    "WHERE i <= ?) INSERT INTO turns (session_id, turn_index, state, "
                    "started_at, instance_id) SELECT ?, i, 'running', 1, 'old' FROM n",
           count, session_id)
    change(gateway, "UPDATE sessions SET turn_count = ? WHERE session_id = ?", count + 1,
           session_id)


def begin_recovery_and_kill(gateway, unfinished, before):
    """Starts it, kills it when it has closed some, and gives how many are left."""
    process = subprocess.Popen(
        [str(PROGRAM), "serve", "--listen", gateway.listen, "--data-dir", str(gateway.data_dir),
         *gateway.flags], env=clean_environment(gateway.root, gateway.env), cwd=gateway.root,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def has_closed_some():
            left = query(gateway, unfinished)[0]["n"]
            return left < max(before - 200, 1)
        wait_until(has_closed_some, "it closes turns")
    finally:
        process.kill()
        process.wait()
    return query(gateway, unfinished)[0]["n"]


def test_a_replay_ends_with_the_interruption(gateway, tmp_path):
    session = Talker(gateway).session()
    held = session.hold(tmp_path, {"text": "half of it"}).begun()
    waiting = session.send("never begun")
    wait_until(lambda: len(turn_rows(gateway, session)) >= 1, "its row is there")
    wait_until(lambda: "update" in [event["event"] for event in journal(gateway, session)],
               "it has said something")
    gateway.kill()
    gateway.start()
    held.hang_up()
    waiting.socket.close()
    states = [row["state"] for row in turn_rows(gateway, session)]
    assert set(states) == {"interrupted"}
    with tail(session, after=0) as stream:
        events = stream.take(1 + 2 * len(states))
        assert_one_apart(events, 1)
        names = [event.name for event in events]
        assert names[0] == "turn" and names[-len(states):] == ["failed"] * len(states)
        assert (names.count("turn"), names.count("update")) == (len(states), 1)
        body = events[-len(states)].json()
        assert (body["code"], body["ok"], body["turn_index"]) == ("interrupted", False, 1)
        before = session.told({"recall": True})
        assert "half of it" in before, "it wakes with its conversation"
    assert [event["event"] for event in journal(gateway, session)].count("failed") == len(states)


def test_a_session_never_made_leaves_nothing(gateway):
    app = Talker(gateway)
    kept = app.session()
    assert gateway.stop() == 0
    change(gateway, "INSERT INTO sessions (session_id, app_name, agent, created_at, instance_id) "
                    "VALUES ('half-made', 'app', 'fake', 1, 'old')")
    (gateway.data_dir / "sessions" / "half-made" / "work").mkdir(parents=True)
    gateway.start()
    assert session_dirs(gateway) == [kept.id]
    assert app.ids() == [kept.id]
    assert Session(app, "half-made").turn("hello").status_code == 404
    assert recovered(gateway)[0] == {**NOTHING, "sessions_never_made": 1, "directories": 1}


# The report

def test_a_clean_start_finds_nothing(gateway):
    assert gateway.restart()
    assert recovered(gateway) == (NOTHING, [])


def test_what_was_found_is_in_the_log_and_in_the_metrics(gateway, tmp_path):
    app = Talker(gateway)
    first, second = app.session(), app.session()
    turns = [session.hold(tmp_path).begun() for session in (first, second)]
    run = App(gateway, "runner").hold(tmp_path).begun()
    app.upload("kept.txt", b"kept")
    lost = app.upload("lost.txt", b"lost")
    assert lost
    wait_until(lambda: len(rows(gateway)) == 1, "the run's row is there")
    for session in (first, second):
        wait_until(lambda session=session: turn_rows(gateway, session), "the turn's row is there")
    uploads = gateway.data_dir / "uploads"
    gateway.kill()
    for held in (*turns, run):
        held.hang_up()
    newest = max(uploads.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    (uploads / ("0" * 64)).write_bytes(b"of no row")
    (gateway.data_dir / "sessions" / "unknown").mkdir()
    gateway.start()
    shown, lines = recovered(gateway)
    # How many trees were still there when it looked is up to them.
    assert 0 <= shown["process_trees"] <= 3
    expected = {**NOTHING, "runs": 1, "turns": 2, "directories": 2, "upload_files": 1,
                "upload_rows": 1, "process_trees": shown["process_trees"]}
    assert shown == expected
    assert lines == [expected]
    assert run_dirs(gateway) == [] and len(session_dirs(gateway)) == 2
    assert_success(App(gateway, "after").run({}))
    assert gateway.restart()
    assert recovered(gateway) == (NOTHING, [expected]), "and nothing is found twice"
