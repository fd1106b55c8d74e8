"""/jobs: runs that the gateway does by itself, over restarts, and what an app sees of them."""
import signal
import sqlite3
import time

import pytest

from agents import App, fake_env, gauge, rows
from answers import assert_error
from gateway import wait_until
from jobs import JOB_KEYS, HeldJob, ended, listed, post, run_of, show, state, submit

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def claude(new_gateway):
    return new_gateway(env=fake_env())


# What is accepted

def test_a_job_is_accepted_done_and_shown_with_the_answer_of_the_plain_call(claude):
    app = App(claude)
    job_id = submit(app, {**run_of("hello"), "meta": {"order": 7, "long": 12345678901234567890123}})
    job = ended(app, job_id)
    assert (job["kind"], job["state"], job["status"], job["attempts"]) == ("run", "succeeded", 200, 1)
    plain = app.run("hello").json()
    assert set(job["answer"]) == set(plain) and job["answer"]["result"] == plain["result"]
    assert job["meta"]["order"] == 7
    assert job["created_at"] <= job["started_at"] <= job["ended_at"]
    text = app.client().get(f"/jobs/{job_id}").text
    assert "12345678901234567890123" in text, "what meta means is the app's affair"


def test_a_job_that_fails_has_the_status_of_the_plain_call(claude):
    app = App(claude)
    script = {"error": "No luck."}
    job = ended(app, submit(app, run_of(script)))
    plain = app.run(script)
    assert (job["state"], job["status"]) == ("failed", plain.status_code)
    assert job["answer"]["code"] == plain.json()["code"]


@pytest.mark.parametrize("body,field", [
    ({}, "run"), ({"run": {"prompt": "x"}, "turn": {"session_id": "s", "prompt": "x"}}, "turn"),
    ({"run": "x"}, "run"), ({"run": {}}, "run.prompt"),
    ({"run": {"prompt": "x", "timeout_secs": -1}}, "run.timeout_secs"),
    ({"run": {"prompt": "x"}, "attempts": 6}, "attempts"),
    ({"run": {"prompt": "x"}, "attempts": 0}, "attempts"),
    ({"run": {"prompt": "x"}, "run_at": -1}, "run_at"),
    ({"run": {"prompt": "x"}, "meta": []}, "meta"),
    ({"run": {"prompt": "x"}, "meta": {"x": "x" * 17_000}}, "meta"),
    ({"turn": {"prompt": "x"}}, "turn.session_id"),
])
def test_what_is_wrong_is_refused_with_its_field(claude, body, field):
    answer = post(App(claude), body)
    assert_error(answer, 422, "validation_failed")
    assert field in [error["field"] for error in answer.json()["errors"]]


def test_a_body_is_refused_as_the_plain_call_refuses_it(claude):
    app = App(claude, agents=["claude"], models=["sonnet"])
    for fields in ({"prompt": ""}, {"prompt": "x", "agent": "demo"}, {"prompt": "x", "agent": "x"},
                   {"prompt": "x", "model": "opus"}, {"prompt": "x", "files": ["ff_absent"]},
                   {"prompt": "x", "model": "sonnet", "permission_mode": "ask"}):
        plain, job = app.post(fields), post(app, {"run": fields})
        assert plain.status_code >= 400 and job.status_code == plain.status_code, job.text
        assert job.json()["code"] == plain.json()["code"]
    assert_error(app.client().post("/jobs", content=b"{"), 400, "bad_json")
    assert listed(app)["count"] == 0, "what is refused is not kept"


def test_what_has_changed_since_a_job_was_accepted_is_checked_again(claude, tmp_path):
    app = App(claude, max_runs=1)
    first = HeldJob(app, tmp_path).begun()
    second = submit(app, run_of("x", agent="demo"))
    changed = claude.admin.patch("/admin/tokens/app", json={"agents": ["claude"]})
    assert changed.status_code == 200, changed.text
    first.end()
    job = ended(app, second)
    assert (job["state"], job["status"]) == ("failed", 403)
    assert job["answer"]["code"] == "agent_not_allowed"


def test_prefer_respond_async_makes_a_job_of_a_plain_run(claude):
    app = App(claude)
    answer = app.client().post("/run", json={"prompt": "hello"},
                               headers={"Prefer": "respond-async, wait=10"})
    assert answer.status_code == 202, answer.text
    assert answer.headers["Preference-Applied"] == "respond-async"
    job = ended(app, answer.json()["job_id"])
    assert job["answer"]["result"] == "echo: hello" and job["meta"] == {}
    refused = app.client().post("/run", json={}, headers={"Prefer": "respond-async"})
    assert_error(refused, 422, "validation_failed")


# Whose it is

def test_foreign_and_absent_jobs_are_the_same(claude):
    mine, other = App(claude, "mine"), App(claude, "other")
    foreign = submit(other, run_of("x"))
    ended(other, foreign)
    for job_id in (foreign, NOWHERE, "x"):
        for answer in (mine.client().get(f"/jobs/{job_id}"), mine.client().delete(f"/jobs/{job_id}"),
                       mine.client().get(f"/jobs/{job_id}/events")):
            assert_error(answer, 404, "job_not_found")
    assert listed(mine)["count"] == 0
    assert_error(claude.admin.get("/jobs"), 403, "wrong_token_kind")


def test_jobs_are_listed_the_newest_first_and_by_state(claude):
    app = App(claude)
    ids = [submit(app, run_of(str(number))) for number in range(5)]
    for job_id in ids:
        ended(app, job_id)
    assert [job["job_id"] for job in listed(app)["jobs"]] == ids[::-1]
    page = listed(app, limit=3)
    rest = listed(app, limit=3, cursor=page["next_cursor"])
    assert [job["job_id"] for job in page["jobs"] + rest["jobs"]] == ids[::-1]
    assert rest["next_cursor"] is None
    later = submit(app, {**run_of("x"), "run_at": int(time.time()) + 3600})
    assert [job["job_id"] for job in listed(app, state="queued")["jobs"]] == [later]
    assert listed(app, state="succeeded")["count"] == 5
    assert_error(app.client().get("/jobs?state=done"), 422, "validation_failed")
    assert_error(app.client().get("/jobs?cursor=x"), 422, "validation_failed")


# Order, limits

def test_the_admin_sees_the_jobs_of_all_apps(claude, tmp_path):
    apps = [App(claude, name) for name in ("one", "two")]
    made = [submit(app, run_of("x", agent="demo")) for app in apps for _ in range(2)]
    for app, job in zip([apps[0]] * 2 + [apps[1]] * 2, made, strict=True):
        ended(app, job)
    held = HeldJob(apps[0], tmp_path).begun()

    def seen(**parameters):
        answer = claude.admin.get("/admin/jobs", params=parameters)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert set(body) == {"jobs", "count", "next_cursor"} and body["count"] == len(body["jobs"])
        assert all(set(job) == JOB_KEYS | {"app_name"} for job in body["jobs"])
        return body

    def ids(**parameters):
        return [job["job_id"] for job in seen(**parameters)["jobs"]]
    assert ids() == [held.id, *reversed(made)]
    assert ids(state="running") == [held.id]
    assert ids(app="two") == [made[3], made[2]]
    assert ids(app="one", state="succeeded") == [made[1], made[0]]
    assert {job["app_name"] for job in seen()["jobs"]} == {"one", "two"}
    page = seen(limit=3)
    assert [job["job_id"] for job in page["jobs"]] + ids(cursor=page["next_cursor"]) == ids()
    assert ids(until=1) == [] and ids(app="three") == []
    for wrong in ({"state": "odd"}, {"limit": 0}, {"cursor": "x"}, {"since": "soon"}):
        assert_error(claude.admin.get("/admin/jobs", params=wrong), 422, "validation_failed")
    assert_error(apps[0].client().get("/admin/jobs"), 403, "wrong_token_kind")
    held.end()


def test_jobs_of_an_app_begin_in_the_order_of_acceptance(new_gateway, tmp_path):
    app = App(new_gateway(env=fake_env(max_runs=1)))
    jobs = [HeldJob(app, tmp_path) for _ in range(4)]
    for number, job in enumerate(jobs):
        job.begun()
        assert not [later for later in jobs[number + 1:] if later.has_begun()]
        assert state(app, job.id) == "running"
        assert {state(app, later.id) for later in jobs[number + 1:]} <= {"queued"}
        assert job.end()["state"] == "succeeded"


def test_a_job_waits_where_a_plain_run_is_refused(claude, tmp_path):
    app = App(claude, max_runs=1)
    held = app.hold(tmp_path).begun()
    assert_error(app.run("x"), 429, "too_many_runs")
    job_id = submit(app, run_of("x", timeout_secs=5))
    wait_until(lambda: gauge(claude, "clawdforge_jobs_in_hand") == 0, "it was refused once")
    assert state(app, job_id) == "queued"
    held.end()
    assert ended(app, job_id)["state"] == "succeeded"


def test_a_budget_in_asks_holds_and_the_job_waits_for_more(claude):
    app = App(claude, budgets=[{"window": "total", "unit": "asks", "limit": 2}])
    ids = [submit(app, run_of("x")) for _ in range(4)]
    wait_until(lambda: [state(app, job_id) for job_id in ids] ==
               ["succeeded", "succeeded", "queued", "queued"], "two are done")
    assert app.run("x").json()["code"] == "budget_exhausted"
    assert len(rows(claude)) == 2
    changed = claude.admin.patch("/admin/tokens/app", json={"budgets": None})
    assert changed.status_code == 200
    # A job looks now and then whether its limit was raised; a restart looks at once.
    claude.restart()
    assert [ended(app, job_id)["state"] for job_id in ids] == ["succeeded"] * 4


def test_one_apps_jobs_do_not_hold_up_anothers(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    greedy, modest = App(gateway, "greedy"), App(gateway, "modest")
    first = HeldJob(greedy, tmp_path).begun()
    many = [HeldJob(greedy, tmp_path) for _ in range(5)]
    one = HeldJob(modest, tmp_path)
    wait_until(lambda: gauge(gateway, "clawdforge_runs_waiting") == 2, "one of each app waits")
    first.end()
    one.begun()
    assert not [job for job in many[1:] if job.has_begun()]
    one.end()
    for job in many:
        job.let_go()
    for job in many:
        assert ended(greedy, job.id)["state"] == "succeeded"


def test_so_many_jobs_may_wait_and_no_more(new_gateway):
    app = App(new_gateway(env=fake_env(max_queued_jobs_per_app=2)))
    later = {"run_at": int(time.time()) + 3600}
    ids = [submit(app, {**run_of("x"), **later}) for _ in range(2)]
    refused = post(app, {**run_of("x"), **later})
    assert_error(refused, 429, "too_many_jobs")
    assert refused.json()["limit"] == {"scope": "app", "window": None, "unit": "jobs", "limit": 2, "used": 2,
                                       "reserved": 0, "resets_at": None}
    assert int(refused.headers["Retry-After"]) > 0
    other = App(app.gateway, "other")
    submit(other, {**run_of("x"), **later})
    app.client().delete(f"/jobs/{ids[0]}")
    submit(app, {**run_of("x"), **later})


# Waiting, cancelling

def test_a_caller_waits_for_the_end_as_long_as_it_prefers(claude, tmp_path):
    app = App(claude)
    job = HeldJob(app, tmp_path).begun()
    answer = app.client().get(f"/jobs/{job.id}", headers={"Prefer": "wait=1"})
    assert answer.json()["state"] == "running"
    assert answer.headers["Preference-Applied"] == "wait=1"
    wire = app.client().build_request("GET", f"/jobs/{job.id}", headers={"Prefer": "wait=900"})
    job.let_go()
    answer = app.client().send(wire)
    assert answer.json()["state"] == "succeeded"
    assert answer.headers["Preference-Applied"] == "wait=60"


def test_a_queued_job_is_cancelled_and_never_begins(new_gateway, tmp_path):
    app = App(new_gateway(env=fake_env(max_runs=1)))
    first = HeldJob(app, tmp_path).begun()
    second, third = HeldJob(app, tmp_path), HeldJob(app, tmp_path)
    for job in (second, third):
        answer = app.client().delete(f"/jobs/{job.id}")
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "state": "cancelled"})
    first.end()
    cancelled = ended(app, second.id)
    assert (cancelled["state"], cancelled["status"], cancelled["answer"], cancelled["attempts"]) == \
        ("cancelled", None, None, 0)
    assert submit(app, run_of("x")) and not second.has_begun() and not third.has_begun()
    again = app.client().delete(f"/jobs/{second.id}")
    assert (again.status_code, again.json()) == (200, {"ok": True, "already_ended": True})


def test_a_running_job_is_cancelled(claude, tmp_path):
    app = App(claude)
    job = HeldJob(app, tmp_path).begun()
    answer = app.client().delete(f"/jobs/{job.id}")
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "state": "cancelled"})
    assert state(app, job.id) == "cancelled"
    assert app.client().delete(f"/jobs/{job.id}").json() == {"ok": True, "already_ended": True}


# Restarts

def test_queued_jobs_outlive_a_kill_and_what_ran_is_interrupted(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    first = HeldJob(app, tmp_path).begun()
    rest = [submit(app, run_of(str(number))) for number in range(3)]
    gateway.kill()
    gateway.start()
    interrupted = ended(app, first.id)
    assert (interrupted["state"], interrupted["status"]) == ("interrupted", 503)
    assert interrupted["answer"]["code"] == "interrupted" and interrupted["attempts"] == 1
    done = [ended(app, job_id) for job_id in rest]
    assert [job["state"] for job in done] == ["succeeded"] * 3
    assert [job["answer"]["result"] for job in done] == ["echo: 0", "echo: 1", "echo: 2"]
    assert [job["attempts"] for job in done] == [1, 1, 1]


def test_a_job_with_attempts_is_tried_again_after_a_kill(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env())
    app = App(gateway)
    job = HeldJob(app, tmp_path, attempts=2).begun()
    gateway.kill()
    job.let_go()
    gateway.start()
    again = ended(app, job.id)
    assert (again["state"], again["attempts"], again["max_attempts"]) == ("succeeded", 2, 2)


def test_a_job_with_attempts_is_tried_again_after_a_failure_of_its_agent(claude, tmp_path):
    app = App(claude)
    first = tmp_path / "first"
    # It dies without an answer for as long as the file is not there; the file is made by then.
    body = run_of({"touch": str(first), "signal": signal.SIGKILL, "silent": True})
    job = ended(app, submit(app, {**body, "attempts": 2}))
    assert (job["state"], job["status"], job["attempts"]) == ("failed", 502, 2)
    once = ended(app, submit(app, body))
    assert (once["state"], once["status"], once["attempts"]) == ("failed", 502, 1)
    refused = ended(app, submit(app, {**run_of({"known": "prompt_too_long"}), "attempts": 3}))
    if refused["status"] not in (502, 503, 504):
        assert refused["attempts"] == 1, "trying again would not help"


def test_a_stop_leaves_queued_jobs_queued_and_lets_running_ones_end(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    first = HeldJob(app, tmp_path).begun()
    second = submit(app, run_of("later"))
    gateway.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "draining" in gateway.stderr(), "it drains")
    first.let_go()
    assert gateway.wait() == 0
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db")
    states = dict(ledger.execute("SELECT job_id, state FROM jobs").fetchall())
    ledger.close()
    assert states == {first.id: "succeeded", second: "queued"}
    gateway.start()
    assert ended(app, second)["answer"]["result"] == "echo: later"


def test_a_stop_interrupts_what_does_not_end_in_its_grace(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(drain_grace_secs=0))
    app = App(gateway)
    once, twice = HeldJob(app, tmp_path).begun(), HeldJob(app, tmp_path, attempts=2).begun()
    assert gateway.stop() == 0
    twice.let_go()
    gateway.start()
    assert (ended(app, once.id)["state"], ended(app, once.id)["status"]) == ("interrupted", 503)
    again = ended(app, twice.id)
    assert (again["state"], again["attempts"]) == ("succeeded", 2)


def test_a_job_does_not_start_before_its_time(claude):
    app = App(claude)
    at = int(time.time()) + 2
    later, now = submit(app, {**run_of("later"), "run_at": at}), submit(app, run_of("now"))
    assert ended(app, now)["state"] == "succeeded"
    job = ended(app, later)
    assert job["run_at"] == at and job["started_at"] >= at


# The end of an app, and of jobs

def test_with_its_token_an_apps_jobs_are_cancelled(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(max_runs=1))
    app = App(gateway)
    first, second = HeldJob(app, tmp_path).begun(), HeldJob(app, tmp_path)
    later = submit(app, {**run_of("x"), "run_at": int(time.time()) + 3600})
    assert gateway.admin.delete("/admin/tokens/app").status_code == 200

    def states():
        ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
        found = dict(ledger.execute("SELECT job_id, state FROM jobs").fetchall())
        ledger.close()
        return found

    wait_until(lambda: set(states().values()) == {"cancelled"}, "all are cancelled")
    assert set(states()) == {first.id, second.id, later} and not second.has_begun()


def test_with_the_expiry_of_its_token_an_apps_jobs_are_cancelled(claude):
    app = App(claude, expires_at=int(time.time()) + 2)
    job_id = submit(app, {**run_of("x"), "run_at": int(time.time()) + 3})

    def found():
        ledger = sqlite3.connect(claude.data_dir / "clawdforge.db", timeout=10)
        row = ledger.execute("SELECT state FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
        ledger.close()
        return row[0]

    wait_until(lambda: found() == "cancelled", "it is cancelled")
    assert rows(claude) == []


def test_a_rotated_token_keeps_its_jobs(claude):
    app = App(claude)
    job_id = submit(app, {**run_of("x"), "run_at": int(time.time()) + 2})
    app.token = claude.admin.post("/admin/tokens/app/rotate").json()["token"]
    app._client = None
    assert ended(app, job_id)["state"] == "succeeded"


def test_ended_jobs_are_swept_and_others_are_not(new_gateway):
    gateway = new_gateway(env=fake_env(job_ttl_secs=1))
    app = App(gateway)
    done = submit(app, run_of("x"))
    ended(app, done)
    waits = submit(app, {**run_of("x"), "run_at": int(time.time()) + 3600})

    def is_gone():
        gateway.admin.post("/admin/sweep")
        return app.client().get(f"/jobs/{done}").status_code == 404

    wait_until(is_gone, "the ended job is swept")
    assert state(app, waits) == "queued"
    assert not list((gateway.data_dir / "jobs").iterdir())


def test_a_large_answer_is_kept_in_a_file(new_gateway):
    gateway = new_gateway(env=fake_env(max_body_bytes=33554432, memory_budget_bytes=536870912,
                                       job_ttl_secs=3600))
    app = App(gateway)
    prompt = "x" * (17 * 1024 * 1024)
    job_id = submit(app, run_of(prompt))
    assert ended(app, job_id)["answer"]["result"] == "echo: " + prompt
    file = gateway.data_dir / "jobs" / job_id
    assert file.stat().st_size > len(prompt)
    (gateway.data_dir / "jobs" / "stray").write_text("no row knows of it")
    gateway.restart()
    assert [entry.name for entry in file.parent.iterdir()] == [job_id]
    assert ended(app, job_id)["answer"]["result"] == "echo: " + prompt
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
    with ledger:
        ledger.execute("UPDATE jobs SET ended_at = 1")
    ledger.close()
    assert gateway.admin.post("/admin/sweep").status_code == 200
    assert not list(file.parent.iterdir())


# Metrics

def test_jobs_are_counted_by_how_they_ended(claude):
    app = App(claude)
    ended(app, submit(app, run_of("x")))
    ended(app, submit(app, run_of({"error": "No luck."})))
    cancelled = submit(app, {**run_of("x"), "run_at": int(time.time()) + 3600})
    app.client().delete(f"/jobs/{cancelled}")
    claude.admin.post("/admin/sweep")
    metrics = claude.admin.get("/metrics").text
    for line in ('clawdforge_jobs_ended_total{state="succeeded"} 1',
                 'clawdforge_jobs_ended_total{state="failed"} 1',
                 'clawdforge_jobs_ended_total{state="cancelled"} 1',
                 'clawdforge_jobs{state="queued"} 0', 'clawdforge_jobs_accepted_total 3'):
        assert line in metrics, line


# Idempotency keys

def test_a_key_makes_one_job_and_tells_of_it_again_also_after_a_crash(gateway):
    app = App(gateway)
    headers = {"Idempotency-Key": "order-1"}
    body = run_of("hello", agent="demo")
    first = post(app, body, headers=headers)
    assert first.status_code == 202, first.text
    gateway.kill()
    gateway.start()
    again = post(app, body, headers=headers)
    assert (again.status_code, again.content) == (202, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    assert len(app.client().get("/jobs").json()["jobs"]) == 1
    other = post(app, run_of("something else", agent="demo"), headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


def test_a_key_with_respond_async_makes_one_job(gateway):
    app = App(gateway)
    ask = lambda: app.client().post("/run", json=App.body("hello", {"agent": "demo"}), headers={
        "Idempotency-Key": "order-2", "Prefer": "respond-async"})
    first, again = ask(), ask()
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert again.headers["Preference-Applied"] == "respond-async"
    assert len(app.client().get("/jobs").json()["jobs"]) == 1
