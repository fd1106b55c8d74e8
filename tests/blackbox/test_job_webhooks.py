"""The webhook of a job: it is told of the job's end, once, also after a crash."""
import http.server
import json
import threading

import pytest

from agents import App, fake_env
from answers import assert_error
from gateway import wait_until
from jobs import HeldJob, ended, post, run_of, submit


@pytest.fixture
def receiver():
    """Keeps what it is told."""
    told = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.headers["webhook-id"], json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/"
    server.told = told
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def told_of(receiver, job_id):
    return wait_until(lambda: [body for name, body in receiver.told if body["data"]["job_id"] == job_id],
                      "the webhook is told")


def test_a_webhook_is_told_of_each_end(new_gateway, receiver, tmp_path):
    app = App(new_gateway(env=fake_env()), webhook_urls=[receiver.url])
    hook = {"webhook": receiver.url + "here"}
    done = submit(app, {**run_of("hello"), **hook, "meta": {"order": 7}})
    failed = submit(app, {**run_of({"error": "No luck."}), **hook})
    event, = told_of(receiver, done)
    shown = ended(app, done)
    assert event["type"] == "job.succeeded" and event["data"] == shown
    event, = told_of(receiver, failed)
    assert event["type"] == "job.failed" and event["data"]["answer"]["code"]
    running = HeldJob(app, tmp_path, **hook).begun()
    app.client().delete(f"/jobs/{running.id}")
    assert told_of(receiver, running.id)[0]["type"] == "job.cancelled"
    quiet = submit(app, run_of("x"))
    ended(app, quiet)
    assert not [body for _, body in receiver.told if body["data"]["job_id"] == quiet]


def test_an_interrupted_job_and_a_large_answer_are_told_too(new_gateway, receiver, tmp_path):
    gateway = new_gateway(env=fake_env())
    app = App(gateway, webhook_urls=[receiver.url])
    job = HeldJob(app, tmp_path, webhook=receiver.url).begun()
    gateway.kill()
    gateway.start()
    event, = told_of(receiver, job.id)
    assert event["type"] == "job.interrupted" and event["data"]["status"] == 503
    large = submit(app, {**run_of("x" * 300_000), "webhook": receiver.url})
    event, = told_of(receiver, large)
    assert event["type"] == "job.succeeded" and event["data"]["answer"] is None
    assert ended(app, large)["answer"]["result"].endswith("xxx")


def test_a_webhook_that_the_owner_did_not_name_is_refused(new_gateway, receiver):
    gateway = new_gateway(env=fake_env())
    for app in (App(gateway, "none"), App(gateway, "other", webhook_urls=["http://127.0.0.1:9/x/"])):
        assert_error(post(app, {**run_of("x"), "webhook": receiver.url}), 422, "webhook_not_allowed")
    assert_error(post(app, {**run_of("x"), "webhook": 7}), 422, "validation_failed")
