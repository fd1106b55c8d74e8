"""What an earlier life has left, however much it is, does not delay a start: it is moved into the
trash before the gateway is ready, and removed from there while it serves."""
import os

from agents import assert_nothing_left
from gateway import wait_until
from sessions import Talker, session_options

EMPTIED = "the trash was emptied"
FILES = 20_000  # ten steps of a removal


def leave(directory):
    """As an agent may leave its directory: wide, deep, and closed."""
    wide = directory / "work" / "wide"
    wide.mkdir(parents=True)
    (wide / "0").touch()
    for number in range(1, FILES):
        os.link(wide / "0", wide / str(number))
    deep = directory / "tmp" / "/".join(["deep"] * 200)
    deep.mkdir(parents=True)
    (directory / "work" / "closed").mkdir(mode=0)
    directory.chmod(0)


def trash(gateway):
    return os.listdir(gateway.data_dir / "trash")


def position(gateway, message):
    return [line["message"] for line in gateway.log_lines()].index(message)


def assert_emptied(gateway):
    wait_until(lambda: not trash(gateway), "the trash is empty")


def test_leftovers_are_removed_after_the_start(new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path), start=False)
    leave(gateway.data_dir / "runs" / "left-by-a-run")
    leave(gateway.data_dir / "sessions" / "left-by-a-session")
    (gateway.data_dir / "sessions" / "a-file").touch()
    gateway.start()
    assert not os.listdir(gateway.data_dir / "runs")
    assert not os.listdir(gateway.data_dir / "sessions")
    assert Talker(gateway).session().told("hello") == "echo: hello", "it serves meanwhile"
    assert_emptied(gateway)
    wait_until(lambda: EMPTIED in gateway.stderr(), "it is told")
    assert position(gateway, "ready") < position(gateway, EMPTIED)
    line, = [line for line in gateway.log_lines() if line["message"] == EMPTIED]
    assert line["entries"] == 3
    line, = [line for line in gateway.log_lines() if line["message"] == "recovered"]
    assert line["directories"] == 3


def test_a_gateway_goes_on_with_the_trash_of_one_that_was_killed(new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path), start=False)
    leave(gateway.data_dir / "runs" / "left-by-a-run")
    gateway.start()
    gateway.kill()
    (gateway.data_dir / "trash" / "of-an-earlier-life").mkdir()
    gateway.start()
    assert_emptied(gateway)
    wait_until(lambda: EMPTIED in gateway.stderr(), "it is told")


def test_a_session_that_is_there_keeps_its_directory(new_gateway, tmp_path):
    gateway = new_gateway(**session_options(tmp_path))
    session = Talker(gateway).session()
    session.ask({"write": {"path": "kept.txt", "content": "kept"}})
    gateway.kill()
    leave(gateway.data_dir / "sessions" / "left-by-a-session")
    gateway.start()
    assert (session.work() / "kept.txt").read_text() == "kept"
    assert session.told("hello") == "echo: hello"
    assert_emptied(gateway)
    assert_nothing_left_but(session)


def assert_nothing_left_but(session):
    gateway = session.app.gateway
    assert os.listdir(gateway.data_dir / "sessions") == [session.id]
    assert session.app.client().delete(session.path).status_code == 200
    assert_nothing_left(gateway)
