"""Jobs of an app: submits them, waits for them, and knows how often the stand-in was started."""
import json

from agents import App, NUMBERS
from gateway import wait_until

JOB_KEYS = {"job_id", "kind", "state", "created_at", "run_at", "started_at", "ended_at", "attempts",
            "max_attempts", "session_id", "turn_index", "status", "meta"}
ENDED = {"succeeded", "failed", "cancelled", "interrupted"}


def run_of(prompt, **fields):
    return {"run": App.body(prompt, fields)}


def post(app, body, **options):
    return app.client().post("/jobs", json=body, **options)


def submit(app, body):
    """The id of a job that was accepted."""
    answer = post(app, body)
    assert answer.status_code == 202, answer.text
    accepted = answer.json()
    assert set(accepted) == {"ok", "job_id", "state"} and accepted["state"] == "queued"
    assert answer.headers["Location"] == f"/jobs/{accepted['job_id']}"
    return accepted["job_id"]


def show(app, job_id, wait=None):
    headers = {} if wait is None else {"Prefer": f"wait={wait}"}
    answer = app.client().get(f"/jobs/{job_id}", headers=headers)
    assert answer.status_code == 200, answer.text
    job = answer.json()
    assert set(job) == JOB_KEYS | {"answer"}
    return job


def ended(app, job_id):
    """The job when it has ended."""
    return wait_until(lambda: (job := show(app, job_id, wait=5))["state"] in ENDED and job,
                      f"job {job_id} ends")


def state(app, job_id):
    return show(app, job_id)["state"]


def listed(app, **parameters):
    answer = app.client().get("/jobs", params=parameters)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"jobs", "count", "next_cursor"} and body["count"] == len(body["jobs"])
    assert all(set(job) == JOB_KEYS for job in body["jobs"])
    return body


class HeldJob:
    """A job whose agent says that it has begun, and waits to be let go."""

    def __init__(self, app, place, **fields):
        name = f"held-{next(NUMBERS)}"
        self.app = app
        self.begun_file, self.gate = place / f"{name}.begun", place / f"{name}.go"
        self.id = submit(app, {**run_of({"touch": str(self.begun_file), "wait_for": str(self.gate),
                                         "result": name}), **fields})

    def has_begun(self):
        return self.begun_file.exists()

    def begun(self):
        wait_until(self.has_begun, "the job's agent begins")
        return self

    def let_go(self):
        self.gate.touch()
        return self

    def end(self):
        return ended(self.app, self.let_go().id)


def text_of(body):
    return json.dumps(body)
