"""Idempotency-Key: the first request does the work, the others get its answer."""
import concurrent.futures
import contextlib
import json
import sqlite3

import pytest

from agents import FAKE, App, assert_failure, assert_nothing_left, fake_env, rows, settled_rows
from answers import assert_error
from gateway import wait_until
from sessions import Talker, session_options
from wire import Wire, bearer, with_body

CALLERS = 50


def counted_claude(place):
    """The stand-in, and a file that has a line for each of its asks."""
    starts = place / "starts"
    starts.touch()
    program = place / "claude"
    program.write_text(f'#!/bin/sh\n[ "$1" = -p ] && echo start >> {starts}\nexec {FAKE} "$@"\n')
    program.chmod(0o755)
    return program, lambda: len(starts.read_text().splitlines())


@pytest.fixture
def counted(new_gateway, tmp_path):
    """A gateway, an app of it, and how many agents were asked."""
    program, starts = counted_claude(tmp_path)
    gateway = new_gateway(env=fake_env(claude_bin=program))
    return gateway, App(gateway), starts


def keyed(app, prompt, key="one", **fields):
    return app.client().post("/run", json=App.body(prompt, fields), headers={"Idempotency-Key": key})


def is_replay(answer):
    return answer.headers.get("Idempotency-Replayed") == "true"


def assert_replay(answer, first):
    assert is_replay(answer), answer.text
    assert (answer.status_code, answer.content) == (first.status_code, first.content)


def keys_kept(gateway):
    with contextlib.closing(
            sqlite3.connect(f"file:{gateway.data_dir}/clawdforge.db?mode=ro", uri=True)) as ledger:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute("SELECT * FROM idempotency_keys")]


def keyed_wire(app, prompt, key, **fields):
    """Sends a run with a key, and gives the connection on which the answer will come."""
    wire = Wire(app.gateway)
    body = json.dumps(App.body(prompt, fields)).encode()
    wire.send(with_body("POST /run", body, bearer(app.token), f"Idempotency-Key: {key}"))
    return wire


# The stored answer

def test_the_second_gets_the_answer_of_the_first_also_after_a_restart(counted):
    gateway, app, starts = counted
    first = keyed(app, {"result": "Hello.\u00e9"}, include=["usage"])
    assert first.status_code == 200 and not is_replay(first)
    again = keyed(app, {"result": "Hello.\u00e9"}, include=["usage"])
    assert_replay(again, first)
    for name in ("X-Clawdforge-Run-Id", "X-Clawdforge-Cost-Usd", "X-Clawdforge-Input-Tokens",
                 "X-Clawdforge-Output-Tokens", "Content-Type"):
        assert again.headers[name] == first.headers[name]
    gateway.restart()
    assert_replay(keyed(app, {"result": "Hello.\u00e9"}, include=["usage"]), first)
    gateway.kill()
    gateway.start()
    assert_replay(keyed(app, {"result": "Hello.\u00e9"}, include=["usage"]), first)
    assert starts() == 1 and len(rows(gateway)) == 1


def test_without_a_key_nothing_is_kept(counted):
    gateway, app, starts = counted
    for _ in range(2):
        answer = app.run("x")
        assert answer.status_code == 200 and "Idempotency-Replayed" not in answer.headers
    assert starts() == 2 and keys_kept(gateway) == []


def test_a_failure_of_the_agent_is_an_answer_too(counted):
    gateway, app, starts = counted
    first = keyed(app, {"error": "No luck."})
    assert_failure(first, 502, "agent_error")
    assert_replay(keyed(app, {"error": "No luck."}), first)
    late = keyed(app, {"sleep": 100}, "late", timeout_secs=5)
    assert_failure(late, 504, "timeout")
    assert_replay(keyed(app, {"sleep": 100}, "late", timeout_secs=5), late)
    assert starts() == 2


def test_another_body_is_refused_and_leaves_the_first_alone(counted):
    gateway, app, starts = counted
    first = keyed(app, "one")
    assert_error(keyed(app, "two"), 422, "idempotency_mismatch")
    assert_replay(keyed(app, "one"), first)
    assert starts() == 1


def test_a_key_belongs_to_its_app_and_its_path(counted):
    gateway, app, starts = counted
    other = App(gateway, "other")
    assert not is_replay(keyed(app, "x"))
    assert not is_replay(keyed(other, "x"))
    upload = app.client().post("/files", files={"file": ("a.txt", b"x")},
                               headers={"Idempotency-Key": "one"})
    assert upload.status_code == 200 and not is_replay(upload)
    assert starts() == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "caf\u00e9"])
def test_a_bad_key_is_refused(counted, key):
    gateway, app, starts = counted
    body = json.dumps({"prompt": "x"}).encode()
    with Wire(gateway) as wire:
        wire.send(b"POST /run HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                  + f"Authorization: Bearer {app.token}\r\nIdempotency-Key: {key}\r\n".encode()
                  + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = wire.read()
    # A tab or bytes outside of ASCII may be refused with the head already.
    assert answer.status == 400
    if key == "" or len(key) > 255:
        assert_error(answer, 400, "bad_idempotency_key")
    assert starts() == 0


def test_two_keys_are_refused_and_the_longest_is_good(counted):
    gateway, app, starts = counted
    body = json.dumps({"prompt": "x"}).encode()
    with Wire(gateway) as wire:
        answer = wire.ask(with_body("POST /run", body, bearer(app.token), "Idempotency-Key: a",
                                    "Idempotency-Key: a"))
    assert_error(answer, 400, "bad_idempotency_key")
    longest = "k " * 127 + "k"
    first = keyed(app, "x", longest)
    assert first.status_code == 200
    assert_replay(keyed(app, "x", longest), first)
    assert_error(app.client().post("/files", files={"file": ("a", b"x")},
                                   headers={"Idempotency-Key": "x" * 256}), 400,
                 "bad_idempotency_key")
    assert starts() == 1


# What never started

def test_what_never_started_may_be_tried_again(counted):
    gateway, app, starts = counted
    body = {"prompt": "x", "files": ["ff_absent"]}
    headers = {"Idempotency-Key": "one"}
    assert_error(app.client().post("/run", json=body, headers=headers), 404, "file_not_found")
    assert_error(app.client().post("/run", json={"prompt": 7}, headers=headers), 422,
                 "validation_failed")
    assert keyed(app, "x").status_code == 200
    assert starts() == 1 and len(keys_kept(gateway)) == 1


def test_a_limit_that_refuses_keeps_no_key_and_a_replay_uses_none_of_it(new_gateway, tmp_path):
    program, starts = counted_claude(tmp_path)
    gateway = new_gateway(env=fake_env(claude_bin=program))
    app = App(gateway, budgets=[{"window": "day", "unit": "asks", "limit": 1}], asks_per_minute=5)
    first = keyed(app, "x")
    assert first.status_code == 200
    for _ in range(10):
        assert_replay(keyed(app, "x"), first)
    assert keyed(app, "y", "two").json()["code"] == "budget_exhausted"
    patched = gateway.admin.patch("/admin/tokens/app", json={"budgets": None})
    assert patched.status_code == 200
    assert keyed(app, "y", "two").status_code == 200
    assert starts() == 2


def test_an_agent_that_is_not_there_keeps_no_key(new_gateway, tmp_path):
    program = tmp_path / "claude"
    gateway = new_gateway(env=fake_env(claude_bin=program))
    app = App(gateway)
    assert keyed(app, "x").json()["code"] == "agent_missing"
    assert keys_kept(gateway) == []
    program.write_text(f'#!/bin/sh\nexec {FAKE} "$@"\n')
    program.chmod(0o755)
    # Its breaker may be shut for a moment.
    wait_until(lambda: keyed(app, "x").status_code == 200, "the program that came later is found")


# Several callers

def test_those_who_come_meanwhile_wait_for_the_first(counted, tmp_path):
    gateway, app, starts = counted
    gate = tmp_path / "gate"
    prompt = {"wait_for": str(gate), "result": "done"}
    wires = [keyed_wire(app, prompt, "one") for _ in range(8)]
    wait_until(lambda: starts() == 1, "the agent is asked")
    assert_error(keyed(app, "another body"), 422, "idempotency_mismatch")
    gate.touch()
    answers = [wire.read() for wire in wires]
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    replayed = [answer for answer in answers if answer.header("Idempotency-Replayed") == "true"]
    assert len(replayed) == 7 and starts() == 1
    for wire in wires:
        wire.socket.close()


def test_a_hang_up_cancels_only_when_it_was_the_last(counted, tmp_path):
    gateway, app, starts = counted
    gate = tmp_path / "gate"
    prompt = {"wait_for": str(gate), "result": "done"}
    first = keyed_wire(app, prompt, "one")
    wait_until(lambda: starts() == 1, "the agent is asked")
    second = keyed_wire(app, prompt, "one")
    # It waits for the first when it is being handled.
    wait_until(lambda: busy(gateway) >= 2, "the second is handled")
    first.socket.close()
    wait_until(lambda: busy(gateway) >= 1, "the first is gone")
    gate.touch()
    answer = second.read()
    assert answer.status == 200 and answer.header("Idempotency-Replayed") == "true"
    second.socket.close()

    held = keyed_wire(app, {"wait_for": str(tmp_path / "never")}, "two")
    wait_until(lambda: starts() == 2, "the agent is asked again")
    held.socket.close()
    wait_until(lambda: settled_rows(gateway, 2)[1]["state"] == "cancelled", "the run is cancelled")
    again = keyed(app, {"wait_for": str(tmp_path / "never")}, "two")
    assert_failure_body(again, 410, "cancelled")
    assert is_replay(again) and starts() == 2
    assert_nothing_left(gateway)


def busy(gateway):
    answer = gateway.admin.get("/metrics")
    line, = [line for line in answer.text.splitlines()
             if line.startswith("clawdforge_http_requests_busy ")]
    return float(line.split()[1]) - 1  # without this one


def assert_failure_body(answer, status, code):
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_fifty_at_once_and_a_kill_in_the_middle_are_one_ask(counted, tmp_path):
    gateway, app, starts = counted
    prompt = {"wait_for": str(tmp_path / "never")}

    def send(_):
        try:
            with contextlib.closing(keyed_wire(app, prompt, "one").socket) as held:
                return held.recv(65536)
        except OSError:
            return b""

    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        sent = [pool.submit(send, number) for number in range(CALLERS)]
        wait_until(lambda: starts() == 1 and keys_kept(gateway), "the agent is asked")
        gateway.kill()
        assert {future.result() for future in sent} == {b""}, "all were cut off"
    gateway.start()
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: keyed(app, prompt), range(CALLERS)))
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (503, answers[0].content)}
    assert all(is_replay(answer) for answer in answers)
    assert answers[0].json()["code"] == "interrupted"
    assert starts() == 1 and len(rows(gateway)) == 1
    # Another key does it again.
    (tmp_path / "never").touch()
    assert keyed(app, prompt, "two").status_code == 200


def test_fifty_at_once_are_one_ask_and_equal(counted, tmp_path):
    gateway, app, starts = counted
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: keyed(app, {"result": "r"}), range(CALLERS)))
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (200, answers[0].content)}
    gateway.kill()
    gateway.start()
    assert_replay(keyed(app, {"result": "r"}), answers[0])
    assert starts() == 1


# Bounds and ends

def test_an_app_has_so_many_keys(new_gateway):
    gateway = new_gateway(env=fake_env(max_keys_per_app=2))
    app = App(gateway)
    first = keyed(app, "x", "1")
    assert keyed(app, "x", "2").status_code == 200
    refused = keyed(app, "x", "3")
    assert_error(refused, 429, "too_many_keys")
    assert int(refused.headers["Retry-After"]) > 0
    assert_replay(keyed(app, "x", "1"), first)
    assert app.run("x").status_code == 200
    assert keyed(App(gateway, "other"), "x", "3").status_code == 200
    gateway.restart()
    assert_error(keyed(app, "x", "3"), 429, "too_many_keys")


def test_answers_of_an_app_take_so_much_space(new_gateway):
    gateway = new_gateway(env=fake_env(max_key_bytes_per_app=10_000))
    app = App(gateway)
    assert keyed(app, {"result": "x" * 20_000}, "1").status_code == 200
    assert_error(keyed(app, "x", "2"), 429, "too_many_keys")


def test_of_an_answer_that_is_too_large_it_is_kept_that_it_was_given(counted):
    gateway, app, starts = counted
    prompt = {"lines": [], "result": "y" * 10, "keys": {"result": "z" * 5_000_000}}
    body = json.dumps(App.body(prompt, {}))
    headers = {"Idempotency-Key": "one", "Content-Type": "application/json"}
    first = app.client().post("/run", content=body, headers=headers)
    assert first.status_code == 200 and len(first.content) > 5_000_000
    again = app.client().post("/run", content=body, headers=headers)
    assert_failure_body(again, 410, "answer_not_kept")
    assert is_replay(again) and starts() == 1


def test_an_old_key_is_new_again_and_is_swept(new_gateway, tmp_path):
    program, starts = counted_claude(tmp_path)
    gateway = new_gateway(env=fake_env(claude_bin=program, idempotency_secs=1,
                                       sweep_interval_secs=86_400))
    app = App(gateway)
    assert keyed(app, "x").status_code == 200
    wait_until(lambda: not is_replay(keyed(app, "x")), "the key is old")
    assert starts() == 2
    wait_until(lambda: gateway.admin.post("/admin/sweep").status_code == 200
               and keys_kept(gateway) == [], "old keys are swept")


def test_the_keys_of_an_app_go_with_it(counted):
    gateway, app, starts = counted
    assert keyed(app, "x").status_code == 200
    assert gateway.admin.delete("/admin/tokens/app").status_code == 200
    assert keys_kept(gateway) == []
    again = App(gateway, "app")
    assert not is_replay(keyed(again, "x"))


def test_a_new_token_of_the_app_finds_its_keys(counted):
    gateway, app, starts = counted
    first = keyed(app, "x")
    rotated = gateway.admin.post("/admin/tokens/app/rotate")
    assert rotated.status_code == 200, rotated.text
    with gateway.client(rotated.json()["token"]) as client:
        assert_replay(client.post("/run", json={"prompt": "x"}, headers={"Idempotency-Key": "one"}),
                      first)


# Files

def upload(app, content=b"text", key="one", name="a.txt", **fields):
    return app.client().post("/files", files={"file": (name, content)}, data=fields,
                             headers={"Idempotency-Key": key})


def test_a_file_is_kept_once_whatever_the_boundary(counted):
    gateway, app, starts = counted
    first = upload(app, ttl_secs=600)
    assert first.status_code == 200 and not is_replay(first)
    assert_replay(upload(app, ttl_secs=600), first)
    gateway.kill()
    gateway.start()
    assert_replay(upload(app, ttl_secs=600), first)
    assert len(list((gateway.data_dir / "uploads").iterdir())) == 1
    for other in (upload(app, b"other", ttl_secs=600), upload(app, name="b.txt", ttl_secs=600),
                  upload(app, ttl_secs=601)):
        assert_error(other, 422, "idempotency_mismatch")
    token = first.json()["file_token"]
    assert app.report(files=[token])["contents"]
    assert_error(app.client().post("/files", data={"ttl_secs": "60"}, files={"other": b"x"},
                                   headers={"Idempotency-Key": "two"}), 422, "validation_failed")
    assert upload(app, key="two").status_code == 200


# Sessions

@pytest.fixture
def forge(new_gateway, tmp_path):
    return new_gateway(**session_options(tmp_path))


def test_a_session_is_made_once(forge):
    app = Talker(forge)
    headers = {"Idempotency-Key": "one"}
    first = app.client().post("/sessions", json={"agent": "fake"}, headers=headers)
    assert first.status_code == 200 and not is_replay(first)
    assert_replay(app.client().post("/sessions", json={"agent": "fake"}, headers=headers), first)
    assert_error(app.client().post("/sessions", json={"agent": "resume"}, headers=headers), 422,
                 "idempotency_mismatch")
    forge.kill()
    forge.start()
    assert_replay(app.client().post("/sessions", json={"agent": "fake"}, headers=headers), first)
    assert app.ids() == [first.json()["session_id"]]
    absent = app.client().post("/sessions", json={"agent": "none"}, headers={"Idempotency-Key": "2"})
    assert_error_code(absent, 422, "unknown_agent")
    assert app.client().post("/sessions", json={"agent": "fake"},
                             headers={"Idempotency-Key": "2"}).status_code == 200


def assert_error_code(answer, status, code):
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def keyed_turn(session, *steps, key="one", accept=None, **fields):
    headers = {"Idempotency-Key": key, **({"Accept": accept} if accept else {})}
    prompt = steps[0] if len(steps) == 1 and isinstance(steps[0], str) else json.dumps(list(steps))
    return session.app.client().post(session.path + "/turn", json={"prompt": prompt, **fields},
                                     headers=headers)


def test_a_turn_is_asked_once(forge):
    app = Talker(forge)
    session, other = app.session(), app.session()
    first = keyed_turn(session, "hello")
    assert first.status_code == 200 and first.json()["events"]
    assert_replay(keyed_turn(session, "hello"), first)
    assert_error(keyed_turn(session, "bye"), 422, "idempotency_mismatch")
    assert not is_replay(keyed_turn(other, "hello"))
    failed = keyed_turn(session, {"error": {"code": -32603, "message": "No."}}, key="bad")
    assert failed.status_code == 502
    assert_replay(keyed_turn(session, {"error": {"code": -32603, "message": "No."}}, key="bad"),
                  failed)
    forge.kill()
    forge.start()
    assert_replay(keyed_turn(session, "hello"), first)
    assert app.get(session.path).json()["turn_count"] == 2


def test_a_turn_that_a_crash_has_cut_is_not_asked_again(forge, tmp_path):
    app = Talker(forge)
    session = app.session()
    mark = tmp_path / "mark"
    steps = ({"touch": str(mark)}, {"sleep_until_cancel": True})
    with Wire(forge) as wire:
        body = json.dumps({"prompt": json.dumps(list(steps))}).encode()
        wire.send(with_body(f"POST {session.path}/turn", body, bearer(app.token),
                            "Idempotency-Key: one"))
        wait_until(mark.exists, "the agent is asked")
        forge.kill()
    mark.unlink()
    forge.start()
    first = keyed_turn(session, *steps)
    assert_error_code(first, 503, "interrupted")
    assert_replay(keyed_turn(session, *steps), first)
    assert not mark.exists() and app.get(session.path).json()["turn_count"] == 1


def test_a_turn_whose_caller_hangs_up_has_its_answer_kept(forge, tmp_path):
    app = Talker(forge)
    session = app.session()
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    steps = ({"text": "one"}, {"touch": str(mark)}, {"wait_for": str(gate)}, {"text": "two"})
    with Wire(forge) as wire:
        body = json.dumps({"prompt": json.dumps(list(steps))}).encode()
        wire.send(with_body(f"POST {session.path}/turn", body, bearer(app.token),
                            "Idempotency-Key: one"))
        wait_until(mark.exists, "the agent is asked")
    gate.touch()
    answer = keyed_turn(session, *steps)
    assert is_replay(answer) and answer.json()["text"] == "onetwo"
    assert "events_truncated" not in answer.json()
    assert app.get(session.path).json()["turn_count"] == 1


def test_a_streamed_turn_takes_no_key(forge):
    session = Talker(forge).session()
    refused = keyed_turn(session, "hello", accept="text/event-stream")
    assert_error(refused, 422, "idempotency_streamed")
    assert keyed_turn(session, "hello").json()["turn_index"] == 1


def test_a_turn_that_was_refused_may_be_tried_again(forge):
    app = Talker(forge)
    session = app.session()
    absent = keyed_turn(session, "x", files=["ff_none"])
    assert_error_code(absent, 404, "file_not_found")
    assert keyed_turn(session, "x").status_code == 200
