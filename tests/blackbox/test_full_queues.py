"""What waits in memory is bounded, and shown in /metrics. A queue that is full refuses at once, with
its own code, while everybody who does not need it is answered as ever; and it is well again
afterwards. What other files fill is not repeated: connections (test_http), runs that wait
(test_run_queue, test_faults), turns of a session (test_session_queue), what a reader of a stream
falls behind (test_streams)."""
import base64
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import select
import signal

import pytest

from agents import assert_success, gauge, loud_skip, run_dirs
from answers import assert_error
from faults import (LEDGER, UPLOADS, assert_clear, assert_well, is_ready, new_faulty,
                    shim, unready_code)
from gateway import REPO, SANITIZED, wait_until
from sessions import Session, Talker, assert_created, assert_turn, new_forge
from wire import Wire, bearer, request, with_body

pytestmark = pytest.mark.timeout(120)
DISK_JOBS_MAX = 4096
APP_JOBS_MAX = 3072  # of the disk or the ledger, for one app
PLACE_QUEUE_MAX = 1024
MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def many_descriptors():
    """Thousands of callers need as many descriptors here, and in the gateway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * DISK_JOBS_MAX:
        loud_skip("too few descriptors for so many callers")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * DISK_JOBS_MAX), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def crowd(gateway, count):
    """So many callers, who have asked nothing yet."""
    with contextlib.ExitStack() as callers:
        yield [callers.enter_context(Wire(gateway)) for _ in range(count)]


def ask_all(wires, data):
    for wire in wires:
        wire.send(data)


def answered(wires):
    """Those who need not wait any more."""
    poll = select.poll()
    by_number = {wire.socket.fileno(): wire for wire in wires}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(0)]


# Each case: where the disk does not answer, who gets stuck in it, who waits behind that, the
# refusal, and the gauge.
QUEUES = {
    "disk": (UPLOADS, lambda app: app.client().post("/files", files={"file": ("a.txt", b"abc")}),
             lambda session: f"GET {session.path}/files", "disk_busy", "clawdforge_disk_queue_jobs"),
    "ledger": (LEDGER, lambda app: app.gateway.admin.post("/admin/tokens", json={"name": "new"}),
               lambda session: f"GET {session.path}", "ledger_unavailable",
               "clawdforge_ledger_queue_jobs"),
}


@pytest.mark.skipif(SANITIZED, reason="too slow to fill it before the disk counts as stuck")
@pytest.mark.parametrize("queue", QUEUES)
def test_a_full_queue_of_a_worker_refuses_at_once_and_heals(new_faulty, queue):
    scope, get_stuck, line, code, name = QUEUES[queue]
    bound = APP_JOBS_MAX
    gateway, faults = new_faulty()
    app, other = Talker(gateway, "app"), Talker(gateway, "other")
    session, apart = app.session(), other.session()
    data = request(line(session), bearer(app.token))
    surplus = 40
    with (concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as crowded,
          crowd(gateway, bound + surplus) as wires):
        with faults.set(scope=scope, hold=1):
            stuck = pool.submit(get_stuck, app)
            wait_until(lambda: faults.held, "the worker is stuck")
            ask_all(wires, data)
            refused = wait_until(lambda: len(answered(wires)) >= surplus and answered(wires),
                                 "those for whom there is no room are told so")
            for wire in refused:
                answer = wire.read()
                assert_error(answer, 503, code)
                assert answer.header("Retry-After") == "1"
            assert bound <= gauge(gateway, name) <= bound + 10
            assert_clear(app.client().get(line(session).split()[1]), code)
            assert gateway.client().get("/healthz").status_code == 200
            assert gateway.whoami(other.token) == 200
            if queue == "disk":
                apart.ask({"text": "on"})
            modest = crowded.enter_context(Wire(gateway))
            modest.send(request(line(apart), bearer(other.token)))
            wait_until(lambda: gauge(gateway, name) > bound + 1, "the other app has room, and waits")
            # A caller that had waited would be answered when the worker counts as stuck, and the
            # gateway would say so from then on.
            assert is_ready(gateway), "all of these were answered while it was full, and not ill"
        assert modest.read().status == 200
        assert stuck.result().status_code == 200
        for wire in wires:
            if wire not in refused:
                assert wire.read().status == 200
    wait_until(lambda: gauge(gateway, name) == 0, "nothing waits")
    assert_well(gateway, app, [session, apart])
    # It came last of all and was answered among the first, because apps take turns.
    paths = [line(apart).split()[1], line(session).split()[1]]
    served = [logged["path"] for logged in gateway.requests_logged()
              if logged["path"] in paths and logged["status"] == 200]
    assert served.index(paths[0]) < bound / 8


def test_a_full_queue_for_places_refuses_at_once_and_heals(new_faulty, tmp_path):
    gateway, _ = new_faulty(max_agents=1, max_live_sessions=2 * PLACE_QUEUE_MAX,
                            agent_start_timeout_secs=100)
    greedy, other = Talker(gateway, "greedy"), Talker(gateway, "other")
    busy = other.session()
    held = busy.hold(tmp_path, timeout_secs=100).begun()
    data = with_body("POST /sessions", b'{"agent": "fake"}', bearer(greedy.token))
    waiting = "clawdforge_agents_waiting"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with crowd(gateway, PLACE_QUEUE_MAX) as wires:
            ask_all(wires, data)
            wait_until(lambda: gauge(gateway, waiting) == PLACE_QUEUE_MAX, "it is full")
            assert not answered(wires)
            # The only place is held until the test lets it go, so one that waits is not answered.
            refused = greedy.create()
            assert_error(refused, 503, "queue_full")
            assert refused.headers["Retry-After"] == "2"
            assert gateway.client().get("/healthz").status_code == 200 and is_ready(gateway)
            assert_success(other.run({"result": "on"}), "on")
            created = pool.submit(other.create)
            displaced = wait_until(lambda: answered(wires), "the greedy one makes room for others")
            assert len(displaced) == 1
            assert_clear(displaced[0].read(), "queue_full")
            assert gauge(gateway, waiting) == PLACE_QUEUE_MAX
        wait_until(lambda: gauge(gateway, waiting) == 1, "who hangs up does not wait")
        assert_turn(held.end())
        session = Session(other, assert_created(created.result())["session_id"])
    wait_until(lambda: not greedy.ids(state="open"), "nothing is left of those who hung up")
    session.close()
    busy.close()
    assert_well(gateway, other)


def test_sweeps_do_not_pile_up_in_front_of_a_stuck_disk(new_faulty):
    gateway, faults = new_faulty()
    app = Talker(gateway)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, faults.set(scope=UPLOADS, hold=1):
        pool.submit(QUEUES["disk"][1], app)
        wait_until(lambda: unready_code(gateway) == "disk_stalled", "the disk is stuck")
        before = gauge(gateway, "clawdforge_disk_queue_jobs")
        for _ in range(20):
            assert_clear(gateway.admin.post("/admin/sweep"), "disk_busy")
        assert gauge(gateway, "clawdforge_disk_queue_jobs") == before
    assert_well(gateway, app)


# What is held, and shown

def assert_shown(gateway, name, least):
    wait_until(lambda: gauge(gateway, name) >= least, f"{name} is shown")


def test_what_an_agent_does_not_read_is_shown(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    name = "clawdforge_agent_outbox_bytes"
    assert gauge(gateway, name) == 0
    os.kill(session.pid(), signal.SIGSTOP)
    wire = session.send("x" * 4 * MIB)
    assert_shown(gateway, name, 4 * MIB)
    os.kill(session.pid(), signal.SIGCONT)
    assert_turn(wire.read())
    wait_until(lambda: gauge(gateway, name) == 0, "it has been read")


def test_what_is_left_unread_goes_with_its_agent(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    os.kill(session.pid(), signal.SIGSTOP)
    wire = session.send("x" * 4 * MIB)
    assert_shown(gateway, "clawdforge_agent_outbox_bytes", 4 * MIB)
    session.close()
    assert wire.read().json()["code"] == "session_closed"
    wait_until(lambda: gauge(gateway, "clawdforge_agent_outbox_bytes") == 0, "nothing is held")


def test_a_message_that_has_only_begun_is_shown(new_forge, tmp_path):
    gateway = new_forge()
    session = Talker(gateway).session()
    gate = tmp_path / "gate"
    half = base64.b64encode(b"x" * 2 * MIB).decode()
    wire = session.send({"raw_base64": half}, {"wait_for": str(gate)}, {"raw": ""}, {"text": "end"})
    assert_shown(gateway, "clawdforge_agent_line_bytes", 2 * MIB)
    assert gauge(gateway, "clawdforge_agent_lines_skipped_total") == 0
    gate.touch()
    assert assert_turn(wire.read())["text"] == "end"
    assert gauge(gateway, "clawdforge_agent_line_bytes") == 0
    assert gauge(gateway, "clawdforge_agent_lines_skipped_total") == 1


def test_what_is_gathered_for_an_answer_is_shown(new_forge, tmp_path):
    gateway = new_forge()
    app = Talker(gateway)
    session = app.session()
    held = session.hold(tmp_path, {"flood": 300, "piece_bytes": 4_000})
    assert_shown(gateway, "clawdforge_answer_bytes", 1_200_000)
    assert_turn(held.end())
    wait_until(lambda: gauge(gateway, "clawdforge_answer_bytes") == 0, "it has been answered")
    left = session.hold(tmp_path, {"flood": 300, "piece_bytes": 4_000})
    assert_shown(gateway, "clawdforge_answer_bytes", 1_200_000)
    left.hang_up()
    wait_until(lambda: gauge(gateway, "clawdforge_answer_bytes") <= MIB + 100,
               "no caller waits for its events any more")
    left.let_go()
    wait_until(lambda: not session.state()["busy"], "the turn is over")
    assert gauge(gateway, "clawdforge_answer_bytes") == 0


def test_what_a_run_has_printed_is_shown(new_forge, tmp_path):
    gateway = new_forge()
    held = Talker(gateway).hold(tmp_path, {"stdout_bytes": 1_000_000})
    assert_shown(gateway, "clawdforge_run_output_bytes", 1_000_000)
    assert_success(held.end())
    wait_until(lambda: gauge(gateway, "clawdforge_run_output_bytes") == 0, "it has been answered")


def test_events_on_their_way_to_a_ledger_that_is_stuck_are_shown(new_faulty, tmp_path):
    gateway, faults = new_faulty()
    app = Talker(gateway)
    session = app.session()
    gate = tmp_path / "gate"
    wire = session.send({"wait_for": str(gate)}, {"flood": 500, "piece_bytes": 4_000})
    wait_until(lambda: session.state()["turn_count"] == 1, "the turn is accepted")
    with faults.set(scope=LEDGER, hold=1):
        gate.touch()
        wait_until(lambda: faults.held, "the ledger is stuck")
        assert_shown(gateway, "clawdforge_journal_waiting_bytes", 2_000_000)
    assert_turn(wire.read())
    wait_until(lambda: gauge(gateway, "clawdforge_journal_waiting_bytes") == 0, "all is written")
    assert_well(gateway, app, [session])


def test_what_could_not_be_removed_is_shown_and_tried_again(new_forge, tmp_path):
    gateway = new_forge()
    held = Talker(gateway).hold(tmp_path).begun()
    runs, aside = gateway.data_dir / "runs", gateway.data_dir / "aside"
    runs.rename(aside)
    runs.write_text("in the way")
    assert_success(held.end())
    wait_until(lambda: gauge(gateway, "clawdforge_removals_waiting") == 1, "it is remembered")
    runs.unlink()
    aside.rename(runs)
    assert len(run_dirs(gateway)) == 1
    assert gateway.admin.post("/admin/sweep").status_code == 200
    wait_until(lambda: gauge(gateway, "clawdforge_removals_waiting") == 0, "it is removed")
    assert not run_dirs(gateway)


def test_log_lines_that_are_not_read_are_shown_then_dropped_and_hold_up_no_caller(new_gateway):
    reader, writer = os.pipe()
    try:
        gateway = new_gateway(start=False)
        gateway.stderr_target = writer
        gateway.start()
        path = "/" + "x" * 190  # a long line each
        with gateway.client() as client:
            while gauge(gateway, "clawdforge_log_lines_dropped") == 0:
                for _ in range(500):
                    assert client.get(path).status_code == 404
            assert MIB < gauge(gateway, "clawdforge_log_waiting_bytes") <= 2 * MIB
            # The log is read only after this, so an answer shows that callers do not wait for it.
            assert client.get("/healthz").status_code == 200
        with os.fdopen(os.dup(reader), "rb") as lines:
            drain(lines, gateway)
        assert gateway.stop() == 0
    finally:
        os.close(reader)
        os.close(writer)


def drain(lines, gateway):
    """Takes the lines until none waits."""
    os.set_blocking(lines.fileno(), False)

    def is_empty():
        while lines.read(MIB):
            pass
        return gauge(gateway, "clawdforge_log_waiting_bytes") < 1000
    wait_until(is_empty, "what waited is written")


def test_every_family_is_there_from_the_start_and_in_the_documentation(new_gateway):
    text = new_gateway().admin.get("/metrics").text
    shown = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    told = pathlib.Path(REPO / "docs" / "operations.md").read_text()
    documented = set(re.findall(r"`(clawdforge_[a-z_]+)", told))
    assert not shown - documented, "shown and not documented"
    # What has a label appears when there is something to say with it.
    later = {"clawdforge_runs_total", "clawdforge_turns_total", "clawdforge_http_requests_total",
             "clawdforge_http_request_seconds", "clawdforge_asks_total",
             "clawdforge_asks_refused_total", "clawdforge_ask_tokens_total",
             "clawdforge_ask_cost_microusd_total", "clawdforge_spare_agents",
             "clawdforge_spare_agents_total", "clawdforge_agent_memory_bytes",
             "clawdforge_app_memory_bytes",
             "clawdforge_login_"}  # a name for several
    assert not documented - shown - later, "documented and not shown"
