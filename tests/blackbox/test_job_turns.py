"""Jobs that are turns of sessions: their order, their events, what cancels them, and restarts."""
import contextlib

import pytest

from agents import NUMBERS
from answers import assert_error
from gateway import wait_until
from jobs import ended, post, show, state, submit
from sessions import Talker, app, as_prompt, forge, new_forge  # noqa: F401
from streams import Stream, messages
from wire import bearer, request


def turn_of(session, *steps, **fields):
    return {"turn": {"session_id": session.id, "prompt": as_prompt(steps), **fields}}


class HeldTurnJob:
    def __init__(self, session, place, **fields):
        number = next(NUMBERS)
        self.app = session.app
        self.mark, self.gate = place / f"job-begun-{number}", place / f"job-gate-{number}"
        self.text = f"turn-job-{number}"
        body = turn_of(session, {"touch": str(self.mark)}, {"wait_for": str(self.gate)},
                       {"text": self.text})
        self.id = submit(self.app, {**body, **fields})

    def begun(self):
        wait_until(self.mark.exists, "the turn begins")
        return self

    def let_go(self):
        self.gate.touch()
        return self

    def end(self):
        return ended(self.app, self.let_go().id)


def events_of(talker, job_id, last_id=None):
    headers = [bearer(talker.token), "Accept: text/event-stream"]
    if last_id is not None:
        headers.append(f"Last-Event-ID: {last_id}")
    return contextlib.closing(Stream(talker.gateway, request(f"GET /jobs/{job_id}/events", *headers)))


def test_a_turn_is_done_as_a_job_and_has_the_answer_of_the_plain_call(app):
    session = app.session()
    job = ended(app, submit(app, turn_of(session, {"text": "one"})))
    assert (job["kind"], job["state"], job["status"]) == ("turn", "succeeded", 200)
    assert (job["session_id"], job["turn_index"]) == (session.id, 1)
    plain = session.ask({"text": "two"})
    assert set(job["answer"]) == set(plain) and job["answer"]["text"] == "one"
    assert plain["turn_index"] == 2
    session.close()


def test_what_the_plain_turn_refuses_is_refused(app):
    session, closed = app.session(), app.session()
    closed.close()
    for target, fields in ((session, {"prompt": ""}), (session, {"prompt": "x", "files": ["ff_no"]}),
                           (closed, {"prompt": "x"})):
        plain = app.client().post(f"{target.path}/turn", json=fields)
        job = post(app, {"turn": {"session_id": target.id, **fields}})
        assert plain.status_code >= 400 and job.status_code == plain.status_code, job.text
        assert job.json()["code"] == plain.json()["code"]
    for name in ("absent", "not/an id"):
        assert_error(post(app, {"turn": {"session_id": name, "prompt": "x"}}), 404,
                     "session_not_found")
    foreign = Talker(app.gateway, "stranger")
    assert_error(post(foreign, {"turn": {"session_id": session.id, "prompt": "x"}}), 404,
                 "session_not_found")
    stream = post(app, {"turn": {"session_id": session.id, "prompt": "x", "stream": True}})
    assert_error(stream, 422, "validation_failed")
    assert stream.json()["errors"][0]["field"] == "turn.stream"
    session.close()


def test_prefer_respond_async_makes_a_job_of_a_plain_turn_and_leaves_a_stream_alone(app):
    session = app.session()
    answer = app.client().post(f"{session.path}/turn", json={"prompt": as_prompt([{"text": "hi"}])},
                               headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    assert answer.headers["Preference-Applied"] == "respond-async"
    assert ended(app, answer.json()["job_id"])["answer"]["text"] == "hi"
    stream = app.client().post(f"{session.path}/turn",
                               json={"prompt": as_prompt([{"text": "hi"}]), "stream": True},
                               headers={"Prefer": "respond-async"})
    assert stream.status_code == 200 and "event: done" in stream.text
    session.close()


def test_turns_of_a_session_keep_their_order_and_hold_up_nothing_else(app, tmp_path):
    busy, free = app.session(), app.session()
    first = HeldTurnJob(busy, tmp_path).begun()
    second = HeldTurnJob(busy, tmp_path)
    other = ended(app, submit(app, turn_of(free, {"text": "free"})))
    run = ended(app, submit(app, {"run": {"prompt": "x", "agent": "demo"}}))
    assert (other["state"], run["state"]) == ("succeeded", "succeeded")
    assert (state(app, first.id), state(app, second.id)) == ("running", "queued")
    assert not second.mark.exists()
    assert first.end()["turn_index"] == 1
    assert second.end()["turn_index"] == 2
    busy.close()
    free.close()


def test_a_running_turn_and_a_waiting_one_are_cancelled_and_the_session_goes_on(app, tmp_path):
    session = app.session()
    first, second = HeldTurnJob(session, tmp_path).begun(), HeldTurnJob(session, tmp_path)
    assert app.client().delete(f"/jobs/{second.id}").json() == {"ok": True, "state": "cancelled"}
    assert app.client().delete(f"/jobs/{first.id}").json() == {"ok": True, "state": "cancelled"}
    assert app.client().delete(f"/jobs/{first.id}").json() == {"ok": True, "already_ended": True}
    assert (state(app, first.id), state(app, second.id)) == ("cancelled", "cancelled")
    assert session.told({"text": "still here"}) == "still here"
    assert not second.mark.exists()
    session.close()


def test_the_events_of_a_job_are_its_states_and_its_turns_own(app, tmp_path):
    session = app.session()
    session.ask({"text": "before"})
    job = HeldTurnJob(session, tmp_path).begun()
    with events_of(app, job.id) as stream:
        assert stream.status == 200
        first = stream.next()
        assert (first.name, first.json()["state"]) == ("state", "running")
        job.let_go()
        events = stream.rest()
    assert events[-1].name == "state" and events[-1].json()["state"] == "succeeded"
    assert "done" in [event.name for event in events]
    assert "".join(messages(events)) == job.text
    numbers = [event.id for event in events if event.id is not None and event.name != "state"]
    with events_of(app, job.id) as again:
        whole = again.rest()
    assert "".join(messages(whole)) == job.text, "also after its end"
    assert [event.name for event in whole if event.id][0] == "turn", "with what it was asked"
    assert [event.name for event in whole][-2:] == ["done", "state"]
    with events_of(app, job.id, last_id=numbers[-2]) as rest:
        late = rest.rest()
    assert [event.name for event in late] == ["done", "state"]
    assert_error(app.client().get(f"/jobs/{job.id}/events", headers={"Last-Event-ID": "x"}), 422,
                 "validation_failed")
    session.close()


def test_the_events_of_a_run_are_its_states(app):
    job_id = submit(app, {"run": {"prompt": "x", "agent": "demo"}})
    ended(app, job_id)
    with events_of(app, job_id) as stream:
        events = stream.rest()
    assert [(event.name, event.json()["state"]) for event in events] == [("state", "succeeded")]
    assert "answer" not in events[0].json()


def test_turns_outlive_a_kill(new_forge, tmp_path):
    forge = new_forge()
    talker = Talker(forge)
    session = talker.session()
    first, again = HeldTurnJob(session, tmp_path).begun(), HeldTurnJob(talker.session(), tmp_path,
                                                                      attempts=2).begun()
    second = submit(talker, turn_of(session, {"text": "later"}))
    forge.kill()
    again.let_go()
    forge.start()
    assert ended(talker, first.id)["state"] == "interrupted"
    assert ended(talker, second)["answer"]["text"] == "later"
    repeated = ended(talker, again.id)
    assert (repeated["state"], repeated["attempts"]) == ("succeeded", 2)


def test_a_closed_session_fails_its_queued_turns(app, tmp_path):
    session = app.session()
    first = HeldTurnJob(session, tmp_path).begun()
    second = HeldTurnJob(session, tmp_path)
    session.close()
    for job in (first, second):
        end = ended(app, job.id)
        assert (end["state"], end["status"], end["answer"]["code"]) == \
            ("failed", 410, "session_closed")
    assert show(app, second.id)["turn_index"] is None
