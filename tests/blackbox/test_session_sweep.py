"""The sweeper and sessions: the ledger's rows decide, not what memory believes."""
import contextlib
import json
import sqlite3
import time

import pytest

from answers import assert_error
from gateway import wait_until
from sessions import (BOTH_KINDS, Talker, assert_turn, audit, change, journal, new_forge, only_acp,
                      query, session_dirs, session_rows, sweep)

__all__ = ["new_forge"]  # fixtures

KINDS = BOTH_KINDS

HOUR, DAY = 3600, 86_400


@pytest.fixture
def gateway(new_forge):
    """It sweeps when it is told to, and not by itself."""
    return new_forge(sweep_interval_secs=DAY)


@pytest.fixture
def talker(gateway):
    return Talker(gateway)


def back_date(session, column, seconds):
    changed = change(session.app.gateway,
                     f"UPDATE sessions SET {column} = ? WHERE session_id = ?",
                     int(time.time()) - seconds, session.id)
    assert changed == 1


def test_with_nothing_to_do_it_says_so(gateway, talker):
    session = talker.session()
    assert sweep(gateway) == (0, 0)
    assert session.told("hello") == "echo: hello"


def test_an_idle_session_is_closed(gateway, talker):
    idle, fresh = talker.session(), talker.session()
    back_date(idle, "created_at", HOUR + 10)
    assert sweep(gateway) == (1, 0)
    state = idle.state()
    assert abs(state["closed_at"] - time.time()) < 60
    assert state["close_reason"] and state["live"] is False
    assert not idle.processes(), "its agent is gone"
    assert audit(gateway, idle) == ["create", "sweep_close"]
    assert_error(idle.turn("hello"), 410, "session_closed")
    assert idle.close() == {"ok": True, "already_closed": True}
    assert fresh.told("hello") == "echo: hello"
    assert sweep(gateway) == (0, 0)


def test_idleness_counts_from_the_last_turn(gateway, talker):
    old, used = talker.session(), talker.session()
    for session in (old, used):
        session.ask("hello")
        back_date(session, "created_at", 10 * HOUR)
    back_date(old, "last_turn_at", HOUR + 10)
    assert sweep(gateway) == (1, 0)
    assert old.state()["closed_at"] and not used.state()["closed_at"]
    back_date(used, "last_turn_at", HOUR - 100)
    assert sweep(gateway) == (0, 0)


def test_a_busy_session_is_not_idle(gateway, talker, tmp_path):
    session = talker.session()
    held = session.hold(tmp_path).begun()
    back_date(session, "created_at", 10 * HOUR)
    back_date(session, "last_turn_at", 10 * HOUR)
    assert sweep(gateway) == (0, 0)
    assert_turn(held.end())
    assert sweep(gateway) == (0, 0), "its end was just now"
    assert session.state()["closed_at"] is None


def test_the_time_is_configurable(new_forge):
    gateway = new_forge(session_ttl_secs=100, session_hard_ttl_secs=50, sweep_interval_secs=DAY)
    session = Talker(gateway).session()
    back_date(session, "created_at", 90)
    assert sweep(gateway) == (0, 0)
    back_date(session, "created_at", 110)
    assert sweep(gateway) == (1, 0)
    back_date(session, "closed_at", 60)
    assert sweep(gateway) == (0, 1)


def test_it_sweeps_by_itself(new_forge):
    gateway = new_forge(sweep_interval_secs=1, session_ttl_secs=100)
    session = Talker(gateway).session()
    back_date(session, "created_at", 200)
    wait_until(lambda: session.row()["closed_at"], "the sweeper comes by")
    wait_until(lambda: not session.processes(), "its agent is gone")
    back_date(session, "closed_at", 2 * DAY)
    wait_until(lambda: session.row() is None, "it comes by again")


def test_a_session_closed_long_ago_is_deleted_with_its_directory(gateway, talker):
    session, other = talker.session(), talker.session()
    session.ask({"write": {"path": "a/b/c.txt", "content": "x"}})
    other.ask("hello")
    session.close()
    assert (session.work() / "a/b/c.txt").exists(), "files outlive the close"
    assert sweep(gateway) == (0, 0)
    back_date(session, "closed_at", DAY + 10)
    assert sweep(gateway) == (0, 1)
    assert session.row() is None
    wait_until(lambda: session_dirs(gateway) == [other.id], "its directory is gone")
    assert_error(talker.get(session.path), 404, "session_not_found")
    assert_error(talker.client().delete(session.path), 404, "session_not_found")
    assert_error(session.turn("hello"), 404, "session_not_found")
    assert journal(gateway, session) == []
    assert query(gateway, "SELECT * FROM turns WHERE session_id = ?", session.id) == []
    assert audit(gateway, session) == ["create", "turn", "close", "hard_delete"], "the audit stays"
    assert talker.ids(include_closed=True) == [other.id]


@only_acp
def test_many_go_in_one_sweep(gateway, talker):
    now = int(time.time())
    rows = [(f"old-{number}", 1, 2 if number % 2 else None) for number in range(1_200)]
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db")) as ledger:
        ledger.executemany("INSERT INTO sessions (session_id, app_name, agent, created_at, "
                           "closed_at) VALUES (?, 'app', 'fake', ?, ?)", rows)
        ledger.commit()
    assert sweep(gateway) == (600, 600)
    assert all(row["closed_at"] >= now for row in session_rows(gateway))


def test_a_session_removed_by_sql_is_gone_at_the_next_request(gateway, talker):
    session = talker.session()
    session.ask("hello")
    assert change(gateway, "DELETE FROM sessions WHERE session_id = ?", session.id) == 1
    assert_error(talker.get(session.path), 404, "session_not_found")
    assert_error(session.turn("hello"), 404, "session_not_found")
    assert session.processes(), "its agent lives until the sweep"
    sweep(gateway)
    assert not session.processes()
    assert talker.ids(include_closed=1) == []


def test_a_session_closed_by_sql_is_closed_at_the_next_request(gateway, talker):
    session = talker.session()
    back_date(session, "closed_at", 5)
    assert_error(session.turn("hello"), 410, "session_closed")
    assert session.close() == {"ok": True, "already_closed": True}
    assert talker.ids() == []
    sweep(gateway)
    assert not session.processes()


@pytest.mark.parametrize("statement", ["UPDATE sessions SET closed_at = 5 WHERE session_id = ?",
                                       "DELETE FROM sessions WHERE session_id = ?"])
def test_a_row_changed_by_sql_ends_its_running_turn_within_one_sweep(
        gateway, talker, tmp_path, statement):
    session, other = talker.session(), talker.session()
    held = session.hold(tmp_path, {"text": "a"}).begun()
    assert change(gateway, statement, session.id) == 1
    sweep(gateway)
    answer = held.answer()
    assert answer.status in (404, 410), answer.body
    assert not session.processes()
    assert other.told("hello") == "echo: hello"


def test_a_turn_on_a_row_that_is_removed_under_it_does_not_bring_it_back(
        gateway, talker, tmp_path):
    session = talker.session()
    held = session.hold(tmp_path, {"text": "a"}).begun()
    change(gateway, "DELETE FROM sessions WHERE session_id = ?", session.id)
    held.let_go()
    held.answer()
    assert session.row() is None
    sweep(gateway)
    assert session.row() is None and not session.processes()


def test_a_session_opened_again_by_sql_talks_again(gateway, talker, agent_kind):
    session = talker.session()
    session.ask("before")
    session.close()
    change(gateway, "UPDATE sessions SET closed_at = NULL, close_reason = NULL "
                    "WHERE session_id = ?", session.id)
    has_kept = agent_kind == "acp"  # closing has removed what acpx knew of it
    body = assert_turn(session.turn({"recall": True}), resumed=has_kept)
    assert ("before" in json.loads(body["text"])) == has_kept


def test_the_sessions_of_a_revoked_app_are_closed(gateway, talker, tmp_path):
    other = Talker(gateway, "other").session()
    session, busy = talker.session(), talker.session()
    held = busy.hold(tmp_path).begun()
    assert gateway.admin.delete("/admin/tokens/app").status_code == 200
    wait_until(lambda: all(row["closed_at"] for row in session_rows(gateway)
                           if row["app_name"] == "app"), "their rows are closed")
    assert held.answer().status in (401, 410)
    wait_until(lambda: not session.processes() and not busy.processes(), "their agents are gone")
    assert other.told("hello") == "echo: hello"


@only_acp
def test_old_events_are_removed(new_forge):
    gateway = new_forge(journal_max_age_secs=100, sweep_interval_secs=DAY)
    session = Talker(gateway).session()
    session.ask("old")
    change(gateway, "UPDATE journal SET at = ?", int(time.time()) - 200)
    session.ask("new")
    before = journal(gateway, session)
    sweep(gateway)
    after = journal(gateway, session)
    assert after and after[0]["turn_index"] == 2
    assert after == [event for event in before if event["turn_index"] == 2]
    assert session.ask("newer")["turn_index"] == 3
    assert journal(gateway, session)[-1]["id"] == before[-1]["id"] + 4, "no number is given again"


@only_acp
def test_the_oldest_events_go_when_a_session_has_too_many(new_forge):
    gateway = new_forge(journal_max_bytes_per_session=1024 * 1024, sweep_interval_secs=DAY)
    session, other = Talker(gateway).session(), Talker(gateway, "other").session()
    other.ask("small")
    for _ in range(3):
        session.ask({"big_line": 500_000})
    sweep(gateway)
    kept = query(gateway, "SELECT sum(bytes) AS size FROM journal WHERE session_id = ?", session.id)
    assert 0 < kept[0]["size"] <= 1024 * 1024
    events = journal(gateway, session)
    assert events[-1]["event"] == "done" and events[-1]["turn_index"] == 3
    assert len(journal(gateway, other)) == 4
    sweep(gateway)
    assert journal(gateway, session) == events, "what fits stays"


def test_a_sweep_while_turns_start_closes_none_of_them(gateway, talker, agent_kind):
    """Each round: a session that was idle is asked and swept at once. Either answer is good, but
    not both."""
    for _ in range({"acp": 20, "acpx": 5}[agent_kind]):
        session = talker.session()
        back_date(session, "created_at", 2 * HOUR)
        wire = session.send("hello")
        closed, _ = sweep(gateway)
        answer = wire.read()
        if closed:
            assert answer.status == 410, answer.body
            assert session.row()["closed_at"] is not None
        else:
            assert_turn(answer)
            assert session.row()["closed_at"] is None
        session.close()


def test_a_directory_without_a_row_goes_at_the_next_start(gateway, talker):
    session = talker.session()
    session.ask({"write": {"path": "kept.txt", "content": "x"}})
    gateway.stop()
    left = gateway.data_dir / "sessions" / "00000000-0000-7000-8000-000000000000" / "work"
    left.mkdir(parents=True)
    (left / "link").symlink_to("/etc")
    gateway.start()
    wait_until(lambda: session_dirs(gateway) == [session.id], "only what has a row is left")
    assert (session.work() / "kept.txt").exists()


@only_acp
def test_a_locked_ledger_is_503_and_nothing_is_lost(gateway, talker):
    session = talker.session()
    back_date(session, "created_at", 2 * HOUR)
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db",
                                            isolation_level=None)) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        assert_error(gateway.admin.post("/admin/sweep"), 503, "ledger_unavailable")
        assert_error(talker.client().delete(session.path), 503, "ledger_unavailable")
        assert_error(talker.create(), 503, "ledger_unavailable")
        ledger.execute("ROLLBACK")
    assert session.state()["closed_at"] is None
    assert session.processes()
    assert sweep(gateway) == (1, 0)
    assert len(session_rows(gateway)) == 1
