"""Taking an app's token away ends all that the app has under way, and nothing of other apps."""
import time

import pytest

from agents import assert_failure, assert_nothing_left, assert_success, rows, waiting
from answers import assert_error
from gateway import wait_until
from sessions import (Talker, assert_no_process_left, assert_turn_failure, change, new_forge, query,
                      session_rows, sweep)
from wire import Wire, bearer, request

__all__ = ["new_forge"]  # fixtures

MIB = 1024 * 1024


def by_api(gateway, app):
    with gateway.admin as admin:
        admin.delete(f"/admin/tokens/{app.name}").raise_for_status()


def by_sql(gateway, app):
    assert change(gateway, "DELETE FROM tokens WHERE name = ?", app.name) == 1


WAYS = pytest.mark.parametrize("revoke", [by_api, by_sql])


@WAYS
def test_its_runs_end_those_that_wait_and_those_that_run(new_forge, tmp_path, revoke):
    gateway = new_forge(max_runs=1)
    leaver, stayer = Talker(gateway, "leaver"), Talker(gateway, "stayer")
    runs = leaver.hold(tmp_path).begun()
    waits = leaver.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == 1, "the second waits")
    patient = stayer.hold(tmp_path)
    wait_until(lambda: waiting(gateway) == 2, "the other app waits, too")
    revoke(gateway, leaver)
    assert_failure(runs.answer(), 401, "token_revoked")
    assert_error(waits.answer(), 401, "token_revoked")
    assert_success(patient.begun().end())
    assert not waits.has_begun()
    patient.hang_up()
    assert_nothing_left(gateway)
    assert [(row["app_name"], row["state"], row["outcome"]) for row in rows(gateway)] == [
        ("leaver", "cancelled", "token_revoked"), ("stayer", "succeeded", "ok")]


@WAYS
def test_its_sessions_and_their_turns_end(new_forge, tmp_path, revoke):
    gateway = new_forge()
    leaver, stayer = Talker(gateway, "leaver"), Talker(gateway, "stayer")
    session, kept = leaver.session(), stayer.session()
    turn = session.hold(tmp_path).begun()
    revoke(gateway, leaver)
    assert_turn_failure(turn.answer(), 410, "session_closed")
    wait_until(lambda: not session.processes(), "its agent ends")
    assert kept.told("hello") == "echo: hello"
    assert [(row["session_id"], row["close_reason"]) for row in session_rows(gateway)
            if row["closed_at"] is not None] == [(session.id, "token_revoked")]
    kept.close()
    assert_no_process_left(gateway)


def uploads_of(gateway, app):
    return query(gateway, "SELECT * FROM uploads WHERE app_name = ?", app)


@WAYS
def test_its_uploads_end(new_forge, revoke):
    gateway = new_forge()
    leaver, stayer = Talker(gateway, "leaver"), Talker(gateway, "stayer")
    stored, kept = leaver.upload("a.txt", b"abc"), stayer.upload("b.txt", b"def")
    with Wire(gateway) as wire:
        wire.send(request("POST /files", bearer(leaver.token),
                          "Content-Type: multipart/form-data; boundary=x", f"Content-Length: {60 * MIB}"))
        wire.send(b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + b"y" * MIB)
        revoke(gateway, leaver)
        wait_until(lambda: gateway.whoami(leaver.token) == 401, "the token is gone")
        wire.send(b"y" * MIB)
        answer = wire.read()
        assert_error(answer, 401, "token_revoked")
    wait_until(lambda: all(row["expires_at"] <= time.time() for row in uploads_of(gateway, "leaver")),
               "its rows expire")
    sweep(gateway)
    assert not uploads_of(gateway, "leaver") and len(uploads_of(gateway, "stayer")) == 1
    assert len(list((gateway.data_dir / "uploads").iterdir())) == 1
    assert stayer.run({"report": True}, files=[kept]).status_code == 200
    successor = Talker(gateway, "leaver")
    assert_error(successor.run({}, files=[stored]), 404, "file_not_found")


def test_an_unreadable_row_ends_nothing(new_forge, tmp_path):
    """A mistyped row is mended by its owner: what the app has is not lost by the mistake."""
    gateway = new_forge()
    app = Talker(gateway, "app")
    session, run = app.session(), app.hold(tmp_path).begun()
    change(gateway, "UPDATE tokens SET ip_cidrs = 'nonsense' WHERE name = 'app'")
    wait_until(lambda: gateway.whoami(app.token) == 401, "the row is not understood")
    change(gateway, "UPDATE tokens SET ip_cidrs = NULL WHERE name = 'app'")
    wait_until(lambda: gateway.whoami(app.token) == 200, "the row is mended")
    assert_success(run.end())
    assert session.told("hello") == "echo: hello"
    assert [row["closed_at"] for row in session_rows(gateway)] == [None]
    run.hang_up()
