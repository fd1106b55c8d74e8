"""`clawdforge backup`: one state of the ledger, whatever happens to it meanwhile."""
import re
import resource
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from gateway import PROGRAM, SECONDS_MAX, clean_environment, run_program, wait_until
from ledgers import Load, assert_sound, backup, change
from sessions import Talker

SAID = re.compile(r"(.+): (\d+) bytes, (\d+) apps, (\d+) sessions, (\d+) runs\n")


def said_of(done, file):
    """The numbers of the one line that a backup prints."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    name, *numbers = SAID.fullmatch(done.stdout).groups()
    assert name == str(file)
    size, *rows = map(int, numbers)
    assert size == file.stat().st_size
    return rows


def rows_of(file, statement):
    with closing(sqlite3.connect(file)) as ledger:
        return set(ledger.execute(statement).fetchall())


def restored(new_gateway, file):
    """A gateway of its own on a copy, as the documentation says to put it in place."""
    gateway = new_gateway(start=False)
    gateway.data_dir.mkdir(parents=True, mode=0o700)
    (gateway.data_dir / "clawdforge.db").write_bytes(file.read_bytes())
    return gateway.start()


def test_a_backup_under_load_is_one_state_that_holds_all_that_was_answered(new_gateway, tmp_path):
    gateway = new_gateway()
    copies = []
    with Load(gateway, workers=4) as load:
        for number, turns in enumerate((5, 20, 40)):
            load.wait_for(turns)
            known = load.acknowledged()
            file = tmp_path / f"copy-{number}.db"
            said_of(backup(gateway, file), file)
            copies.append((file, known))
    assert_sound(gateway)
    for file, known in copies:
        assert_sound(gateway, file)
        assert file.stat().st_mode & 0o777 == 0o600
        apps = {name for name, in rows_of(file, "SELECT name FROM tokens")}
        assert set(known["apps"]) <= apps
        sessions = rows_of(file, "SELECT session_id, app_name FROM sessions")
        assert set(known["sessions"].items()) <= sessions
        assert known["turns"] <= rows_of(
            file, "SELECT session_id, turn_index FROM turns WHERE ended_at IS NOT NULL")
        assert len(rows_of(file, "SELECT run_id FROM runs")) >= known["runs"]
        assert len(rows_of(file, "SELECT file_token_sha256 FROM uploads")) >= len(known["uploads"])
    assert sorted(path.name for path in tmp_path.glob("copy*")) == [f"copy-{n}.db" for n in range(3)]
    file, known = copies[-1]
    other = restored(new_gateway, file)
    assert_sound(other)
    for name, token in known["apps"].items():
        assert other.whoami(token) == 200, name
    for session, app in known["sessions"].items():
        with other.client(known["apps"][app]) as client:
            assert client.get(f"/sessions/{session}").status_code == 200


def test_a_conversation_goes_on_in_the_gateway_that_a_backup_was_restored_into(new_gateway,
                                                                              tmp_path):
    gateway = new_gateway()
    app = Talker(gateway)
    session = app.session("demo")
    session.turn("hello")
    file = tmp_path / "copy.db"
    assert said_of(backup(gateway, file), file) == [1, 1, 0]
    session.turn("this is not in it")
    assert gateway.stop() == 0
    for name in ("clawdforge.db-wal", "clawdforge.db-shm"):
        (gateway.data_dir / name).unlink(missing_ok=True)
    (gateway.data_dir / "clawdforge.db").write_bytes(file.read_bytes())
    gateway.start()
    assert session.state()["turn_count"] == 1
    assert session.turn("again").json()["turn_index"] == 2
    assert_sound(gateway)


def test_a_stopped_gateways_ledger_is_copied_too_and_what_a_killed_one_left_in_its_log(
        gateway, tmp_path):
    gateway.mint("one")
    gateway.kill()
    assert (gateway.data_dir / "clawdforge.db-wal").stat().st_size > 0
    first = tmp_path / "first.db"
    assert said_of(backup(gateway, first), first) == [1, 0, 0]
    gateway.start()
    gateway.mint("two")
    assert gateway.stop() == 0
    second = tmp_path / "second.db"
    assert said_of(backup(gateway, second), second) == [2, 0, 0]


def test_an_existing_file_is_refused_and_left_as_it_is(gateway, tmp_path):
    file = tmp_path / "copy.db"
    file.write_text("mine")
    done = backup(gateway, file)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"clawdforge: {file} is there already; choose another name.\n"
    assert file.read_text() == "mine"
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "nowhere")
    assert backup(gateway, link).returncode == 4
    assert {path.name for path in tmp_path.iterdir()} >= {"copy.db", "link.db"}
    assert not list(tmp_path.glob("*unfinished*"))


@pytest.mark.parametrize("arguments, code, sentence", [
    ([], 2, "needs a FILE"), (["a", "b"], 2, "one FILE"),
    (["a", "--ledger", "postgresql://h/d"], 2, "pg_dump"), (["a", "--colour", "red"], 2, "--colour"),
    (["a", "--data-dir", "none"], 5, "No such file")])
def test_what_cannot_be_done_is_said_in_one_sentence(tmp_path, arguments, code, sentence):
    done = run_program("backup", *arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert sentence in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert run_program("backup", "--help", home=tmp_path).stdout.startswith("clawdforge backup")


def test_a_directory_that_is_not_there_is_said(gateway, tmp_path):
    done = backup(gateway, tmp_path / "none" / "copy.db")
    assert (done.returncode, done.stdout) == (5, "")
    assert "No such file or directory" in done.stderr
    assert not (tmp_path / "none").exists()


def padded(gateway, mebibytes):
    """Makes the ledger large, so that its copy takes a while."""
    change(gateway, "CREATE TABLE pad (x);" +
           "INSERT INTO pad VALUES (randomblob(1048576));" * mebibytes)


def started(gateway, file, limit=None):
    def confine():
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.Popen([str(PROGRAM), "backup", str(file), "--data-dir", str(gateway.data_dir)],
                            env=clean_environment(gateway.root), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=confine)


def test_a_full_disk_leaves_nothing_behind(gateway, tmp_path):
    padded(gateway, 4)
    process = started(gateway, tmp_path / "copy.db", limit=2 * 1024 * 1024)
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, out) == (5, "")
    assert err == "clawdforge: The copy cannot be written: the disk is full.\n"
    assert not list(tmp_path.glob("copy*"))
    gateway.mint("app")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_the_middle_leaves_nothing_behind(gateway, tmp_path, number):
    padded(gateway, 150)
    process = started(gateway, tmp_path / "copy.db")
    wait_until(lambda: any(path.stat().st_size > 0 for path in tmp_path.glob("copy*")) or
               process.poll() is not None, "the copy has begun")
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, out) == (128 + number, ""), err
    assert err == "clawdforge: The copy was stopped before it was whole.\n"
    assert not list(tmp_path.glob("copy*"))


def test_a_writer_does_not_wait_for_a_backup(gateway, tmp_path):
    padded(gateway, 150)
    process = started(gateway, tmp_path / "copy.db")
    minted = 0
    with gateway.admin as admin:
        while process.poll() is None:
            answer = admin.post("/admin/tokens", json={"name": f"app-{minted}"}, timeout=4)
            assert answer.status_code == 200, answer.text
            minted += 1
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, err
    assert minted > 3
    assert_sound(gateway, tmp_path / "copy.db")
