"""Who is there: processes by their parents, directories by their rows."""
import contextlib
import os
import select
import signal
import sqlite3

from agents import children_of, processes_below

END_SECONDS_MAX = 3
CAP = 6  # asks of apps whose names end in -capped

def parent_of(pid):
    """Of a process that has ended there is none, reaped or not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[1])


def argv_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_below(pid, ancestor):
    while pid is not None and pid > 1:
        if pid == ancestor:
            return True
        pid = parent_of(pid)
    return False


def ours(gateway):
    """All processes of this gateway's root: by their directory, or by what they were called with,
    which names it."""
    found = processes_below(gateway.root)
    mark = str(gateway.root).encode()
    found |= {int(entry) for entry in os.listdir("/proc")
              if entry.isdigit() and mark in argv_of(entry)}
    found.discard(os.getpid())
    return {pid for pid in found if parent_of(pid) is not None}


def unowned(gateway):
    """Those that are not the running gateway and do not descend from it."""
    own = gateway.process.pid if gateway.process else None
    return {pid for pid in ours(gateway) if not is_below(pid, own)}


def is_launcher(pid):
    return argv_of(pid).startswith(b"cf-launcher\0")


def orphans(gateway):
    """Children of the gateway that are none of its launchers: those of launchers that were killed. A
    launcher that is only being started still looks like the gateway. One that ends while we look
    counts: what was below it may be a child since then."""
    own = gateway.process.pid
    return {pid for pid in children_of(own) if not is_launcher(pid)
            and (argv_of(pid) != argv_of(own) or not argv_of(pid))}


def kill_one_agent(gateway, choice):
    """SIGKILL to an agent, or a child of one; whether there was one."""
    found = ours(gateway) - {gateway.process.pid}
    return kill_one(gateway, choice, [pid for pid in found if not is_launcher(pid)])


def kill_one_launcher(gateway, choice):
    return kill_one(gateway, choice, list(filter(is_launcher, children_of(gateway.process.pid))))


def kill_one(gateway, choice, found):
    """The process is held by a descriptor while it is looked at, so that it cannot be another by
    then. Waits until it has ended."""
    own = gateway.process.pid
    if not found:
        return False
    try:
        handle = os.pidfd_open(choice.choice(sorted(found)))
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as file:
            pid = int(next(line for line in file if line.startswith("Pid:")).split()[1])
        if pid <= 1 or not is_below(pid, own):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [], END_SECONDS_MAX)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


@contextlib.contextmanager
def ledger_of(gateway):
    with contextlib.closing(
            sqlite3.connect(f"file:{gateway.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        yield ledger


def check_rows(gateway, findings):
    """No row of another life runs, and none is half."""
    with ledger_of(gateway) as ledger:
        for what, statement in {
                "turns that run": "SELECT session_id, turn_index FROM turns "
                                  "WHERE ended_at IS NULL OR state = 'running'",
                "runs that run": "SELECT run_id FROM runs WHERE ended_at IS NULL "
                                 "OR state = 'running'",
                "sessions that were never made": "SELECT session_id FROM sessions "
                                                 "WHERE agent_session_id IS NULL",
                "open sessions of no app": "SELECT session_id FROM sessions WHERE closed_at IS NULL "
                                           "AND app_name NOT IN (SELECT name FROM tokens)",
                "turns beside their count": "SELECT session_id, turn_count FROM sessions s WHERE "
                                            "turn_count <> (SELECT count(*) FROM turns t "
                                            "WHERE t.session_id = s.session_id)",
                "turns without a line in the audit, or with two":
                    "SELECT t.session_id, t.turn_index, count(e.event_id) FROM turns t "
                    "LEFT JOIN session_events e ON e.session_id = t.session_id "
                    "AND e.event IN ('turn', 'interrupted') "
                    "AND json_extract(e.meta, '$.turn_index') = t.turn_index "
                    "GROUP BY t.session_id, t.turn_index HAVING count(e.event_id) <> 1",
                "sessions without a line about their making, or with two":
                    "SELECT s.session_id, count(e.event_id) FROM sessions s "
                    "LEFT JOIN session_events e ON e.session_id = s.session_id "
                    "AND e.event = 'create' GROUP BY s.session_id HAVING count(e.event_id) <> 1",
                "reservations of asks that are over": "SELECT ask_id, app_name FROM reservations",
                "usage that is not that of the asks":
                    "SELECT app_name, SUM(asks), SUM(tokens), SUM(nano), SUM(ms) FROM ("
                    "SELECT app_name, asks, input_tokens + output_tokens AS tokens, nano_usd AS nano, "
                    "agent_ms AS ms FROM usage_minutes UNION ALL "
                    "SELECT app_name, -1, -COALESCE(input_tokens + output_tokens, 0), "
                    "-CAST(ROUND(COALESCE(cost_usd, 0) * 1e9) AS INT), -agent_ms FROM runs "
                    "WHERE agent_ms IS NOT NULL UNION ALL "
                    "SELECT s.app_name, -1, -COALESCE(t.input_tokens + t.output_tokens, 0), "
                    "-CAST(ROUND(COALESCE(t.cost_usd, 0) * 1e9) AS INT), -t.agent_ms FROM turns t "
                    "JOIN sessions s ON s.session_id = t.session_id WHERE t.agent_ms IS NOT NULL) "
                    "GROUP BY app_name HAVING SUM(asks) <> 0 OR SUM(tokens) <> 0 OR SUM(nano) <> 0 "
                    "OR SUM(ms) <> 0",
                "windows that do not agree with the usage":
                    "SELECT scope, w.asks FROM budget_windows w WHERE ends_at > 253000000000 "
                    "AND w.asks <> (SELECT COALESCE(SUM(u.asks), 0) FROM usage_minutes u "
                    "WHERE u.app_name = w.scope)",
                "apps over their budget":
                    "SELECT app_name, SUM(asks) FROM usage_minutes WHERE app_name LIKE '%-capped' "
                    f"GROUP BY app_name HAVING SUM(asks) > {CAP}",
        }.items():
            found = ledger.execute(statement).fetchall()
            findings.check(not found, f"{what}: {found[:5]}")


def check_file(gateway, findings):
    with ledger_of(gateway) as ledger:
        found = ledger.execute("PRAGMA integrity_check").fetchall()
    findings.check(found == [("ok",)], f"integrity_check: {found[:5]}")


def check_directories(gateway, findings):
    """Before any new work: nothing that no row knows."""
    with ledger_of(gateway) as ledger:
        sessions = {row[0] for row in ledger.execute("SELECT session_id FROM sessions")}
        uploads = {row[0] for row in ledger.execute("SELECT file_token_sha256 FROM uploads")}
    for name, rows in {"runs": set(), "sessions": sessions, "uploads": uploads}.items():
        found = set(os.listdir(gateway.data_dir / name))
        findings.check(found <= rows, f"no row knows of {name}: {sorted(found - rows)[:5]}")
        findings.check(rows <= found, f"nothing is there for {name}: {sorted(rows - found)[:5]}")


def count_asks(gateway, app):
    """Of the runs of an app, those whose agent was asked."""
    with contextlib.closing(
            sqlite3.connect(f"file:{gateway.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        row = ledger.execute("SELECT COUNT(*) FROM runs WHERE app_name = ? AND agent_ms IS NOT NULL",
                             (app,)).fetchone()
    return row[0]
