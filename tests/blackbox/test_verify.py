"""`clawdforge verify`: beside a gateway at work, after its end, and on what was bent by hand."""
import json

import pytest

from agents import App, fake_env
from gateway import run_program, wait_until
from ledgers import Load, assert_sound, change, findings, verify
from jobs import HeldJob, ended, run_of, submit
from sessions import Talker
from wire import Wire, bearer, with_body


def test_a_new_ledger_is_sound_while_the_gateway_runs_and_after(gateway):
    assert_sound(gateway)
    assert gateway.stop() == 0
    assert_sound(gateway)
    assert_sound(gateway, gateway.data_dir / "clawdforge.db")


def test_the_ledger_is_sound_at_every_moment_of_a_load(gateway):
    with Load(gateway) as load:
        for turns in (1, 20, 40):
            load.wait_for(turns)
            assert_sound(gateway)
    assert_sound(gateway)
    assert gateway.stop() == 0
    assert_sound(gateway)


def test_a_gateway_that_stops_with_sessions_awake_leaves_a_sound_ledger(gateway):
    session = Talker(gateway).session("demo")
    session.turn("hello")
    assert session.state()["live"]
    assert gateway.stop() == 0
    assert_sound(gateway)


def test_what_a_killed_gateway_left_is_found_and_mended_by_the_next_start(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env())
    app = Talker(gateway)
    sessions = [app.session("demo") for _ in range(2)]
    wires = [session.send("slow 100") for session in sessions]
    wires.append(app.hold(tmp_path).begun().wire)
    wait_until(lambda: all(session.state()["busy"] for session in sessions), "turns are under way")
    wait_until(lambda: all(session.row()["turn_count"] == 1 for session in sessions),
               "the turns have their rows")
    assert_sound(gateway)
    gateway.kill()
    for wire in wires:
        wire.socket.close()
    assert findings(gateway) == ["run-directory", "run-owner", "session-owner", "turn-owner"]
    assert findings(gateway) == ["run-directory", "run-owner", "session-owner", "turn-owner"]
    gateway.start()
    assert_sound(gateway)
    assert sessions[0].turn("hello").status_code == 200
    assert_sound(gateway)


def test_rounds_of_load_and_kill_leave_a_ledger_that_is_sound_after_each_start(gateway):
    for round_number in range(3):
        load = Load(gateway)
        load.__enter__()
        load.wait_for(10 * (round_number + 1))
        gateway.kill()
        load.stop()
        gateway.start()
        assert_sound(gateway)
        known = load.acknowledged()
        for name, token in known["apps"].items():
            assert gateway.whoami(token) == 200, name


def test_each_finding_is_a_line_with_its_name(gateway):
    session = Talker(gateway).session("demo")
    session.turn("hello")
    gateway.stop()
    change(gateway, "UPDATE sessions SET turn_count = 7, output_tokens = output_tokens + 1;"
                    "UPDATE runs SET state = 'x'; DELETE FROM turns")
    done = verify(gateway)
    assert done.returncode == 1
    assert (f"finding session-turns: a session's count of turns is not that of its turns "
            f"({session.id})\n") in done.stdout
    assert findings(gateway) == ["journal-turn", "session-turns", "session-usage"]


def test_findings_as_json(gateway, tmp_path):
    sound = verify(gateway, "--data-dir", gateway.data_dir, "--json")
    assert sound.returncode == 0 and json.loads(sound.stdout)["findings"] == []
    assert json.loads(sound.stdout)["checks"] > 10
    gateway.stop()
    (gateway.data_dir / "uploads" / "stray").write_text("x")
    found = verify(gateway, "--json", "--data-dir", gateway.data_dir)
    assert found.returncode == 1
    finding, = json.loads(found.stdout)["findings"]
    assert finding["count"] == 1 and "stray" in finding["examples"][0] and finding["sentence"]
    done = run_program("backup", tmp_path / "copy.db", "--json", "--data-dir", gateway.data_dir,
                       home=gateway.root)
    assert json.loads(done.stdout) == {"file": str(tmp_path / "copy.db"), "apps": 0, "sessions": 0,
                                       "runs": 0, "bytes": (tmp_path / "copy.db").stat().st_size}


def test_files_and_rows_that_have_lost_each_other_are_found(gateway):
    app = Talker(gateway)
    app.upload("a.txt", b"abc")
    app.upload("b.txt", b"abcd")
    session = app.session("demo")
    session.turn("hello")
    gateway.stop()
    assert_sound(gateway)
    uploads = sorted((gateway.data_dir / "uploads").iterdir())
    uploads[0].unlink()
    uploads[1].write_bytes(b"longer")
    (gateway.data_dir / "uploads" / ("0" * 64)).write_bytes(b"x")
    (gateway.data_dir / "sessions" / "unknown").mkdir()
    (gateway.data_dir / "runs" / "nothing").mkdir()
    assert findings(gateway) == ["file-row", "run-directory", "session-directory", "upload-file",
                                 "upload-size"]
    assert_sound(gateway, gateway.data_dir / "clawdforge.db")
    uploads[1].unlink()
    gateway.start()
    assert_sound(gateway)


def test_answers_of_jobs_that_have_lost_their_files_are_found(new_gateway):
    gateway = new_gateway(env=fake_env(max_body_bytes=32 << 20, memory_budget_bytes=512 << 20))
    app = App(gateway)
    job = submit(app, run_of("x" * (17 << 20)))
    assert ended(app, job)["state"] == "succeeded"
    assert_sound(gateway)
    gateway.stop()
    assert_sound(gateway)
    file, = (gateway.data_dir / "jobs").iterdir()
    (gateway.data_dir / "jobs" / "stray").write_text("x")
    assert findings(gateway) == ["answer-row"]
    file.write_text("less")
    assert findings(gateway) == ["answer-file", "answer-row"]
    file.unlink()
    assert findings(gateway) == ["answer-file", "answer-row"]
    gateway.start()
    assert findings(gateway) == ["answer-file"], "a start removes what no row knows"


def test_a_killed_gateway_leaves_jobs_and_keys_without_an_owner_until_its_next_start(
        new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env())
    app = App(gateway)
    HeldJob(app, tmp_path).begun()
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    body = json.dumps(App.body({"touch": str(mark), "wait_for": str(gate)}, {})).encode()
    wire = Wire(gateway)
    wire.send(with_body("POST /run", body, bearer(app.token), "Idempotency-Key: one"))
    wait_until(mark.exists, "the run begins")
    assert_sound(gateway)
    gateway.kill()
    wire.socket.close()
    assert findings(gateway) == ["job-owner", "key-owner", "run-directory", "run-owner"]
    gateway.start()
    assert_sound(gateway)


def test_a_damaged_file_is_a_finding(gateway):
    session = Talker(gateway).session("demo")
    for _ in range(20):
        session.turn("x" * 100_000)
    gateway.stop()
    ledger = gateway.data_dir / "clawdforge.db"
    content = bytearray(ledger.read_bytes())
    # The tables themselves are at the beginning.
    for place in range(len(content) * 2 // 3 // 4096 * 4096, len(content), 4096):
        content[place:place + 16] = b"\xff" * 16
    ledger.write_bytes(content)
    before = ledger.read_bytes()
    done = verify(gateway)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("finding ledger-damaged: ")
    assert ledger.read_bytes() == before
    for name in ("clawdforge.db-wal", "clawdforge.db-shm"):
        (gateway.data_dir / name).unlink(missing_ok=True)


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_what_is_no_ledger_cannot_be_checked(tmp_path, content):
    file = tmp_path / "some.db"
    file.write_bytes(content)
    done = run_program("verify", file, home=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("clawdforge: ") and done.stderr.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["some.db"]
    assert file.read_bytes() == content


def test_a_ledger_that_is_not_there_is_not_made(tmp_path):
    done = run_program("verify", "--data-dir", tmp_path / "data", home=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert "No such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments, sentence", [
    (["a", "b"], "one FILE"), (["a", "--data-dir", "x"], "takes a FILE, or the flags"),
    (["--colour", "red"], "--colour"), (["--ledger", "postgresql://h/d"], "PostgreSQL"),
    ([""], "one FILE")])
def test_wrong_usage_is_exit_2(tmp_path, arguments, sentence):
    done = run_program("verify", *arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert sentence in done.stderr
    assert run_program("verify", "--help", home=tmp_path).stdout.startswith("clawdforge verify")


def test_the_ledger_may_lie_elsewhere(new_gateway, tmp_path):
    ledger = tmp_path / "elsewhere.db"
    gateway = new_gateway(flags=["--ledger", f"sqlite:{ledger}"])
    gateway.mint("app")
    flags = ("--data-dir", gateway.data_dir, "--ledger", f"sqlite:{ledger}")
    assert_sound(gateway, *flags)
    config = tmp_path / "config.toml"
    config.write_text(f'ledger = "sqlite:{ledger}"\ndata_dir = "{gateway.data_dir}"\n')
    assert_sound(gateway, "--config", config)
