"""Jobs from the command line, and the examples that use them."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from gateway import REPO, SECONDS_MAX, run_program, wait_until

UUID = re.compile(r"[0-9a-f-]{36}\n")
EXAMPLES = REPO / "examples"


@pytest.fixture
def cli(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("scripts")["token"]}

    def call(*arguments, stdin="", code=0):
        done = run_program(*arguments, "--data-dir", gateway.data_dir, home=gateway.root, env=env,
                           stdin=stdin)
        assert done.returncode == code, (arguments, done.stderr)
        return done.stdout if code == 0 else done.stderr
    call.env = env
    return call


def test_a_job_from_the_command_line(cli):
    made = cli("job", "add", "--agent", "demo", "--meta", '{"ticket":7}', "Hello")
    assert UUID.fullmatch(made)
    job = made.strip()
    assert cli("job", "wait", job) == "You said: Hello\n"
    assert json.loads(cli("job", "wait", job, "--json"))["answer"]["result"] == "You said: Hello"
    shown = dict(line.split("\t", 1) for line in cli("job", "get", job).splitlines())
    assert shown["state"] == "succeeded" and json.loads(shown["meta"]) == {"ticket": 7}
    assert json.loads(cli("job", "get", job, "--json"))["status"] == 200
    rows = cli("job", "list").splitlines()
    assert rows[0].split("\t") == ["JOB", "KIND", "STATE", "STATUS", "ATTEMPTS", "CREATED", "ENDED"]
    assert rows[1].split("\t")[:4] == [job, "run", "succeeded", "200"]
    assert cli("job", "cancel", job) == "it had ended\n"


def test_a_job_that_waits_is_listed_and_cancelled(gateway, cli):
    later = str(int(time.time()) + 3600)
    job = cli("job", "add", "--agent", "demo", "--at", later, "--attempts", "2", stdin="x").strip()
    assert job in cli("job", "list", "--state", "queued")
    assert job not in cli("job", "list", "--state", "failed")
    assert cli("job", "cancel", job) == "cancelled\n"
    assert "the job is cancelled" in cli("job", "wait", job, code=4)
    assert json.loads(cli("job", "cancel", job, "--json")) == {"ok": True, "already_ended": True}

    def is_offered():
        done = run_program("__complete", "job", "get", "", home=gateway.root,
                           env={**cli.env, "CLAWDFORGE_URL": gateway.url})
        return job in done.stdout
    wait_until(is_offered, "the shell offers the id, where the gateway answers in time")


def test_the_admin_lists_the_jobs_of_all_apps(gateway, cli):
    done = cli("job", "add", "--agent", "demo", "hello").strip()
    cli("job", "wait", done)
    heading, row = cli("audit", "jobs", "--state", "succeeded").splitlines()
    assert heading.split("\t")[:4] == ["CREATED", "JOB", "APP", "KIND"]
    assert row.split("\t")[1] == done
    assert json.loads(cli("audit", "jobs", "--json")) == gateway.admin.get(
        "/admin/jobs?limit=50").json()
    assert len(cli("audit", "jobs", "--app", "another").splitlines()) == 1
    assert len(cli("audit", "jobs", "--state", "queued").splitlines()) == 1
    cli("audit", "jobs", "--state", "odd", code=2)
    assert len(cli("audit", "deliveries", "--state", "dead").splitlines()) == 1


def test_a_turn_is_a_job_too(cli):
    session = cli("session", "new", "--agent", "demo").strip()
    job = cli("job", "add", "--session", session, "Hello").strip()
    assert cli("job", "wait", job) == "You said: Hello\n"


def test_what_is_wrong_is_told(cli):
    cli("job", "add", "--agent", "demo", "--meta", "[]", "x", code=2)
    cli("job", "add", "--agent", "demo", "--key", "", "x", code=2)
    cli("job", "add", "--agent", "demo", "--webhook", "http://127.0.0.1:1/", "x", code=4)
    again = [cli("job", "add", "--agent", "demo", "--key", "once", "x") for _ in range(2)]
    assert again[0] == again[1]
    cli("job", "add", "--agent", "demo", "--attempts", "9", "x", code=4)
    cli("job", "list", "--state", "done", code=2)
    for command in ("get", "wait", "cancel"):
        cli("job", command, "absent", code=4)


# Examples

@pytest.fixture
def environment(gateway, tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLAWDFORGE_URL": gateway.url,
            "CLAWDFORGE_TOKEN": gateway.mint("example")["token"], "AGENT": "demo"}


def test_the_cron_example_hands_over_and_collects(environment, tmp_path):
    environment["STATE_DIR"] = str(tmp_path / "state")

    def run():
        done = subprocess.run([EXAMPLES / "cron-job.sh", "Good morning"], env=environment, text=True,
                              capture_output=True, timeout=SECONDS_MAX)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "You said" not in run(), "the first hands a job over, and has nothing to show"
    wait_until(lambda: "You said: Good morning" in run(), "a later one shows what came of it")


@pytest.mark.parametrize("program", [["python3", "queue_worker.py"], ["node", "queue_worker.mjs"]])
def test_the_queue_workers_bring_an_answer_for_each_task(environment, tmp_path, program):
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not here")
    spool = tmp_path / "spool"
    spool.mkdir()
    for number in range(3):
        (spool / f"task-{number}.json").write_text(json.dumps({"prompt": f"task {number}"}))
    (spool / "wrong.json").write_text('{"prompt": ""}')
    done = subprocess.run([program[0], EXAMPLES / program[1], "--once", spool], env=environment,
                          text=True, capture_output=True, timeout=2 * SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    for number in range(3):
        answer = json.loads((spool / f"task-{number}.answer").read_text())
        assert answer["state"] == "succeeded"
        assert answer["answer"]["result"] == f"You said: task {number}"
    assert json.loads((spool / "wrong.answer").read_text())["state"] == "refused"
    assert not list(spool.glob("*.json")), "each task is done with"
