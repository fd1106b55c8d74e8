"""The machine misbehaves under a live gateway: it refuses clearly, keeps what it has acknowledged,
and is well again when the fault is over, without a restart. What other files show is not repeated:
a lock on the ledger (test_ledger, test_sweep, test_files, test_session_faults), a full disk for an
upload and its directory gone (test_files), too few descriptors at the start (test_lifecycle)."""
import concurrent.futures
import contextlib
import errno
import json
import os
import shutil
import time

import pytest

from agents import assert_success, gateway_of, gauge, loud_skip, processes, rows
from answers import assert_error, status_of
from faults import (LEDGER, STALL_SECONDS, UPLOADS, assert_clear, assert_well, faulty, is_ready, limit,
                    new_faulty, open_rows, shim, unready_code)
from gateway import SANITIZED, wait_until
from sessions import Talker, assert_turn, journal, query, turn_rows
from wire import Wire, bearer, request, with_body

pytestmark = pytest.mark.timeout(120)
DAY = 86_400


def minted(gateway, name, admin=None):
    return (admin or gateway.admin).post("/admin/tokens", json={"name": name})


def assert_refuses_writes(gateway, app, session, *codes, admin=None):
    """Every kind of work is told so; what needs no ledger goes on."""
    assert_clear(minted(gateway, "never", admin), *codes)
    assert_clear(app.run("hello"), *codes)
    assert_clear(session.turn("hello"), *codes)
    assert_clear(app.create(), *codes)
    assert_clear(app.client().post("/files", files={"file": ("a.txt", b"abc")}), *codes)
    assert gateway.whoami(app.token) == 200
    assert gateway.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_ledger_that_cannot_be_written_refuses_and_heals(faulty, error):
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    with faults.set(scope=LEDGER, write_errno=error):
        assert_refuses_writes(gateway, app, session, "ledger_unavailable")
        wait_until(lambda: unready_code(gateway) == "ledger_unavailable", "it says so")
    assert_well(gateway, app, [session])
    assert minted(gateway, "never").status_code == 200, "nothing of it was kept"


def test_work_that_is_under_way_when_the_ledger_fails_is_settled_later(faulty, tmp_path):
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    run, turn = app.hold(tmp_path).begun(), session.hold(tmp_path).begun()
    with faults.set(scope=LEDGER, write_errno=errno.EIO):
        assert_clear(run.end(), "ledger_unavailable")
        assert_clear(turn.end(), "ledger_unavailable")
    wait_until(lambda: [row["state"] for row in rows(gateway)] == ["succeeded"], "the run is settled")
    wait_until(lambda: [row["state"] for row in turn_rows(gateway, session)] == ["done"],
               "the turn is settled")
    assert_well(gateway, app, [session])


def test_a_slow_disk_makes_it_slow_and_nothing_else(faulty):
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    with faults.set(scope=LEDGER, sync_millis=1000):
        begun = time.monotonic()
        assert_success(app.run({"result": "slow"}), "slow")
        assert time.monotonic() - begun >= 1
        assert session.told({"text": "slow"}) == "slow"
        assert minted(gateway, "slow").status_code == 200
        assert is_ready(gateway), "slow is not ill"
        took = []
        for _ in range(10):
            begun = time.monotonic()
            assert gateway.whoami(app.token) == 200
            took.append(time.monotonic() - begun)
        assert min(took) < 1, "other callers do not wait for the disk"
    assert_well(gateway, app, [session])


@pytest.mark.parametrize("how", ["moved", "replaced", "directory moved"])
def test_a_ledger_that_is_moved_away_and_put_back_loses_nothing(faulty, how):
    gateway, _ = faulty
    app = Talker(gateway)
    session = app.session()
    admin = gateway.admin  # its token's file may be away
    place = gateway.data_dir if how == "directory moved" else gateway.data_dir / "clawdforge.db"
    aside = gateway.root / "aside"
    place.rename(aside)
    if how == "replaced":
        shutil.copyfile(aside, place)
    assert_refuses_writes(gateway, app, session, admin=admin)
    wait_until(lambda: unready_code(gateway) == "ledger_unavailable", "it says so")
    if how == "directory moved":
        shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)
    assert_well(gateway, app, [session])


def test_a_ledger_that_is_deleted_stays_refused_and_the_end_is_clean(faulty):
    gateway, _ = faulty
    app = Talker(gateway)
    for path in gateway.data_dir.glob("clawdforge.db*"):
        path.unlink()
    assert_clear(app.run("hello"), "ledger_unavailable")
    wait_until(lambda: unready_code(gateway) == "ledger_unavailable", "it says so")
    gateway.restart()
    assert is_ready(gateway) and gateway.whoami(app.token) == 401, "a new ledger knows no app"


def test_a_data_directory_that_is_read_only_refuses_and_heals(faulty):
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    with faults.set(open_errno=errno.EROFS):
        assert_clear(app.run("hello"), "workspace_unavailable")
        assert_clear(app.create(), "workspace_unavailable")
        assert_clear(app.client().post("/files", files={"file": ("a.txt", b"abc")}),
                     "workspace_unavailable")
        assert session.told({"text": "on"}) == "on", "what needs no new file goes on"
    assert_well(gateway, app, [session])


@pytest.mark.parametrize("scope", [LEDGER, UPLOADS])
def test_a_stuck_disk_is_told_in_bounded_time_and_heals(faulty, scope, tmp_path):
    """A call that was in hand is answered that its outcome is not known; a call that comes later is
    told at once that it was not done."""
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    code = "ledger_unavailable" if scope == LEDGER else "disk_stalled"
    with concurrent.futures.ThreadPoolExecutor(8) as pool, faults.set(scope=scope, hold=1):
        first = pool.submit(app.client().post, "/files", files={"file": ("a.txt", b"abc")})
        wait_until(lambda: faults.held, "the worker is stuck")
        asked = [pool.submit(app.run, "hello"), pool.submit(app.create),
                 pool.submit(minted, gateway, "mint")]
        if scope == LEDGER:
            asked.append(pool.submit(session.turn, "hello"))
        wait_until(lambda: unready_code(gateway) == code, "it says so")
        assert_clear(first.result(), "ledger_stalled", "disk_stalled")
        if scope == LEDGER:
            for one in asked:
                assert_clear(one.result(), "ledger_unavailable")
        else:
            assert [one.result().status_code for one in asked] == [503, 503, 200]
        assert faults.held, "all of these were answered although the disk never answered"
        begun = time.monotonic()
        for _ in range(20):
            assert_clear(app.run("hello"))
            assert_clear(app.create())
        # One that waited would take STALL_SECONDS by itself.
        assert time.monotonic() - begun < 4 * STALL_SECONDS, "what comes later does not wait at all"
        assert gateway.whoami(app.token) == 200
        metric = "clawdforge_ledger_queue_jobs" if scope == LEDGER else "clawdforge_disk_queue_jobs"
        assert gauge(gateway, metric) < 50, "nothing piles up"
    assert_well(gateway, app, [session])


def test_what_was_in_hand_when_the_ledger_got_stuck_is_made_good(faulty, tmp_path):
    """Each of these is answered that its outcome is not known. Then it is kept after all."""
    gateway, faults = faulty
    app, other = Talker(gateway), Talker(gateway, "other")
    session, closing = app.session(), app.session()
    admin = gateway.admin
    run, turn = app.hold(tmp_path).begun(), session.hold(tmp_path).begun()
    with concurrent.futures.ThreadPoolExecutor(8) as pool, faults.set(scope=LEDGER, sync_millis=400):
        # They gather behind the first, and are taken in hand together.
        asked = [pool.submit(minted, gateway, "first", admin)]
        wait_until(lambda: gauge(gateway, "clawdforge_ledger_queue_jobs"), "it is busy")
        asked += [pool.submit(minted, gateway, "mint", admin), pool.submit(app.run, "hello"),
                  pool.submit(app.create), pool.submit(closing.close),
                  pool.submit(admin.delete, "/admin/tokens/other")]
        run.let_go()
        turn.let_go()
        wait_until(lambda: gauge(gateway, "clawdforge_ledger_queue_jobs") >= 6, "they wait")
        faults.hold = 1
        wait_until(lambda: unready_code(gateway) == "ledger_unavailable", "it is stuck")
        codes = {assert_clear(answer, "ledger_stalled", "ledger_unavailable")
                 for answer in (run.answer(), turn.answer())}
        for one in asked:
            with contextlib.suppress(AssertionError):
                answer = one.result()
                codes.add(answer.json().get("code"))
        assert "ledger_stalled" in codes
        faults.hold = 0
    wait_until(lambda: not open_rows(gateway), "no row says that something runs")
    names = {row["name"] for row in query(gateway, "SELECT name FROM tokens")}
    wait_until(lambda: {row["name"] for row in admin.get("/admin/tokens").json()["tokens"]} == names,
               "memory is true to the ledger")
    wait_until(lambda: gateway.whoami(other.token) == (200 if "other" in names else 401),
               "also about who may call")
    gateway.admin.post("/admin/sweep")
    left = [session] if closing.state()["closed_at"] else [session, closing]
    wait_until(lambda: len(app.ids(state="open")) == len(left), "no session without an owner")
    assert_well(gateway, app, left)


def test_overload_is_told_at_once_and_others_do_not_notice(new_faulty, tmp_path):
    gateway, _ = new_faulty(max_runs=1, max_queued_runs=4)
    greedy, other = Talker(gateway, "greedy"), Talker(gateway, "other")
    session = other.session()
    held = [greedy.hold(tmp_path) for _ in range(5)]
    held[0].begun()
    wait_until(lambda: gauge(gateway, "clawdforge_runs_waiting") == 4, "the queue is full")

    def refused(_):
        assert_clear(greedy.run("hello"), "queue_full")

    # The one that runs does not end before the test lets it, so an answer shows that its caller did
    # not wait for a place. One that waits has another code when its time is up.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        flood = pool.map(refused, range(150))
        for _ in range(10):
            assert session.told({"text": "on"}) == "on"
        list(flood)
    assert gauge(gateway, "clawdforge_runs_waiting") == 4
    for one in held:
        assert_success(one.end())
    assert_well(gateway, other, [session])


# Time

@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
def test_a_clock_that_jumps_changes_no_deadline(faulty, tmp_path, jump):
    gateway, faults = faulty
    app = Talker(gateway)
    session, idle = app.session(), app.session()
    run, turn = app.hold(tmp_path).begun(), session.hold(tmp_path).begun()
    late = app.hold(tmp_path, timeout_secs=5)
    with faults.set(clock_seconds=jump):
        answer = late.answer()
        assert (answer.status, answer.json()["code"]) == (504, "timeout")
        assert minted(gateway, "then").status_code == 200
        assert gateway.whoami(app.token) == 200
        body = assert_success(app.run({"result": "then"}), "then")
        assert body["duration_ms"] < 60_000
        assert_success(run.end())
        assert assert_turn(turn.end())["duration_ms"] < 60_000
        assert gateway.admin.post("/admin/sweep").status_code == 200
        assert session.state()["closed_at"] is None, "it was busy a moment ago"
        is_closed = idle.state()["closed_at"] is not None
        assert is_closed == (jump > 0), "what expires by date follows the clock"
        ids = [row["run_id"] for row in rows(gateway)]
        assert ids == sorted(ids), "ids keep their order"
    assert_well(gateway, app, [session] if jump > 0 else [session, idle])


# Memory

@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more address space than any limit leaves")
def test_no_more_memory_is_told_and_heals(new_faulty):
    gateway, _ = new_faulty(max_body_bytes=64 << 20)
    app = Talker(gateway)
    session = app.session()
    big = json.dumps({"prompt": "x" * (8 << 20)}).encode()
    large = json.dumps({"prompt": json.dumps({"result": "x" * (4 << 20)})}).encode()
    refused = 0
    for room in range(3, 120, 18):  # it strikes at another place each time
        with open(f"/proc/{gateway.process.pid}/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        before = limit(gateway, "as", used + (room << 20))
        try:
            answers = []
            for line, body in (("POST /run", big), ("POST /run", large),
                               (f"POST {session.path}/turn", big)):
                with Wire(gateway) as wire:
                    answers.append(wire.ask(with_body(line, body, bearer(app.token))))
            # An agent that says more than there is room for.
            answers.append(session.turn({"big_line": 8 << 20}))
            failed = [answer for answer in answers if status_of(answer) != 200]
            for answer in failed:
                assert_clear(answer, "out_of_memory", "ledger_unavailable")
            assert gateway.whoami(app.token) == 200
        finally:
            limit(gateway, "as", before)
        refused += len(failed)
        if not failed:
            break
    assert refused > 2 and not failed, "it struck, and then there was enough"
    assert_well(gateway, app, [session])
    numbers = [event["id"] for event in journal(gateway, session)]
    assert numbers == list(range(1, len(numbers) + 1)), "no event is missing"


# Processes and descriptors

def test_no_more_processes_is_503_and_heals(faulty):
    gateway, faults = faulty
    app = Talker(gateway)
    session = app.session()
    sleeper = app.session()
    os.kill(sleeper.pid(), 9)
    wait_until(lambda: not sleeper.state()["live"], "its agent is gone")
    with faults.set(spawn_errno=errno.EAGAIN):
        assert_clear(app.run("hello"), "no_resources")
        assert_clear(app.create(), "no_resources")
        assert_clear(sleeper.turn("hello"), "no_resources")
        assert session.told({"text": "on"}) == "on", "an agent that lives goes on"
        assert is_ready(gateway)
    assert_well(gateway, app, [session, sleeper])


def threads_of(user):
    """What counts for the limit on a user's processes: all threads, on the whole machine."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
            if int(fields["Uid"].split()[0]) == user:
                count += int(fields["Threads"])
    return count


@pytest.mark.parametrize("pid_namespace", ["off", "auto"])
def test_the_users_own_limit_on_processes_is_503_wherever_it_strikes(pid_namespace):
    """Also in the launcher, which starts the program."""
    user = 60_000 + os.getpid() % 5_000  # has no other processes, which would count as well
    with gateway_of(user, pid_namespace) as gateway:
        app = Talker(gateway)
        assert_success(app.run({"result": "before"}), "before")
        wait_until(lambda: not processes(gateway), "the run is gone")
        refused = 0
        for more in range(8):
            before = limit(gateway, "nproc", threads_of(user) + more)
            answer = app.run({"result": "ok"})
            limit(gateway, "nproc", before)
            wait_until(lambda: not processes(gateway), "no child is alive")
            if answer.status_code == 200:
                break
            refused += 1
            assert_clear(answer, "no_resources")
        assert refused >= 2, "it struck in the gateway and in the launcher"
        assert_success(app.run({"result": "after"}), "after")


def test_no_more_descriptors_is_told_and_heals(faulty):
    if SANITIZED:
        loud_skip("the undefined-behaviour sanitizer needs a descriptor for each of its looks")
    gateway, _ = faulty
    app = Talker(gateway)
    session = app.session()
    ask = request("GET /whoami", bearer(app.token))
    hello = json.dumps({"prompt": "hello"}).encode()
    with contextlib.ExitStack() as stack:
        wire = stack.enter_context(Wire(gateway))
        assert wire.ask(ask).status == 200
        numbers = map(int, os.listdir(f"/proc/{gateway.process.pid}/fd"))
        before = limit(gateway, "nofile", max(numbers) + 1)
        for _ in range(100):  # until the gaps between the numbers are filled, too
            answer = stack.enter_context(Wire(gateway)).ask(ask)
            if answer.status != 200:
                break
        for _ in range(10):
            with Wire(gateway) as another:
                answer = another.ask(ask)
                assert_error(answer, 503, "too_many_connections")
                assert int(answer.header("Retry-After")) >= 1
        assert_clear(wire.ask(with_body("POST /run", hello, bearer(app.token))))
        assert_turn(wire.ask(with_body(f"POST {session.path}/turn", hello, bearer(app.token))))
        assert wire.ask(ask).status == 200, "who is connected goes on"
        limit(gateway, "nofile", before)
    assert_well(gateway, app, [session])
